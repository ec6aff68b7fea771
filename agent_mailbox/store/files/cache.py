"""Derived files: how they are checked, and how they are written.

Belongs here: a sealed file that may be torn, stale, forged or missing. The ``Mark`` tells whether a log is still the
one that a file was derived from. Its checksum tells whether a log holds what it held up to a position. Nothing here is
ever the truth; a file that fails its check counts as missing.
"""

from __future__ import annotations

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SECOND = 1_000_000_000
VERSION = b"agent-mailbox 10"
"""Changes with any format below; a file of another version is rebuilt, never migrated."""
_HEAD = 64
"""Bytes that hold the first line of a derived file: the version, the length of what follows, its seal."""

TAIL = 512
"""Bytes before a position that are compared: inodes are reused, and a restored file may have the same size."""
Mark = tuple[int, int, int]
"""(inode, position, checksum of the ``TAIL`` bytes before the position) of a log read so far."""
NOWHERE: Mark = (0, 0, 0)


def tail(fd: int, end: int) -> int:
    """Return the checksum of the bytes before a position of an open log."""
    start = max(0, end - TAIL)
    return checksum(system.pread(fd, end - start, start))


def checksum(data: bytes) -> int:
    """Return a number that changes with any flipped, lost or added byte: the data modulo a prime.

    A CRC would cost the import of ``zlib``, 0.35 ms.
    """
    return (int.from_bytes(data, "little") * 257 + len(data)) % 1_073_741_789


def mark(fd: int, position: int, inode: int | None = None) -> Mark:
    """Return the mark of an open log at a position; ``inode`` is the log's, if the caller knows it."""
    return system.fstat(fd).st_ino if inode is None else inode, position, tail(fd, position)


def holds(fd: int | None, at: Sequence[int], inode: int | None = None) -> bool:
    """Return whether the mark was made of the open log (None: no file), unchanged up to the mark's position."""
    if fd is None:
        return at[1] == 0
    return at[1] == 0 or tuple(at) == mark(fd, at[1], inode)


def load(path: str) -> bytes | None:
    """Return what ``save`` wrote, or None if the path holds nothing sound.

    The file's time must be the seal before and after the read. Then nobody wrote in between, so the beginning and the
    end are of one content. A file that is older than the machine's start counts for nothing. It was never synced: a
    power failure may have left its time and its beginning alone.
    """
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
    except OSError:
        return None
    try:
        there = system.fstat(fd)
        if there.st_ctime_ns < system.booted():
            return None
        head, _, _ = system.pread(fd, _HEAD, 0).partition(b"\n")
        size = head[len(VERSION) + 1 :].partition(b" ")[0]
        # A read of its own, for the body may be long; the rest of a longer one may follow it.
        body = system.pread(fd, min(int(size), there.st_size), len(head) + 1) if size.isdigit() else b""
        if system.fstat(fd).st_mtime_ns != there.st_mtime_ns:
            return None
    except OSError:
        return None
    finally:
        system.close(fd)
    return body if head == _head(len(body), there.st_mtime_ns // SECOND) else None


def sealed(fd: int) -> tuple[int, int] | None:
    """Return where the body of an open derived file begins and how long it is; None if its head or time is unsound."""
    there = system.fstat(fd)
    head, _, _ = system.pread(fd, _HEAD, 0).partition(b"\n")
    size = head[len(VERSION) + 1 :].partition(b" ")[0]
    is_sound = size.isdigit() and there.st_ctime_ns >= system.booted()
    return (len(head) + 1, int(size)) if is_sound and head == _head(int(size), there.st_mtime_ns // SECOND) else None


def save(path: str, body: bytes) -> None:
    """Write a derived file; a failure costs time only.

    The file holds a random number and has it as its modification time. Any other write, or a writer's death, breaks the
    seal; a checksum would cost as much as reading the file. The file is written in place: a rename costs 0.7 ms, since
    file systems then write the new file out at once. It is not truncated: of two writers at once, one would cut what
    the other sealed.
    """
    seal = int.from_bytes(system.urandom(4), "big") >> 1
    data = _head(len(body), seal) + b"\n" + body
    try:
        try:
            fd = _create(path)
        except FileNotFoundError:
            system.make_directory(system.dirname(path))
            fd = _create(path)
        try:
            if system.write(fd, data) == len(data):  # else the disk is nearly full: the file stays unsealed
                system.utime(fd, ns=(seal * SECOND, seal * SECOND))
        finally:
            system.close(fd)
    except OSError:
        pass


def _create(path: str) -> int:
    flags = system.O_WRONLY | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK
    return system.open(path, flags, 0o600)


def _head(size: int, seal: int) -> bytes:
    return b"%s %d %d" % (VERSION, size, seal)
