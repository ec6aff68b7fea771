"""Paging through mail: a selection of it, page by page, with its receipts and replies.

Belongs here: a selection of mail as a value, the page of it before a position, the mail of a time. The same selection
tells whether a message that was just sent belongs. As in ``mailbox.queries`` the index gives the candidates, or a scan
if there is none; one function decides which of them belong.
"""

from __future__ import annotations

from ..core import claims, threads, words
from ..core.address import ALL
from ..core.records import USER, Record
from .queries import Library, either_way, meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..core.records import Message, Read
    from ..core.roster import Roster
    from ..store.index_keys import Row
    from ..store.lookup import IndexView


class Selection(Record):
    """A choice of mail; an empty field does not narrow.

    ``address``: mail from or to an agent, a role, a tag or ``all``. ``person``: mail from or to the person. ``reader``:
    mail that the agent of this id wrote or may see. ``query``: mail with all these words. ``since`` and ``until``: mail
    between two instants in ms, both included."""

    address: str = ""
    person: bool = False
    reader: str = ""
    query: str = ""
    since: int | None = None
    until: int | None = None


class Position(Record):
    """A position in a selection: just before the message of that instant (ms) and id."""

    timestamp: int
    id: str


class Page(Record):
    """Messages, newest last, with their reads and the number of replies to each; older ones continue at ``before``."""

    messages: tuple[Message, ...]
    reads: claims.Reads
    replies: Mapping[str, int]
    before: Position | None


class Recent(Record):
    """The newest messages of a time, newest last, with everything recorded about them; ``whole``: are these all?"""

    messages: tuple[Message, ...]
    records: tuple[Read, ...]
    whole: bool


class Browsing(Library):
    """The library, page by page."""

    def chooses(self, selection: Selection, roster: Roster) -> Callable[[Message], bool]:
        """Return the predicate of the selection. Raises ``NotFound`` or ``Ambiguous`` for an address that means
        nobody."""
        phrases = words.phrases(selection.query)
        reader = roster.reader(selection.reader) if selection.reader else None
        if selection.address:
            threads.exchanged((), selection.address, roster)

        def chosen(m: Message) -> bool:
            return (
                (selection.since is None or m.timestamp >= selection.since)
                and (selection.until is None or m.timestamp <= selection.until)
                and (not selection.person or m.sender == USER or USER in m.recipients)
                and (reader is None or threads.visible(m, reader))
                and (not selection.address or bool(threads.exchanged((m,), selection.address, roster)))
                and (not phrases or words.matches(m, phrases))
            )

        return chosen

    def page(self, selection: Selection, before: Position | None, limit: int) -> Page:
        """Return the newest ``limit`` messages of the selection before a position (None: the newest of all)."""
        roster = self._mailbox.logs.read_roster()
        chosen, older = self.chooses(selection, roster), _Older(before)

        def candidates(view: IndexView) -> Iterator[Row]:
            older.begin()
            return _candidates(view, selection, before, roster)

        found, reads = self._newest(candidates, lambda m: older(m) and chosen(m), limit + 1)
        shown = tuple(found[-limit:])
        first = Position(shown[0].timestamp, shown[0].id) if len(found) > limit else None
        replies = self._ask(lambda view: {m.id: view.replies(m.id) for m in shown}) or {}
        return Page(shown, reads, {i: count for i, count in replies.items() if count}, first)

    def stretch(self, since: int, limit: int) -> Recent:
        """Return the newest ``limit`` messages since an instant (ms)."""

        def answer(view: IndexView) -> Recent:
            found, _ = view.newest(view.between((), since), lambda _: True, limit + 1)
            return Recent(tuple(found[-limit:]), tuple(view.records(found[-limit:])), len(found) <= limit)

        return self._ask(answer) or self._looked_through(since, limit)

    def _looked_through(self, since: int, limit: int) -> Recent:
        everything = self.everything()
        found = [m for m in everything.messages.values() if m.timestamp >= since]
        ids = {m.id for m in found[-limit:]}
        records = dict.fromkeys([*self._mailbox.archive.reads(), *self._mailbox.logs.read_records()])
        return Recent(tuple(found[-limit:]), tuple(r for r in records if r.message_id in ids), len(found) <= limit)

    def known(self, ids: Iterable[str]) -> tuple[list[Message], claims.Reads]:
        """Return the messages of these ids, as far as they exist, with their reads."""
        wanted = [*dict.fromkeys(ids)]

        def answer(view: IndexView) -> tuple[list[Message], claims.Reads]:
            found = [message for message in map(view.message, wanted) if message is not None]
            return found, claims.Reads(view.records(found))

        answered = self._ask(answer)
        if answered is not None:
            return answered
        everything = self.everything()
        return [everything.messages[i] for i in wanted if i in everything.messages], everything.reads

    def prepare(self) -> bool:
        """Bring the index up to date, which may take a minute in a large mailbox; False if no index is possible."""
        return self._ask(lambda _: True) is not None


def _candidates(view: IndexView, selection: Selection, before: Position | None, roster: Roster) -> Iterator[Row]:
    ends = [end for end in (selection.until, before.timestamp if before else None) if end is not None]
    until = min(ends, default=None)
    phrases = words.phrases(selection.query)
    if phrases:
        return view.with_words(phrases, until)
    parties = []
    if selection.person:
        parties.append({USER})
    if selection.address:
        parties.append(meant(selection.address, roster))
    if selection.reader:
        reader = roster.reader(selection.reader)
        parties.append({*reader.lineage, reader.name or ALL, ALL, *either_way(*reader.tags)})
    return view.between(parties, selection.since, until)


class _Older:
    """A predicate for messages from the newest on: is the message before the position?

    At the position's own instant, the messages that follow the named one are."""

    def __init__(self, before: Position | None) -> None:
        self._before = before
        self._passed = False

    def begin(self) -> None:
        """Begin again with the newest message."""
        self._passed = False

    def __call__(self, message: Message) -> bool:
        before = self._before
        if before is None or message.timestamp < before.timestamp:
            return True
        if message.id == before.id:
            self._passed = True
            return False
        return self._passed and message.timestamp == before.timestamp
