"""The mailbox at one moment, for a copy that hinders nobody.

Belongs here: the files of a mailbox, and holding them still. A log only grows, and is replaced only by another file
under its name. So an open file and its length, both taken under the locks, are the log of that moment as long as the
file is open. Copying takes its time; the locks are held for some system calls.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from ..core.address import is_id
from ..core.records import Record
from ..store.archive import rotation
from ..store.archive.archive import LOCK
from ..store.archive.manifest import NAME
from ..store.files import paths, system
from ..store.files.lines import boundary, chunks
from ..store.files.small_files import open_file
from ..store.locks.existing_lock import ReadLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from ..store.archive.archive import Archive
    from ..store.log.logs import Logs

PATIENCE = 12
"""The waits for a lock that a backup waits for a steward: cron may begin both at once, and a run may take a minute."""

LATEST = (1 << 63) - 1
"""The last instant (ns) that a file may have in a backup."""


class SnapshotFile(Record):
    """One file: its name within the mailbox, open, and how many bytes of it belong to the moment."""

    name: str
    fd: int
    size: int

    def read_chunks(self) -> Iterator[bytes]:
        """Yield its bytes."""
        return chunks(self.fd, 0, self.size)


class Snapshot:
    """The parts of a mailbox, for a ``with`` block, and the heartbeats (session to ns). ``Busy`` beside a steward."""

    def __init__(self, logs: Logs, archive: Archive) -> None:
        self._logs = logs
        self._archive = archive
        self._open = ExitStack()
        self.parts: list[SnapshotFile] = []
        self.heartbeats: dict[str, int] = {}

    def __enter__(self) -> Self:
        with self._open, ExitStack() as locks:
            for lock in self._locks_in_order():
                locks.enter_context(lock)
            for name in (paths.MESSAGES, paths.READS, paths.ROSTER, paths.CONFIG):
                self._take_file(name, self._logs.path(name), whole_lines=False)
            for name in (*self._archive.files(), NAME):
                path = system.join(self._archive.directory, name)
                self._take_file(f"{paths.ARCHIVE}/{name}", path, whole_lines=True)
            seen = self._logs.last_seen()  # of all files there: a file manager may have left one of its own
            self.heartbeats = {who: min(max(ms * 1_000_000, 0), LATEST) for who, ms in seen.items() if is_id(who)}
            self._open = self._open.pop_all()
        return self

    def _locks_in_order(self) -> Iterator[AbstractContextManager[object]]:
        """Yield the locks, in their order; of a read-only mailbox, those of the files that exist."""
        logs, kept = self._logs, system.join(self._archive.directory, LOCK)
        writable = system.access(logs.messages.path, system.W_OK)
        if system.access(kept, system.W_OK) or (writable and not paths.is_there(kept)):
            yield rotation.alone(self._archive, PATIENCE * logs.wait)
        elif paths.is_there(kept):
            yield ReadLock(kept, PATIENCE * logs.wait)
        for log in (logs.messages, logs.reads, logs.roster):
            if paths.is_there(log.path):  # looking makes no file
                yield log.held() if system.access(log.path, system.W_OK) else ReadLock(log.path, logs.wait)

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _take_file(self, name: str, path: str, *, whole_lines: bool) -> None:
        """Take a file; of an archived log only whole lines, since the next run may cut off a killed run's torn end."""
        try:
            fd = open_file(path, system.O_RDONLY)
        except FileNotFoundError:
            return
        self._open.callback(system.close, fd)
        size = system.fstat(fd).st_size
        self.parts.append(SnapshotFile(name, fd, boundary(fd, size) if whole_lines else size))
