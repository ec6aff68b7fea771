"""Derived files: what they are checked by, and how they are written.

Belongs here: a sealed file that may be torn, stale, forged or gone, and the ``Mark`` by which such a file knows
whether a log still is the one it was derived from. Nothing here is ever the truth; a file that does not check out
does not exist.
"""

from __future__ import annotations

from . import system
from .tails import tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SECOND = 1_000_000_000
VERSION = b"agent-mailbox 4"
"""Changes with any format below; a file of another version is rebuilt, never migrated."""
_HEAD = 64
"""Bytes that hold the first line of a derived file: the version, the length of what follows, its seal."""

Mark = tuple[int, int, int]
"""(inode, position, checksum of the ``tails.TAIL`` bytes before the position) of a log read so far."""
NOWHERE: Mark = (0, 0, 0)


def mark(fd: int, position: int, inode: int | None = None) -> Mark:
    """The mark of an open log at a position; ``inode`` is the log's, where it is known."""
    return system.fstat(fd).st_ino if inode is None else inode, position, tail(fd, position)


def holds(fd: int | None, at: Sequence[int], inode: int | None = None) -> bool:
    """Is the open log (None: no file) the one the mark was made of, with nothing before its position changed?"""
    if fd is None:
        return at[1] == 0
    return at[1] == 0 or tuple(at) == mark(fd, at[1], inode)


def load(path: str) -> bytes | None:
    """What ``save`` wrote, or None if there is nothing sound at the path.

    The time is looked at before and after reading: one that is the seal both times says that nobody wrote in between,
    which would give the beginning of one content and the end of another.
    """
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
    except OSError:
        return None
    try:
        there = system.fstat(fd)
        head, _, _ = system.pread(fd, _HEAD, 0).partition(b"\n")
        size = head[len(VERSION) + 1 :].partition(b" ")[0]
        # By itself, for it may be long; behind it may stand what is left of a longer one.
        body = system.pread(fd, min(int(size), there.st_size), len(head) + 1) if size.isdigit() else b""
        if system.fstat(fd).st_mtime_ns != there.st_mtime_ns:
            return None
    except OSError:
        return None
    finally:
        system.close(fd)
    return body if head == _head(body, there.st_mtime_ns // SECOND) else None


def save(path: str, body: bytes) -> None:
    """Write a derived file; where it cannot be written, nothing is lost but time.

    The file holds a random number and bears it as its modification time: whoever else writes to it, or dies writing,
    breaks the seal. (A checksum would cost as much as reading the file.) It is written in place; renaming over the old
    one would be neater and costs 0.7 ms, for file systems then write the new one out at once, as if it were precious.
    It is not cut either: of two who write at once, one would cut what the other sealed.
    """
    seal = int.from_bytes(system.urandom(4), "big") >> 1
    data = _head(body, seal) + b"\n" + body
    try:
        try:
            fd = _create(path)
        except FileNotFoundError:
            system.make_directory(system.dirname(path))
            fd = _create(path)
        try:
            if system.write(fd, data) == len(data):  # else the disk is nearly full, and what is there stays unsealed
                system.utime(fd, ns=(seal * SECOND, seal * SECOND))
        finally:
            system.close(fd)
    except OSError:
        pass


def _create(path: str) -> int:
    return system.open(path, system.O_WRONLY | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW, 0o600)


def _head(body: bytes, seal: int) -> bytes:
    return b"%s %d %d" % (VERSION, len(body), seal)
