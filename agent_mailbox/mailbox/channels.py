"""Channels, page by page: whole threads, topics, what is newer than the person has seen.

Belongs here: looking at a channel through the index, in bounded steps, or by a scan if there is none.
``core.conversations`` decides what belongs to a channel and to a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import conversations, message_reads, threads
from ..core.records import Record
from ..errors import MailboxError
from .mail_pages import MailPages, Older, Page, Position
from .selection import parties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.conversations import Parent
    from ..core.records import Message
    from ..core.roster import Roster
    from ..store.projection.index_keys import Row
    from ..store.projection.lookup import IndexLookup

LOOK = 300
"""The newest messages to a channel that one look takes in, with the answers to them; older ones are a link away."""
REMEMBERED = 20_000
"""Digests that are kept between two looks: some megabytes."""


class Digest(Record):
    """A message to a channel in a few words: for counts and lists of topics."""

    id: str
    sender: str
    timestamp: int
    topic: str


class Channels(MailPages):
    """The queries, with channels as conversations."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._digests: dict[tuple[str, int], Digest] = {}

    def channel(self, address: str, before: Position | None, limit: int, topic: str | None = None) -> Page:
        """Return the newest ``limit`` messages of a channel, or of its topic, before a position.

        Raises ``NotFound`` or ``Ambiguous`` if the address matches no one party.
        """
        roster = self._mailbox.logs.read_roster()
        place = (before.timestamp, before.id) if before is not None else None
        threads.exchanged((), address, roster)

        def answer(view: IndexLookup) -> Page:
            direct, rows = view.conversation(parties(address, roster), place, LOOK)
            more = len(direct) == LOOK
            rows = [row for row in rows if row >= direct[-1]] if more else rows  # older ones are not all known
            chosen = _chooses(address, topic, roster, _remembering(view.message), Older(None))
            found = view.chosen(rows, chosen, limit + 1)
            shown = tuple(found[-limit:])
            replies = {m.id: count for m in shown if (count := view.replies(m.id))}
            first = shown[0] if len(found) > limit else next(iter(view.chosen(direct[-1:], bool, 1)), None)
            on = Position(first.timestamp, first.id) if first is not None and (more or len(found) > limit) else None
            return Page(shown, message_reads.Reads(view.records(shown)), replies, on)

        return self._ask(answer) or self._scanned(address, before, limit, topic, roster)

    def _scanned(self, address: str, before: Position | None, limit: int, topic: str | None, roster: Roster) -> Page:
        everything = self.everything()
        chosen = _chooses(address, topic, roster, everything.messages.get, Older(before))
        found = [m for m in reversed([*everything.messages.values()]) if chosen(m)][: limit + 1][::-1]
        shown = tuple(found[-limit:])
        first = Position(shown[0].timestamp, shown[0].id) if len(found) > limit else None
        return Page(shown, everything.reads, {}, first)

    def is_in(self, message: Message, address: str, topic: str | None) -> bool:
        """Return whether a message belongs to a channel, or to its topic."""
        roster = self._mailbox.logs.read_roster()
        if message.thread is None:
            return _chooses(address, topic, roster, lambda _: None, Older(None))(message)
        found = self._ask(lambda view: _chooses(address, topic, roster, view.message, Older(None))(message))
        if found is None:
            return _chooses(address, topic, roster, self.everything().messages.get, Older(None))(message)
        return found

    def newest(self, address: str) -> list[Digest]:
        """Return the newest messages to an address, newest first."""
        now = self._mailbox.now()
        return self.newer({address: -1}, now, LOOK).get(address, [])

    def newer(self, since: Mapping[str, int], until: int, most: int) -> dict[str, list[Digest]]:
        """Return the newest ``most`` messages to each address that were sent after an instant (ms), newest first.

        A tag that is no address, which another program may have written, is left out."""
        roster = self._mailbox.logs.read_roster()
        since = {address: begin for address, begin in since.items() if _is_address(address, roster)}

        def answer(view: IndexLookup) -> dict[str, list[Digest]]:
            parent = _remembering(view.message)
            found = {}
            for address, begin in since.items():
                rows = view.newer(parties(address, roster), begin, until, most)
                digests = (self._digest(view, row, parent, address, roster) for row in rows)
                found[address] = [digest for digest in digests if digest is not None]
            return found

        answered = self._ask(answer)
        return self._looked_for(since, until, most, roster) if answered is None else answered

    def _looked_for(self, since: Mapping[str, int], until: int, most: int, roster: Roster) -> dict[str, list[Digest]]:
        messages = self.everything().messages
        newest_first = [m for m in reversed([*messages.values()]) if m.timestamp <= until]
        return {
            address: [
                _digest(m, messages.get)
                for m in threads.exchanged((m for m in newest_first if m.timestamp > begin), address, roster)[:most]
            ]
            for address, begin in since.items()
        }

    def _digest(self, view: IndexLookup, row: Row, parent: Parent, address: str, roster: Roster) -> Digest | None:
        known = self._digests.get((address, row[2]))
        if known is not None:
            return known
        messages = view.chosen([row], lambda m: bool(threads.exchanged((m,), address, roster)), 1)
        if not messages:  # another message of that number, or a twin that does not count
            return None
        digest = _digest(messages[0], parent)
        above = messages[0].thread
        if above is None or messages[0].subject or parent(above) is not None:  # else its topic may come to be known
            if len(self._digests) >= REMEMBERED:
                self._digests.clear()
            self._digests[address, row[2]] = digest
        return digest


def _digest(message: Message, parent: Parent) -> Digest:
    return Digest(message.id, message.sender, message.timestamp, conversations.topic(message, parent))


def _is_address(word: str, roster: Roster) -> bool:
    try:
        threads.exchanged((), word, roster)
    except MailboxError:
        return False
    return True


def _remembering(look: Parent) -> Parent:
    """Return the look-up that asks for each id once."""
    known: dict[str, Message | None] = {}

    def parent(message_id: str) -> Message | None:
        if message_id not in known:
            known[message_id] = look(message_id)
        return known[message_id]

    return parent


def _chooses(
    address: str, topic: str | None, roster: Roster, parent: Parent, older: Older
) -> Callable[[Message], bool]:
    wanted = None if topic is None else conversations.folded(topic)

    def chosen(message: Message) -> bool:
        return (
            older(message)
            and conversations.belongs(message, address, roster, parent)
            and (wanted is None or conversations.folded(conversations.topic(message, parent)) == wanted)
        )

    return chosen
