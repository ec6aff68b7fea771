"""A poll that costs what is new: a cursor per session over the three logs.

Belongs here: a session's place in each log, the unread messages before it, and when that knowledge no longer holds.
``core.inbox`` alone defines *unread*. The cursor only narrows the state that ``core.inbox`` judges to the messages that
can matter and all their reads. In doubt the poll begins again from the logs.

Four events make a dropped message unread again, and each is noticed:

- a release of dropped mail, under whatever word: the poll begins again
- a change of the session's own roster entry, or of an agent that its mail names beside it (``words``)
- a clock behind the one that judged expiry (``floor``)
- another configuration

Role mail that another session claimed and has not read is not dropped: it stays ``pending``, and each poll judges it
again.

**Catching up, by example** (positions in the log; the session is ``bob``):

    0      to bob    read by bob                      dropped
    210    to bob    unread                           pending = (210,)
    430    to all    read by cat                      pending = (210, 430), relevant = (cat's read,)
    650              the marks end here

The next poll looks at the messages at 210 and 430, at cat's read, and at the new lines of both logs. ``inbox.unread``
judges these alone. If bob's read of 210 is among the new reads, the saved cursor has pending = (430,). A new release of
the message at 0 is about a dropped message: the poll begins again.
"""

from __future__ import annotations

from ...core import codec, inbox
from ...core.inbox import InboxState
from ...core.line_forms import addresses, id_for_others, may_be_about, may_release
from ...core.message_reads import Reads
from ...core.records import BadLine, Record
from ...errors import Busy, StorageFailed
from ..files import small_files, system
from ..files.lines import boundary, line_at, lines_of
from ..log.logs import OpenLogs, parse_roster
from ..log.proof_view import weigh_message, weigh_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ...config.config import Config
    from ...core.address import Reader
    from ...core.inbox import Item
    from ...core.records import Message, Read, RosterEvent
    from ...core.roster import Roster
    from ..files.small_files import Mark
    from ..log.log import Log
    from ..log.logs import End, Ends, Logs
    from ..log.proof_view import ProofView
    from .quiet_polls import Files

CURSORS = "cursors"
LARGE = 4 << 20
"""Bytes of log up to which decoding every line takes less time than a person notices."""
MOST = 1000
"""Sessions whose polls a process remembers at once."""


class Cursor(Record):
    """A session's place: a mark per log, and what remains of the lines before the marks.

    ``pending`` are the positions of its unread messages, ``relevant`` those of the reads about them. ``words`` in its
    mail may name other agents. ``config`` is the configuration's stamp, ``epoch`` the messages log's, ``floor`` the
    clock that dropped expired mail.
    """

    messages: Mark = small_files.NOWHERE
    reads: Mark = small_files.NOWHERE
    roster: Mark = small_files.NOWHERE
    pending: tuple[int, ...] = ()
    relevant: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    config: tuple[int, ...] = ()
    epoch: int = 0
    floor: int = 0


