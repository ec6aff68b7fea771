"""An append-only log of JSON lines: durable appends that a torn tail cannot swallow, reads from a position.

Belongs here: bytes, positions, the lock, the sync. Must not know what a line says (``core.codec``). Nothing above
knows that a position is a byte offset.
"""

from __future__ import annotations

import fcntl

from ..core.codec import MAX_LINE
from ..errors import StorageFailed
from . import system
from .lock import WAIT, FileLock
from .paths import open_file, storage_failed
from .trail import Trail, new_epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

CHUNK = 1 << 20


class Log:
    """One log file. It need not exist to be read; the first append makes it."""

    def __init__(self, path: str, wait: float = WAIT, trail: Trail | None = None) -> None:
        self.path = path
        self.wait = wait
        self.trail = trail

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """(position, line without newline) from ``start`` on; see ``lines_of``."""
        fd = self.open()
        if fd is None:
            return
        try:
            yield from lines_of(fd, start)
        finally:
            system.close(fd)

    def open(self) -> int | None:
        """A descriptor to read from, or None if the log does not exist."""
        try:
            return open_file(self.path, system.O_RDONLY)
        except FileNotFoundError:
            return None

    def is_at_path(self, fd: int | None) -> bool:
        """Is the open file still the one at the path (the steward may have swapped it)?"""
        try:
            there = system.stat(self.path)
        except OSError:
            return fd is None
        if fd is None:
            return False
        here = system.fstat(fd)
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)

    def held(self) -> HeldLog:
        """The log under its lock, for a ``with`` block that looks and then appends."""
        return HeldLog(self.path, self.wait, self.trail)

    def append(self, lines: Iterable[bytes], disturbs: Iterable[str] | None = ()) -> None:
        """Append whole lines (with their newlines) durably; raises ``StorageFailed`` if that is not certain."""
        with self.held() as log:
            log.append(lines, disturbs)


