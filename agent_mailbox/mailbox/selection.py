"""A selection of mail: which messages belong to it, which are before a position, and which the index offers for it.

Belongs here: the one predicate that history, search and the console's pages share, and the parties by which the index
narrows it. The index only offers candidates; ``chooses`` decides.
"""

from __future__ import annotations

from ..core import conversations, words
from ..core.address import ALL, Reader, is_concerned, teammate
from ..core.line_forms import words_of
from ..core.records import USER, Record
from ..errors import MailboxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.records import Message
    from ..core.roster import Roster
    from ..store.projection.index_keys import Row
    from ..store.projection.lookup import IndexLookup


class Selection(Record):
    """The mail that meets every filter; an empty filter does not narrow.

    ``address``: from or to an agent, a role, a tag or ``all``. ``person``: from or to the person. ``reader``: sent by
    the agent of this id, or visible to it. ``query``: contains each of these words. ``since`` and ``until``: in ms,
    both inclusive. ``sender`` and ``recipient``: who wrote it, and to which address. ``asks``: it asks for an ack.
    ``kind``: ``control`` for control messages alone, ``mail`` for all others.
    """

    address: str = ""
    person: bool = False
    reader: str = ""
    query: str = ""
    since: int | None = None
    until: int | None = None
    sender: str = ""
    recipient: str = ""
    asks: bool = False
    kind: str = ""


class Position(Record):
    """A position in a selection: just before the message of that instant (ms) and id."""

    timestamp: int
    id: str


class OlderSelection:
    """A predicate for messages from the newest on: is the message before the position?

    At the position's own instant, the messages that follow the named one are."""

    def __init__(self, before: Position | None) -> None:
        self._before = before
        self._passed = False

    def __call__(self, message: Message) -> bool:
        before = self._before
        if before is None or message.timestamp < before.timestamp:
            return True
        if message.id == before.id:
            self._passed = True
            return False
        return self._passed and message.timestamp == before.timestamp


def chooses(selection: Selection, roster: Roster) -> Callable[[Message], bool]:
    """Return the predicate of a selection. Raises ``NotFound`` or ``Ambiguous`` if its address matches no one party."""
    phrases = words.phrases(selection.query)
    reader = roster.reader(selection.reader) if selection.reader else None
    if selection.address:
        conversations.exchanged((), selection.address, roster)
    sender = {*roster.lineage(roster.find(selection.sender).session_id)} if selection.sender else None
    to = parties(selection.recipient, roster) if selection.recipient else None

    def chosen(m: Message) -> bool:
        return (
            (selection.since is None or m.timestamp >= selection.since)
            and (selection.until is None or m.timestamp <= selection.until)
            and (not selection.person or m.sender == USER or USER in m.recipients)
            and (reader is None or is_concerned(m, reader))
            and (not selection.address or bool(conversations.exchanged((m,), selection.address, roster)))
            and (sender is None or m.sender in sender)
            and (to is None or not to.isdisjoint(m.recipients))
            and (m.ack or not selection.asks)
            and (not selection.kind or (m.type == "control") == (selection.kind == "control"))
            and (not phrases or words.matches(m, phrases))
        )

    return chosen


def candidates(view: IndexLookup, selection: Selection, roster: Roster, until: int | None = None) -> Iterator[Row]:
    """Yield the index's rows, newest first, that may belong to the selection; none later than ``until`` (ms)."""
    until = min((end for end in (selection.until, until) if end is not None), default=None)
    phrases = words.phrases(selection.query)
    if phrases:
        return view.with_words(phrases, until)
    groups = []
    if selection.person:
        groups.append({USER})
    named = filter(None, (selection.address, selection.sender, selection.recipient))
    groups += [parties(address, roster) for address in named]
    if selection.reader:
        reader = roster.reader(selection.reader)
        groups.append({ALL, *_either_way(*reader.tags), *words_of(reader)})
    return view.between(groups, selection.since, until)


def _either_way(*addresses: str) -> set[str]:
    """Return the addresses, roles with and without their prefix: foreign writers store either."""
    return {*addresses, *(address.removeprefix("role:") for address in addresses)}


def parties(word: str, roster: Roster) -> set[str]:
    """Return every party that mail exchanged with a written address may name."""
    agent: set[str] = set()  # of a role, a tag, or all
    try:
        if word != ALL and (":" not in word or teammate(word)):
            found = roster.find(word)
            agent = words_of(Reader(found.session_id, roster.lineage(found.session_id), found.name)) - {ALL}
    except MailboxError:
        pass
    return {*agent, *_either_way(word), f"role:{word}"}