class Poll:
    """One session's poll, by the mailbox's configuration."""

    def __init__(self, logs: Logs, session_id: str, config: Config) -> None:
        self.session_id = session_id
        self._logs = logs
        self._ttls = config.ttls
        self._stamp = config.stamp
        self._path = logs.cache(CURSORS, session_id)
        self._ends: Ends | None = None
        self._items: list[Item] = []
        self._cursor: Cursor | None = None
        self._moved = False
        self._claimed: set[str] = set()
        self.withheld = False
        """Whether role mail that another session claimed may come back, without a write that tells."""
        self.judged = 0
        """The instant (ms) at which the mail was last judged."""
        self._messages: Mapping[int, Message] = {}
        self._reads: Mapping[int, Read] = {}

    def unread(self, now: int, *, adopt: bool = True) -> list[Item]:
        """Return the session's unread mail at ``now``, in the order it is shown.

        ``adopt`` (never under a log's lock) lets the cursor pass lines of foreign programs.
        """
        before, polls = None, self._logs.polls
        if (count := polls.get(self.session_id, 0)) < 2:
            if len(polls) >= MOST:
                polls.clear()
            polls[self.session_id] = count + 1
        else:
            from . import quiet_polls  # what hooks are spared

            before = quiet_polls.files(self._logs)
            files, cursor, ends = self._logs.quiet.get(self.session_id) or (None, Cursor(), None)
            if files == before and cursor.config == self._stamp and now >= cursor.floor:
                self._ends, self.judged = ends, now
                self._cursor, self._moved, self._items = cursor, False, []
                return []
        with OpenLogs(self._logs) as logs:
            self._ends, self.judged = logs.ends, now
            self._cursor, self._moved, self.withheld, self._claimed = None, False, False, set()
            self._items = self._asked(logs, now, adopt)
        if before is not None:
            self._remember(before)
        return self._items

    def _remember(self, before: Files) -> None:
        """Remember the files from ``before`` this poll for the session's next one, if nothing is unread."""
        from . import quiet_polls  # likewise

        found, ends, known = self._cursor, self._ends, self._logs.quiet
        if found is None or ends is None or found.pending:
            return
        if quiet_polls.are_settled(before, (found.messages, found.reads, found.roster), ends):
            if len(known) >= MOST:
                known.clear()
            known[self.session_id] = before, found, ends

    def is_current(self) -> bool:
        """Return whether no log changed since ``unread``."""
        return self._logs.ends() == self._ends

    def claimed(self, ids: set[str], size: int) -> None:
        """Note that the session claimed these messages in ``size`` bytes, under the reads' lock and after the last
        ``unread``."""
        self._claimed = ids
        if self._ends is not None:
            messages, (inode, end), roster = self._ends
            self._ends = messages, (inode, end + size), roster

    def without(self, recorded: set[str], size: int) -> list[Item] | None:
        """Return the mail that ``unread`` found, without the ``recorded``; None if more than their reads was written
        since.

        Those reads are ``size`` bytes. While the caller holds the locks of all three logs the answer stays true.
        """
        if self._cursor is None or self._ends is None or not self._claimed <= recorded:
            return None
        messages, (inode, end), roster = self._ends
        if messages[1] != self._cursor.messages[1]:
            return None  # a last message without its newline is read again
        reads = _marked(self._logs.reads, end + size) if recorded else (inode, end, 0)
        if reads[0] != inode or self._logs.ends() != (messages, (inode, end + size), roster):
            return None
        if recorded:
            self._cursor = self._cursor.replace(
                reads=reads,
                pending=tuple(p for p in self._cursor.pending if self._messages[p].id not in recorded),
                relevant=tuple(p for p in self._cursor.relevant if self._reads[p].message_id not in recorded),
            )
            self._moved = True
        return [item for item in self._items if item.message.id not in recorded]

    def save(self) -> None:
        """Save the cursor if it moved."""
        if self._cursor is not None and self._moved:
            small_files.save_derived(self._path, codec.dumps(self._cursor.__dict__).encode())

    def _asked(self, logs: OpenLogs, now: int, adopt: bool) -> list[Item]:
        path, fd, end = self._logs.messages.path, logs.messages, logs.messages_end
        epoch = 0 if fd is None else self._logs.stamp_files.epoch(path, fd, end)
        cursor = self._load()
        if epoch is None and adopt:
            from . import foreign_lines  # off the path of our own writers' mail

            try:
                epoch = foreign_lines.adopt_messages(self._logs, logs)
            except (Busy, StorageFailed):
                pass  # a log that is locked or takes no writes costs the next look time
        if cursor is None or cursor.epoch != epoch or not self._still_holds(cursor, logs, now):
            return self._caught_up(Cursor(epoch=self._begun(logs, epoch)), logs, now)
        at = (cursor.messages[1], cursor.reads[1], cursor.roster[1])
        if not cursor.pending and at == (logs.messages_end, logs.reads_end, logs.roster_end):
            self._cursor = cursor
            return []
        return self._caught_up(cursor, logs, now)

    def _begun(self, logs: OpenLogs, epoch: int | None) -> int:
        """Return the epoch for a cursor that begins again.

        It is -1, which is not kept, if the open logs may be older: the lines that began the epoch would be news."""
        path = self._logs.messages.path
        is_old = logs.messages is not None and not self._logs.stamp_files.began(path, logs.messages_end)
        return -1 if epoch is None or is_old else epoch

    # -- is the cursor good? ------------------------------------------------------------------------------------------

    def _load(self) -> Cursor | None:
        body = small_files.load_derived(self._path)
        obj = codec.parse(body) if body else None
        if not isinstance(obj, dict):
            return None
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in obj.items()}
        try:
            cursor = Cursor(**values)
            marks = (cursor.messages, cursor.reads, cursor.roster)
            numbers = (*marks[0], *marks[1], *marks[2], *cursor.pending, *cursor.relevant, cursor.epoch, cursor.floor)
            sound = [*map(len, marks)] == [3, 3, 3] and {*map(type, numbers)} == {int} and min(numbers[:-2]) >= 0
            return cursor if sound and {*map(type, cursor.words)} <= {str} else None
        except TypeError:  # sealed, but of another shape
            return None

    def _still_holds(self, cursor: Cursor, logs: OpenLogs, now: int) -> bool:
        if cursor.config != self._stamp or now < cursor.floor:
            return False
        marks = (cursor.messages, cursor.reads, cursor.roster)
        files = (logs.messages, logs.reads, logs.roster)
        if not all(map(small_files.holds_mark, files, marks, [inode for inode, _ in logs.ends])):
            return False
        if logs.roster is None or cursor.roster[1] == logs.roster_end:
            return True
        roster = self._logs.read_roster()
        concerns = {*roster.lineage(self.session_id), *cursor.words}
        news = parse_roster(lines_of(logs.roster, cursor.roster[1], logs.roster_end))
        return not any(_changes(event, concerns, roster) for event in news)

    # -- catching up --------------------------------------------------------------------------------------------------

    def _caught_up(self, cursor: Cursor, logs: OpenLogs, now: int) -> list[Item]:
        roster = self._logs.read_roster()
        reader = roster.reader(self.session_id)
        if cursor.messages[1] == 0 and max(logs.messages_end, logs.reads_end) > LARGE:
            from ..log import scan  # once in a session's life, if ever

            pending, relevant = scan.lines(logs, reader, roster, now, self._ttls)
            ends = {"messages": (0, logs.messages_end, 0), "reads": (0, logs.reads_end, 0)}
            cursor = cursor.replace(pending=tuple(pending), relevant=tuple(relevant), **ends)
        messages = _mail(logs.messages, cursor, logs.messages_end, reader, self._logs.messages.view())
        known = {m.id: m for m in messages.values()}
        reads = self._reads_of(known, cursor, logs)
        if reads is None:
            return self._caught_up(Cursor(epoch=self._begun(logs, cursor.epoch)), logs, now)
        state = InboxState(known, Reads(reads.values()), roster, self._ttls, self._logs.sign)
        items = inbox.waiting(reader, state, now)
        if cursor.epoch >= 0 and cursor.messages[1] <= logs.messages_end:  # else another process is ahead
            self._advance(cursor, logs, messages, reads, items, reader, now)
        unread = [item for item in items if not item.withheld]
        self.withheld = len(unread) < len(items)
        return inbox.in_order(unread)

    def _reads_of(self, ids: Mapping[str, Message], cursor: Cursor, logs: OpenLogs) -> dict[int, Read] | None:
        """Return the reads of the messages by position; None if a read of another message may make that one unread."""
        found: dict[int, Read] = {}
        about = {message_id.encode() for message_id in ids}
        since = cursor.reads[1] if cursor.messages[1] else logs.reads_end  # at the beginning nothing was dropped yet
        view = self._logs.reads.view()
        for position, line in _lines(logs.reads, cursor.relevant, cursor.reads[1], logs.reads_end):
            if not may_be_about(line, about) and (position < since or not may_release(line)):
                continue
            record = codec.read(line)
            if isinstance(record, BadLine):
                continue
            if record.message_id in ids:
                found[position] = weigh_read(record, view, line, position)
            elif position >= since and record.event == "release":
                return None
        return found

    def _advance(
        self,
        cursor: Cursor,
        logs: OpenLogs,
        messages: Mapping[int, Message],
        reads: Mapping[int, Read],
        items: list[Item],
        reader: Reader,
        now: int,
    ) -> None:
        unread = {item.message.id for item in items}
        named = {a for m in messages.values() for a in m.recipients if ":" not in a and a not in reader.lineage}
        named.update(read.session_id for read in reads.values() if read.via is None)
        files = (logs.messages, logs.reads, logs.roster)
        before = (cursor.messages, cursor.reads, cursor.roster)
        ends = [*map(_mark, files, logs.ends, before)]
        # A last line without its newline is read again next time, and its reads are before the mark by then.
        asked_again = unread | {m.id for p, m in messages.items() if p >= ends[0][1]}
        saved = Cursor(
            messages=ends[0],
            reads=ends[1],
            roster=ends[2],
            pending=tuple(p for p, m in messages.items() if m.id in unread and p < ends[0][1]),
            relevant=tuple(p for p, r in reads.items() if r.message_id in asked_again and p < ends[1][1]),
            words=tuple(sorted({*cursor.words, *named})),
            config=self._stamp,
            epoch=cursor.epoch,
            floor=max(now, cursor.floor),
        )
        self._cursor = saved
        self._moved = saved.replace(floor=cursor.floor) != cursor
        self._messages, self._reads = messages, reads


