"""Paging through mail: a selection of it, a time or a channel, page by page, with its receipts and replies.

Belongs here: the page of a selection before a position, and the mail of a time. Channels come with whole threads, with
topics, and with what is newer than the person has seen. As in ``mailbox.queries`` the index gives the candidates, in
bounded steps, or a scan if there is none. ``core.conversations`` decides what belongs to a channel and to a topic.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..core import codec, conversations, instant, message_reads
from ..core.conversations import exchanged
from ..core.inbox import InboxState
from ..core.instant import HOUR
from ..core.records import Record
from ..errors import MailboxError, NotFound
from ..store.log.logs import end_of, parse_messages, parse_reads
from ..store.projection.index_keys import NEWS
from .mailbox import FoundMessage
from .queries import MailQueries
from .selection import OlderSelection, Position, candidates, chooses, parties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..core.conversations import Parent
    from ..core.records import Message, Read
    from ..core.roster import Roster
    from ..store.log.log import Log
    from ..store.projection.index_keys import Row
    from ..store.projection.lookup import IndexLookup
    from .mailbox import Mailbox
    from .selection import Selection


LOOK = 300
"""The newest messages to a channel that one look takes in, with the answers to them; older ones are a link away."""
REMEMBERED = 20_000
"""Digests that are kept between two looks: some megabytes."""


class Page(Record):
    """Messages, newest last, with their reads and the number of replies to each; older ones continue at ``before``."""

    messages: tuple[Message, ...]
    reads: message_reads.Reads
    replies: Mapping[str, int]
    before: Position | None


class Recent(Record):
    """The newest messages of a time, newest last, with everything recorded about them; ``whole``: are these all?"""

    messages: tuple[Message, ...]
    records: tuple[Read, ...]
    whole: bool


class Digest(Record):
    """A message of a channel in a few words: for counts and lists of topics. ``is_own``: it is to or from the address
    itself, not only an answer to such a message."""

    id: str
    sender: str
    timestamp: int
    topic: str
    is_own: bool = True


class MailPages(MailQueries):
    """The queries, page by page, with channels as conversations."""

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__(mailbox)
        self._digests: dict[tuple[str, int], Digest] = {}

    def everything(self, since: int | None = None) -> InboxState:
        """Return all mail; with ``newest_alone`` what the last bytes of the live logs hold."""
        if not self.newest_alone:
            return super().everything(since)
        logs = self._mailbox.logs
        found = parse_messages(_last_lines(logs.messages), logs.messages.view())
        return InboxState(
            messages={m.id: m for m in sorted(found.values(), key=lambda m: m.timestamp)},
            reads=message_reads.Reads(self._records()),
            roster=logs.read_roster(),
            ttls=self._mailbox.config.ttls,
        )

    def _records(self) -> Iterable[Read]:
        logs = self._mailbox.logs
        if self.newest_alone:
            return parse_reads(_last_lines(logs.reads), logs.reads.view())
        return message_reads.with_archived(logs.read_records(), self._mailbox.archive.reads())

    def covered(self) -> tuple[int, int]:
        """Return the bytes of mail that a look-up covers, and all there are."""
        mailbox = self._mailbox
        live = end_of(mailbox.logs.messages.path)[1]
        archived = sum(end_of(mailbox.archive.log(month).path)[1] for month in mailbox.archive.months())
        return min(live, NEWS) if self.newest_alone else live + archived, live + archived

    def page(self, selection: Selection, before: Position | None, limit: int) -> Page:
        """Return the newest ``limit`` messages of the selection before a position (None: the newest of all)."""
        found, reads = self._newest(selection, limit + 1, before)
        shown = tuple(found[-limit:])
        first = Position(shown[0].timestamp, shown[0].id) if len(found) > limit else None
        replies = self._ask(lambda view: {m.id: view.replies(m.id) for m in shown}) or {}
        return Page(shown, reads, {i: count for i, count in replies.items() if count}, first)

    def end_after(self, selection: Selection, since: int, most: int) -> int | None:
        """Return the instant (ms) up to which some ``most`` messages of a selection follow one; None: no more follow.

        The index finds it by halving the time, so that a jump far back reads little."""
        roster, now = self._mailbox.logs.read_roster(), self._mailbox.now()

        def answer(view: IndexLookup) -> tuple[int | None]:
            def count(until: int) -> int:
                rows = candidates(view, selection.replace(since=since + 1), roster, until)
                return sum(1 for _ in islice(rows, most + 1))

            if count(now) <= most:
                return (None,)
            few, many = since, now
            while many - few > 1:
                middle = (few + many) // 2
                few, many = (few, middle) if count(middle) > most else (middle, many)
            return (few if count(few) else many,)

        answered = self._ask(answer)
        if answered is not None:
            return answered[0]
        chosen = chooses(selection.replace(since=since + 1), roster)
        times = [m.timestamp for m in self.everything().messages.values() if m.timestamp <= now and chosen(m)]
        return times[most - 1] if len(times) > most else None

    def stretch(self, since: int, limit: int) -> Recent:
        """Return the newest ``limit`` messages since an instant (ms)."""

        def answer(view: IndexLookup) -> Recent:
            found = view.chosen(view.between((), since), lambda _: True, limit + 1)
            return Recent(tuple(found[-limit:]), tuple(view.records(found[-limit:])), len(found) <= limit)

        return self._ask(answer) or self._looked_through(since, limit)

    def hours(self, since: int, until: int) -> dict[int, int]:
        """Return how many messages each hour has, by the instant (ms) it begins at."""
        counted = self._ask(lambda view: view.hours(since, until, HOUR))
        if counted is not None:
            return counted
        times = (message.timestamp for message in self.everything().messages.values())
        return dict(Counter(at - at % HOUR for at in times if since <= at <= until))

    def within(self, since: int, until: int) -> list[Message]:
        """Return the messages from one instant (ms) to another, newest last."""
        found = self._ask(lambda view: view.chosen(view.between((), since, until), lambda _: True, 0))
        if found is not None:
            return found
        return [m for m in self.everything().messages.values() if since <= m.timestamp <= until]

    def _looked_through(self, since: int, limit: int) -> Recent:
        everything = self.everything()
        found = [m for m in everything.messages.values() if m.timestamp >= since]
        ids = {m.id for m in found[-limit:]}
        records = dict.fromkeys(self._records())
        return Recent(tuple(found[-limit:]), tuple(r for r in records if r.message_id in ids), len(found) <= limit)

    def found(self, message_id: str) -> FoundMessage:
        """Return what ``Mailbox.find`` does; with ``newest_alone`` look through the newest mail alone, by the whole
        id."""
        if not self.newest_alone:
            return self._mailbox.find(message_id)
        state = self.everything()
        message = state.messages.get(message_id)
        if message is None:
            raise NotFound(f"no message {message_id!r} in the newest mail", "wait until the search index is built")
        records = tuple(record for record in self._records() if record.message_id == message_id)
        return FoundMessage(message=message, receipts=records, position=0)

    def thread(self, message_id: str) -> tuple[list[Message], message_reads.Reads]:
        """Return the whole thread; with ``newest_alone`` as far as the newest mail holds it."""
        if not self.newest_alone:
            return super().thread(message_id)
        state = self.everything()
        return conversations.thread_of(self.found(message_id).message.id, state.messages), state.reads

    def known(self, ids: Iterable[str]) -> tuple[list[Message], message_reads.Reads]:
        """Return the messages of these ids, as far as they exist, with their reads."""
        wanted = [*dict.fromkeys(ids)]
        if not wanted:
            return [], message_reads.Reads()

        def answer(view: IndexLookup) -> tuple[list[Message], message_reads.Reads]:
            found = [message for message in map(view.message, wanted) if message is not None]
            return found, message_reads.Reads(view.records(found))

        answered = self._ask(answer)
        if answered is not None:
            return answered
        everything = self.everything()
        return [everything.messages[i] for i in wanted if i in everything.messages], everything.reads

    def stored_line(self, message_id: str) -> bytes:
        """Return the line of a message as it is in its log; raise ``NotFound``."""
        found = self._ask(lambda view: view.stored_line(message_id) or b"")
        if found is None:
            logs, archive = self._mailbox.logs, self._mailbox.archive
            lines = chain((line for _, line in logs.messages.lines(0)), archive.lines())
            found = next((line for line in lines if getattr(codec.message(line), "id", None) == message_id), b"")
        if not found:
            raise NotFound(f"no message {message_id!r}", "use the whole id")
        return found

    def prepare(self) -> bool:
        """Bring the index up to date, which may take a minute in a large mailbox; False if no index is possible."""
        return self._ask(lambda _: True) is not None

    # -- channels -----------------------------------------------------------------------------------------------------

    def channel(self, address: str, before: Position | None, limit: int, topic: str | None = None) -> Page:
        """Return the newest ``limit`` messages of a channel, or of its topic, before a position.

        Raises ``NotFound`` or ``Ambiguous`` if the address matches no one party.
        """
        roster = self._mailbox.logs.read_roster()
        place = (before.timestamp, before.id) if before is not None else None
        exchanged((), address, roster)

        def answer(view: IndexLookup) -> Page:
            direct, rows = view.conversation(parties(address, roster), place, LOOK)
            more = len(direct) == LOOK
            rows = [row for row in rows if row >= direct[-1]] if more else rows  # older ones are not all known
            chosen = _chooses(address, topic, roster, _remembering(view.message), OlderSelection(None))
            found = view.chosen(rows, chosen, limit + 1)
            shown = tuple(found[-limit:])
            replies = {m.id: count for m in shown if (count := view.replies(m.id))}
            first = shown[0] if len(found) > limit else next(iter(view.chosen(direct[-1:], bool, 1)), None)
            on = Position(first.timestamp, first.id) if first is not None and (more or len(found) > limit) else None
            return Page(shown, message_reads.Reads(view.records(shown)), replies, on)

        return self._ask(answer) or self._scanned(address, before, limit, topic, roster)

    def _scanned(self, address: str, before: Position | None, limit: int, topic: str | None, roster: Roster) -> Page:
        everything = self.everything()
        chosen = _chooses(address, topic, roster, everything.messages.get, OlderSelection(before))
        found = [m for m in reversed([*everything.messages.values()]) if chosen(m)][: limit + 1][::-1]
        shown = tuple(found[-limit:])
        first = Position(shown[0].timestamp, shown[0].id) if len(found) > limit else None
        return Page(shown, everything.reads, {}, first)

    def is_in(self, message: Message, address: str, topic: str | None) -> bool:
        """Return whether a message belongs to a channel, or to its topic."""
        roster = self._mailbox.logs.read_roster()

        def belongs(parent: Parent) -> bool:
            return _chooses(address, topic, roster, parent, OlderSelection(None))(message)

        if message.thread is None:
            return belongs(lambda _: None)
        found = self._ask(lambda view: belongs(view.message))
        return belongs(self.everything().messages.get) if found is None else found

    def newest(self, address: str) -> list[Digest]:
        """Return the newest messages to an address, newest first."""
        now = self._mailbox.now()
        return self.newer({address: instant.FIRST - 1}, now, LOOK).get(address, [])

    def newer(self, since: Mapping[str, int], until: int, most: int) -> dict[str, list[Digest]]:
        """Return the newest ``most`` messages to each address that were sent after an instant (ms), newest first.

        A tag that is no address, which another program may have written, is left out."""

        def rows(view: IndexLookup, address: str, named: Iterable[str]) -> list[Row]:
            return view.newer(named, since[address], until, most)

        return self._digests_of(since, until, most, rows, lambda at, one: one.is_own and one.timestamp > since[at])

    def latest(self, addresses: Iterable[str], until: int, look: int, most: int) -> dict[str, list[Digest]]:
        """Return the newest ``most`` messages of each channel up to an instant (ms), newest first, the answers among
        them, whomever these went to. ``look``: so many messages and answers are looked at."""

        def rows(view: IndexLookup, _: str, named: Iterable[str]) -> list[Row]:
            return [row for row in view.conversation(named, None, look)[1] if row[0] <= until]

        return self._digests_of(addresses, until, most, rows, lambda *_: True)

    def _digests_of(
        self,
        addresses: Iterable[str],
        until: int,
        most: int,
        rows: Callable[[IndexLookup, str, Iterable[str]], list[Row]],
        wanted: Callable[[str, Digest], bool],
    ) -> dict[str, list[Digest]]:
        """Return the newest wanted digests of each address, by its rows; without an index of all mail."""
        roster = self._mailbox.logs.read_roster()
        there = [address for address in addresses if _is_address(address, roster)]

        def first(address: str, digests: Iterable[Digest | None]) -> list[Digest]:
            return list(islice((one for one in digests if one is not None and wanted(address, one)), most))

        def answer(view: IndexLookup) -> dict[str, list[Digest]]:
            parent, found = _remembering(view.message), {}
            for address in there:
                named = rows(view, address, parties(address, roster))
                found[address] = first(address, (self._digest(view, row, parent, address, roster) for row in named))
            return found

        if (answered := self._ask(answer)) is not None:
            return answered
        messages = self.everything().messages
        known = [m for m in reversed([*messages.values()]) if m.timestamp <= until]
        return {one: first(one, (_digest(m, messages.get, one, roster) for m in known)) for one in there}

    def _digest(self, view: IndexLookup, row: Row, parent: Parent, address: str, roster: Roster) -> Digest | None:
        known = self._digests.get((address, row[2]))
        if known is not None:
            return known
        messages = view.chosen([row], bool, 1)
        digest = _digest(messages[0], parent, address, roster) if messages else None
        if digest is None:  # another message of that number, or a twin that does not count
            return None
        above = messages[0].thread
        if above is None or messages[0].subject or parent(above) is not None:  # else its topic may come to be known
            if len(self._digests) >= REMEMBERED:
                self._digests.clear()
            self._digests[address, row[2]] = digest
        return digest


def _last_lines(log: Log) -> Iterator[tuple[int, bytes]]:
    """Return the whole lines among a log's last ``NEWS`` bytes."""
    start = max(end_of(log.path)[1] - NEWS, 0)
    lines = log.lines(start)
    if start:
        next(lines, None)  # the rest of a line
    return lines


def _digest(message: Message, parent: Parent, address: str, roster: Roster) -> Digest | None:
    """Return a message in a few words; None if it is not of that channel."""
    if not conversations.belongs(message, address, roster, parent):
        return None
    is_own = bool(exchanged((message,), address, roster))
    return Digest(message.id, message.sender, message.timestamp, conversations.topic(message, parent), is_own)


def _is_address(word: str, roster: Roster) -> bool:
    try:
        exchanged((), word, roster)
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
    address: str, topic: str | None, roster: Roster, parent: Parent, older: OlderSelection
) -> Callable[[Message], bool]:
    wanted = None if topic is None else conversations.folded(topic)

    def chosen(message: Message) -> bool:
        return (
            older(message)
            and conversations.belongs(message, address, roster, parent)
            and (wanted is None or conversations.folded(conversations.topic(message, parent)) == wanted)
        )

    return chosen
