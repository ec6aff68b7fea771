"""The three logs of a mailbox, read together so that they agree.

Belongs here: which log holds what, reading them into a folded ``State``, heartbeats. Telling records from foreign
lines is the codec's; what they mean is the core's.
"""

from __future__ import annotations

import os

from ..core import codec
from ..core.claims import Reads
from ..core.inbox import State
from ..core.records import BadLine, Message, Read
from ..core.roster import Roster
from ..errors import Busy
from . import paths
from .lock import WAIT, FileLock
from .log import Log, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Logs:
    """The mailbox directory as logs. ``wait`` is how many seconds to wait for any lock in it."""

    def __init__(self, directory: str, wait: float = WAIT) -> None:
        self.directory = directory
        self.wait = wait
        self.messages = Log(self.path(paths.MESSAGES), wait)
        self.reads = Log(self.path(paths.READS), wait)
        self.roster = Log(self.path(paths.ROSTER), wait)

    def path(self, *names: str) -> str:
        """A path inside the mailbox."""
        return os.path.join(self.directory, *names)

    def state(self, ttls: Mapping[str, float | None]) -> State:
        """Everything live, folded."""
        messages, reads = self._messages_and_reads()
        return State(messages=messages, reads=reads, roster=self.read_roster(), ttls=ttls)

    def _messages_and_reads(self) -> tuple[dict[str, Message], Reads]:
        """Messages with at least the reads that belong to them.

        The steward replaces the messages log first, the reads log second; opened in that order and found unchanged
        after the second open, the reads are complete for the messages.
        """
        for _ in range(100):
            messages_fd, reads_fd = self.messages.open(), self.reads.open()
            try:
                if not self.messages.is_at_path(messages_fd):
                    continue
                messages = parse_messages(line for _, line in lines_of(messages_fd)) if messages_fd is not None else {}
                reads = parse_reads(line for _, line in lines_of(reads_fd)) if reads_fd is not None else ()
                return messages, Reads(reads)
            finally:
                for fd in (messages_fd, reads_fd):
                    if fd is not None:
                        os.close(fd)
        raise Busy(f"{self.messages.path} is replaced faster than it can be read", "try again")

    def read_records(self) -> Iterator[Read]:
        """The live read records, in log order."""
        return parse_reads(line for _, line in self.reads.lines())

    def read_roster(self) -> Roster:
        """The roster, folded."""
        return parse_roster(line for _, line in self.roster.lines())

    def heart(self, session_id: str) -> str:
        """The heartbeat file of a session; it is also what the session's delivery lock is taken on."""
        return self.path(paths.HEARTBEATS, session_id)

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
            os.close(paths.open_file(path, os.O_WRONLY | os.O_CREAT))
            os.utime(path, ns=(now * 1_000_000, now * 1_000_000))
        except OSError as error:
            raise paths.storage_failed("touch", path, error) from None

    def last_seen(self) -> dict[str, int]:
        """Session id to the ms of its last heartbeat."""
        try:
            with os.scandir(self.path(paths.HEARTBEATS)) as entries:
                return {e.name: e.stat(follow_symlinks=False).st_mtime_ns // 1_000_000 for e in entries}
        except OSError:
            return {}

    def _make(self, name: str) -> None:
        try:
            os.mkdir(self.path(name), 0o700)
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


def parse_roster(lines: Iterable[bytes]) -> Roster:
    """The roster of its events."""
    events = (codec.roster_event(line) for line in lines)
    return Roster(event for event in events if not isinstance(event, BadLine))