def _mail(fd: int | None, cursor: Cursor, end: int, reader: Reader, view: ProofView | None) -> dict[int, Message]:
    """Return the messages that may concern the reader, by position.

    If a foreign program wrote an id twice, the first message counts, for any recipient. So skipped mail for others is
    decoded if its id turns up again.
    """
    found: dict[int, Message] = {}
    seen: set[str] = set()
    others: dict[bytes, list[int]] = {}
    mine = addresses(reader)
    for position, line in _lines(fd, cursor.pending, cursor.messages[1], end):
        if (message_id := id_for_others(line, mine)) is not None:
            others.setdefault(message_id, []).append(position)
            continue
        message = codec.message(line)
        if isinstance(message, BadLine) or message.id in seen:
            continue
        seen.add(message.id)
        if not others or not _holds_message(fd, others.get(message.id.encode(), ())):
            found[position] = weigh_message(message, view, line, position)
    return found


def _holds_message(fd: int | None, positions: Iterable[int]) -> bool:
    return fd is not None and not all(isinstance(codec.message(line_at(fd, p)), BadLine) for p in positions)


def _lines(fd: int | None, kept: Iterable[int], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, line) of the kept lines, and of all new ones."""
    if fd is not None:
        for position in kept:
            yield position, line_at(fd, position)
        yield from lines_of(fd, start, end)


def _mark(fd: int | None, at: End, before: Mark) -> Mark:
    """Return the mark of an open log at its end, which may be the one ``before``."""
    if fd is None:
        return small_files.NOWHERE
    inode, end = at
    return before if before[:2] == at else small_files.mark_log(fd, boundary(fd, end), inode)


def _marked(log: Log, position: int) -> Mark:
    fd = log.open()
    if fd is None:
        return small_files.NOWHERE
    try:
        return small_files.mark_log(fd, position)
    finally:
        system.close(fd)


def _changes(event: RosterEvent, concerns: set[str], roster: Roster) -> bool:
    """Return whether the event may change what these words mean, who they are, or for how long their clocks stopped."""
    words = (event.name, *roster.lineage(event.session_id), *(tag.removeprefix("role:") for tag in event.tags or ()))
    return not concerns.isdisjoint(words)
