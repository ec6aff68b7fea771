"""The three logs of a mailbox, read together so that they agree.

Belongs here: which log holds what, reading them into a folded ``State``, heartbeats. Telling records from foreign
lines is the codec's; what they mean is the core's.
"""

from __future__ import annotations

from ..core import codec, rollbook
from ..core.address import check_id
from ..core.claims import Reads
from ..core.inbox import State
from ..core.records import BadLine, Message, Read, RosterEvent
from ..core.rollbook import Rollbook
from ..core.roster import Roster
from ..errors import Busy
from . import cache, paths, system
from .lock import WAIT, FileLock
from .log import Log, boundary, lines_of, sync_directory
from .sieve import may_be_about
from .trail import Trail, new_epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    End = tuple[int, int]
    Ends = tuple[End, End, End]

ROLLBOOK = "roster"


class Logs:
    """The mailbox directory as logs. ``wait`` is how many seconds to wait for any lock in it, ``state`` where the
    user's own records are (default: those of this process's user)."""

    def __init__(self, directory: str, wait: float = WAIT, state: str | None = None) -> None:
        self.directory = directory
        self.wait = wait
        self.derives = True  # off: not even a derived file is written
        self.trail = Trail(self.cache(), state)
        self._roster: Roster | None = None
        self._roster_at = (0, 0)
        self.messages, self.reads, self.roster = (
            Log(self.path(name), wait, self.trail) for name in (paths.MESSAGES, paths.READS, paths.ROSTER)
        )

    def path(self, *names: str) -> str:
        """A path inside the mailbox."""
        return system.join(self.directory, *names)

    def cache(self, *names: str) -> str:
        """A path among the derived files."""
        return self.path(paths.CACHE, *names)

    def state(self, ttls: Mapping[str, float | None]) -> State:
        """Everything live, folded."""
        with self.open() as logs:
            messages = () if logs.messages is None else lines_of(logs.messages, 0, logs.messages_end)
            reads = () if logs.reads is None else lines_of(logs.reads, 0, logs.reads_end)
            return State(
                messages=parse_messages(line for _, line in messages),
                reads=Reads(parse_reads(line for _, line in reads)),
                roster=self.read_roster(),
                ttls=ttls,
            )

    def asking(self, ttls: Mapping[str, float | None]) -> State:
        """The same as far as it matters for what asks for an ack and what answers that: most mail does neither, and is
        passed by undecoded."""
        with self.open() as logs:
            lines = () if logs.messages is None else lines_of(logs.messages, 0, logs.messages_end)
            messages = parse_messages(line for _, line in lines if b'"ack"' in line or b'"thread":null' not in line)
            about = {message_id.encode() for message_id in messages}
            reads = () if logs.reads is None else lines_of(logs.reads, 0, logs.reads_end)
            return State(
                messages=messages,
                reads=Reads(parse_reads(line for _, line in reads if may_be_about(line, about))),
                roster=self.read_roster(),
                ttls=ttls,
            )

    def open(self) -> OpenLogs:
        """The three logs, opened so that they agree, for a ``with`` block."""
        return OpenLogs(self)

    def patient_reads(self) -> Log:
        """The reads, for who must not fail to write there: it waits ``WAIT`` seconds at least."""
        return Log(self.reads.path, max(self.wait, WAIT), self.trail)

    def ends(self) -> Ends:
        """(inode, size) of the messages, the reads and the roster; zeros for a log that does not exist."""
        return _end(self.messages.path), _end(self.reads.path), _end(self.roster.path)

    def adopt_messages(self) -> int:
        """Give the messages log, in which a foreign program may have written, a new epoch; returns it."""
        with self.messages.held() as log:
            at = system.fstat(log.fd)
            try:
                sync_directory(self.directory)  # the note says that the log's name is safe, too
            except OSError as error:
                raise paths.storage_failed("sync", self.directory, error) from None
            epoch = new_epoch()
            self.trail.disturb(None)
            self.trail.leave(self.messages.path, at.st_ino, at.st_size, epoch)
            return epoch

    def read_records(self) -> Iterator[Read]:
        """The live read records, in log order."""
        return parse_reads(line for _, line in self.reads.lines())

    def read_roster(self) -> Roster:
        """The roster, folded: the one read before if the log is as it was, else the rollbook if that is up to date,
        which this keeps it."""
        if self._roster is not None and self._roster_at == _end(self.roster.path):
            return self._roster
        fd = self.roster.open()
        if fd is None:
            return Roster()
        try:
            at = _end(fd)
            self._roster = self._folded_roster(fd, at[1])
            self._roster_at = at
            return self._roster
        finally:
            system.close(fd)

    def _folded_roster(self, fd: int, end: int) -> Roster:
        kept = cache.load(self.cache(ROLLBOOK)) or b""
        start = kept.find(b"\n") + 1
        at = tuple(map(int, kept[:start].split())) if start else cache.NOWHERE
        if not cache.holds(fd, at):
            start, at = 0, cache.NOWHERE
        if start and at[1] >= end:  # beyond: another wrote an event, and this down, since ``end`` was asked for
            return Rollbook(kept, start)
        news = parse_roster(line for _, line in lines_of(fd, at[1], end))
        roster = Roster(news, Rollbook(kept, start) if start else None)
        if self.derives and boundary(fd, end) == end:
            head = b"%d %d %d\n" % cache.mark(fd, end)
            cache.save(self.cache(ROLLBOOK), head + rollbook.written(roster))
        return roster

    def heart(self, session_id: str) -> str:
        """The heartbeat file of a session; it is also what the session's delivery lock is taken on."""
        return self.path(paths.HEARTBEATS, check_id(session_id))

    def delivery(self, session_id: str) -> FileLock:
        """The session's delivery lock: one process at a time chooses, shows and records its mail."""
        self._make(paths.HEARTBEATS)
        return FileLock(self.heart(session_id), self.wait)

    def role_delivery(self, wait: float | None = None) -> FileLock:
        """The lock all sessions share while role mail is chosen, shown and recorded: no message goes to two."""
        self._make(paths.HEARTBEATS)
        return FileLock(self.path(paths.HEARTBEATS), self.wait if wait is None else wait)

    def beat(self, session_id: str, now: int) -> None:
        """Note that the session lives (``now`` in ms)."""
        self._make(paths.HEARTBEATS)
        path = self.heart(session_id)
        try:
            system.close(paths.open_file(path, system.O_WRONLY | system.O_CREAT))
            system.utime(path, ns=(now * 1_000_000, now * 1_000_000))
        except OSError as error:
            raise paths.storage_failed("touch", path, error) from None

    def last_seen(self) -> dict[str, int]:
        """Session id to the ms of its last heartbeat."""
        try:
            with system.scandir(self.path(paths.HEARTBEATS)) as entries:
                return {e.name: e.stat(follow_symlinks=False).st_mtime_ns // 1_000_000 for e in entries}
        except OSError:
            return {}

    def _make(self, name: str) -> None:
        try:
            system.mkdir(self.path(name), 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise paths.storage_failed("make", self.path(name), error) from None


def parse_messages(lines: Iterable[bytes]) -> dict[str, Message]:
    """Messages by id in log order; of a duplicate id the first written counts."""
    found: dict[str, Message] = {}
    for line in lines:
        message = codec.message(line)
        if not isinstance(message, BadLine):
            found.setdefault(message.id, message)
    return found


def parse_reads(lines: Iterable[bytes]) -> Iterator[Read]:
    """The read records, in log order."""
    for line in lines:
        record = codec.read(line)
        if not isinstance(record, BadLine):
            yield record


def parse_roster(lines: Iterable[bytes]) -> Iterator[RosterEvent]:
    """The roster events, in log order."""
    for line in lines:
        event = codec.roster_event(line)
        if not isinstance(event, BadLine):
            yield event


class OpenLogs:
    """See ``Logs.open``. The logs' ends are fixed when they are opened.

    The steward replaces the messages log before the reads log; so the reads opened after the messages, and the
    messages found still in place after that, are complete for them. The ends are fixed in the other order: every read
    before ``reads_end`` is of a message before ``messages_end``.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self.messages: int | None = None
        self.reads: int | None = None
        self.roster: int | None = None

    def __enter__(self) -> Self:
        for _ in range(100):
            self.messages, self.reads = self._logs.messages.open(), self._logs.reads.open()
            reads, messages = _end(self.reads), _end(self.messages)
            if messages[0] == _end(self._logs.messages.path)[0]:
                break
            self._close()
        else:
            raise Busy(f"{self._logs.messages.path} is replaced faster than it can be read", "try again")
        self.roster = self._logs.roster.open()
        self.ends: Ends = messages, reads, _end(self.roster)
        (_, self.messages_end), (_, self.reads_end), (_, self.roster_end) = self.ends
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for fd in (self.messages, self.reads, self.roster):
            if fd is not None:
                system.close(fd)
        self.messages = self.reads = self.roster = None


def _end(log: int | str | None) -> End:
    try:
        at = None if log is None else system.stat(log)
    except FileNotFoundError:
        at = None
    return (0, 0) if at is None else (at.st_ino, at.st_size)