class HeldLog(FileLock):
    """A locked log. What was appended is synced when the block ends, *after* unlocking: the kernel then groups the
    syncs of concurrent writers. A failed sync is a failed command, never retried into an acknowledgement."""

    files_only = True

    def __init__(self, path: str, wait: float = WAIT, trail: Trail | None = None) -> None:
        super().__init__(path, wait)
        self._trail = trail
        self._dirty = False

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """The log's lines, from ``start`` on."""
        return lines_of(self.fd, start)

    def append(self, lines: Iterable[bytes], disturbs: Iterable[str] | None = ()) -> None:
        """Write the lines in one go behind whatever is there; a failed write takes back only its own bytes.

        ``disturbs`` are the sessions whose quiet stamps must go first (None: all; see ``trail``).
        """
        data = b"".join(lines)
        try:
            while data:
                there = system.fstat(self.fd)
                inode, size = there.st_ino, there.st_size
                left = self._left_by_us(inode, size)
                if size == 0 or (left is None and self._trail is not None):
                    # Whoever made this file, or put it in the place of another, may have died before its name was
                    # synced.
                    sync_directory(system.dirname(self.path))
                if size and system.pread(self.fd, 1, size - 1) != b"\n":
                    # A whole record that lost its newline gets it; a torn one is isolated: the same byte serves both.
                    data = b"\n" + data
                self._announce(inode, size + len(data), left, disturbs)
                self._write(data, size)
                data = self._swallowed(data, size)
        except OSError as error:
            raise storage_failed("append to", self.path, error) from None

    def _swallowed(self, data: bytes, size: int) -> bytes:
        """What must be written again, because a program without the lock left a torn line where ours begins, between
        our look at the ``size`` and our write: nothing, but for that."""
        more = system.fstat(self.fd).st_size - size
        if more == len(data):
            return b""
        there = system.pread(self.fd, more, size)
        place = there.find(data)
        if place < 0:
            return data  # cut in two
        if place == 0 or data.startswith(b"\n") or there[place - 1 : place] == b"\n":
            return b""
        return data[: data.index(b"\n") + 1]

    def _left_by_us(self, inode: int, size: int) -> int | None:
        """The log's epoch if it is as our last writer left it; None if that is not certain."""
        left = self._trail.ended(self.path) if self._trail is not None else None
        return left[2] if left is not None and left[:2] == (inode, size) else None

    def _announce(self, inode: int, end: int, epoch: int | None, disturbs: Iterable[str] | None) -> None:
        """Before the append: stamps go, all of them where a foreign program wrote since we last did (no epoch)."""
        if self._trail is None:
            return
        self._trail.disturb(None if epoch is None else disturbs)
        self._trail.leave(self.path, inode, end, new_epoch() if epoch is None else epoch)

    def sync(self) -> None:
        """Have what is there already synced when the block ends (an id that was found is acknowledged again)."""
        self._dirty = True

    def replace(self, lines: Iterable[bytes], size: int, keep_as: str | None = None) -> None:
        """Put a fresh log of ``lines`` (without newlines) in the place of this one, of which ``size`` bytes were read.

        What an unlocked writer added meanwhile follows them. ``keep_as`` is a name to keep the old file under.
        """
        aside = self.path + ".new"
        try:
            fd = system.open(
                aside, system.O_WRONLY | system.O_CREAT | system.O_TRUNC | system.O_NOFOLLOW | system.O_CLOEXEC, 0o600
            )
            with open(fd, "wb") as file:
                file.writelines(line + b"\n" for line in lines)
                file.flush()
                system.fsync(fd)
                there = system.fstat(fd)
            if keep_as is not None:
                system.link(self.path, keep_as)
            inode = system.fstat(self.fd).st_ino
            self._announce(inode, size, self._left_by_us(inode, size), ())
            system.rename(aside, self.path)
            sync_directory(system.dirname(self.path))
            if self._trail is not None:  # only now: it also says that the log's name is safe
                self._trail.leave(self.path, there.st_ino, there.st_size, new_epoch())
            late = system.pread(self.fd, system.fstat(self.fd).st_size - size, size)
        except OSError as error:
            raise storage_failed("replace", self.path, error) from None
        if late:
            Log(self.path, trail=self._trail).append([late if late.endswith(b"\n") else late + b"\n"], None)

    def _write(self, data: bytes, size: int) -> None:
        written = 0
        try:
            while written < len(data):
                written += system.write(self.fd, data[written:])
        except OSError:
            if written and system.fstat(self.fd).st_size == size + written:
                system.ftruncate(self.fd, size)
            raise  # the announced end is now too far: the next writer takes us for a foreigner, which is safe
        self._dirty = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._dirty and kind is None:
                self._unlock_then_sync()
        finally:
            self.release()

    def _unlock_then_sync(self) -> None:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_UN)
            system.fdatasync(self.fd)
        except OSError as error:
            raise StorageFailed(
                f"cannot sync {self.path}: {error.strerror}; what was written may or may not last",
                "repeat the command when the disk is well; with the same id nothing is doubled",
            ) from None


def sync_directory(path: str) -> None:
    """Make a new or renamed name in a directory durable."""
    fd = system.open(path, system.O_RDONLY | system.O_DIRECTORY | system.O_CLOEXEC)
    try:
        system.fsync(fd)
    finally:
        system.close(fd)


def lines_of(fd: int, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(position, line without newline) from ``start`` to ``end`` (or the file's), a last one without newline included;
    none where ``start`` is beyond, as of a cursor that another process has moved on meanwhile.

    Empty lines are passed over. Of a line beyond ``MAX_LINE`` only ``MAX_LINE + 1`` bytes come out, which no decoder
    takes: memory stays bounded whatever stands in the file.
    """
    position, rest, oversize = start, b"", False
    offset = start
    while chunk := system.pread(fd, CHUNK if end is None else max(0, min(CHUNK, end - offset)), offset):
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


def line_at(fd: int, position: int) -> bytes:
    """The line that begins at a position."""
    found, _, ended = system.pread(fd, 4096, position).partition(b"\n")
    if ended or len(found) < 4096:
        return found
    return next((line for _, line in lines_of(fd, position)), b"")


def boundary(fd: int, end: int) -> int:
    """The position after the last whole line before ``end``."""
    reach = 512
    while end > 0:
        start = max(0, end - reach)
        place = system.pread(fd, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end, reach = start, min(reach * 8, CHUNK)
    return 0
