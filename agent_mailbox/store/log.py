"""An append-only log of JSON lines: durable appends that a torn tail cannot swallow, reads from a position.

Belongs here: bytes, positions, the lock, the sync. Must not know what a line says (``core.codec``). Nothing above
knows that a position is a byte offset.
"""

from __future__ import annotations

import fcntl
import os

from ..core.codec import MAX_LINE
from ..errors import StorageFailed
from .lock import WAIT, FileLock
from .paths import open_file, storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

CHUNK = 1 << 20


class Log:
    """One log file. It need not exist to be read; the first append makes it."""

    def __init__(self, path: str, wait: float = WAIT) -> None:
        self.path = path
        self.wait = wait

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """(position, line without newline) from ``start`` on; see ``lines_of``."""
        fd = self.open()
        if fd is None:
            return
        try:
            yield from lines_of(fd, start)
        finally:
            os.close(fd)

    def open(self) -> int | None:
        """A descriptor to read from, or None if the log does not exist."""
        try:
            return open_file(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None

    def is_at_path(self, fd: int | None) -> bool:
        """Is the open file still the one at the path (the steward may have swapped it)?"""
        try:
            there = os.stat(self.path)
        except OSError:
            return fd is None
        if fd is None:
            return False
        here = os.fstat(fd)
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)

    def held(self) -> HeldLog:
        """The log under its lock, for a ``with`` block that looks and then appends."""
        return HeldLog(self.path, self.wait)

    def append(self, lines: Iterable[bytes]) -> None:
        """Append whole lines (with their newlines) durably; raises ``StorageFailed`` if that is not certain."""
        with self.held() as log:
            log.append(lines)


class HeldLog(FileLock):
    """A locked log. What was appended is synced when the block ends, *after* unlocking: the kernel then groups the
    syncs of concurrent writers. A failed sync is a failed command, never retried into an acknowledgement."""

    _dirty = False

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """The log's lines, from ``start`` on."""
        return lines_of(self.fd, start)

    def append(self, lines: Iterable[bytes]) -> None:
        """Write the lines in one go behind whatever is there; a failed write takes back only its own bytes."""
        data = b"".join(lines)
        if not data:
            return
        try:
            size = os.fstat(self.fd).st_size
            if size == 0:
                sync_directory(os.path.dirname(self.path))
            elif os.pread(self.fd, 1, size - 1) != b"\n":
                # A whole record that lost its newline gets it; a torn one is isolated: the same byte serves both.
                data = b"\n" + data
            self._write(data, size)
        except OSError as error:
            raise storage_failed("append to", self.path, error) from None

    def sync(self) -> None:
        """Have what is there already synced when the block ends (an id that was found is acknowledged again)."""
        self._dirty = True

    def _write(self, data: bytes, size: int) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self.fd, data[written:])
        except OSError:
            if written and os.fstat(self.fd).st_size == size + written:
                os.ftruncate(self.fd, size)
            raise
        self._dirty = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._dirty and kind is None:
                self._unlock_then_sync()
        finally:
            os.close(self.fd)

    def _unlock_then_sync(self) -> None:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_UN)
            os.fdatasync(self.fd)
        except OSError as error:
            raise StorageFailed(
                f"cannot sync {self.path}: {error.strerror}; what was written may or may not last",
                "repeat the command when the disk is well; with the same id nothing is doubled",
            ) from None


def sync_directory(path: str) -> None:
    """Make a new or renamed name in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lines_of(fd: int, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """(position, line without newline) from ``start`` to the end, a last one without newline included.

    Empty lines are passed over. Of a line beyond ``MAX_LINE`` only ``MAX_LINE + 1`` bytes come out, which no decoder
    takes: memory stays bounded whatever stands in the file.
    """
    position, rest, oversize = start, b"", False
    offset = start
    while chunk := os.pread(fd, CHUNK, offset):
        offset += len(chunk)
        pieces = (rest + chunk).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            if piece and not oversize:
                yield position, piece[: MAX_LINE + 1]
            position += len(piece) + 1
            oversize = False
        if len(rest) > MAX_LINE:
            if not oversize:
                yield position, rest[: MAX_LINE + 1]
            oversize = True
            position += len(rest)
            rest = b""
    if rest and not oversize:
        yield position, rest
