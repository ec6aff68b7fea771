"""Open files and their locks, and what calls tell of files: a status, the entries of a directory.

Belongs here: the values that the calls of ``kernel`` take and return.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.disk import Inode


class OpenFile:
    """An open file description."""

    __slots__ = ("appends", "failures", "inode", "path", "position", "reads", "ready", "watched", "writes")

    def __init__(self, inode: Inode | None, path: str, flags: int) -> None:
        self.inode = inode
        self.path = path
        self.position = 0
        self.appends = bool(flags & os.O_APPEND)
        self.writes = flags & os.O_ACCMODE != os.O_RDONLY
        self.reads = flags & os.O_ACCMODE != os.O_WRONLY
        self.failures = inode.failures if inode is not None else 0
        """The failed syncs of the file that were told here, or came before it was opened."""
        self.ready = False
        """Of a watch: has something changed?"""
        self.watched: list[Inode] = []

    def lock(self, inode: Inode, exclusive: bool) -> bool:
        """Get the lock of its file, if it is to be had."""
        if inode.lock is self if exclusive else self in inode.sharers:
            return True
        self.unlock(inode)  # a lock of the other kind goes first, even if the new one is not to be had (flock(2))
        if inode.lock is not None or (exclusive and inode.sharers):
            return False
        if exclusive:
            inode.lock = self
        else:
            inode.sharers.append(self)
        return True

    def unlock(self, inode: Inode) -> None:
        """Give the lock of its file back, if it has that."""
        if inode.lock is self:
            inode.lock = None
        if self in inode.sharers:
            inode.sharers.remove(self)


class Status:
    """What ``stat`` tells."""

    __slots__ = ("st_ctime_ns", "st_dev", "st_ino", "st_mode", "st_mtime_ns", "st_nlink", "st_size", "st_uid")

    def __init__(self, inode: Inode) -> None:
        self.st_ino = inode.number
        self.st_dev = 1
        self.st_mode = inode.st_mode
        self.st_size = len(inode.data)
        self.st_mtime_ns = inode.mtime
        self.st_ctime_ns = inode.ctime
        self.st_uid = 1000
        self.st_nlink = 1

    def __repr__(self) -> str:
        return f"inode {self.st_ino}, {self.st_size} bytes"

    @property
    def st_mtime(self) -> float:
        """The time in seconds."""
        return self.st_mtime_ns / 1e9


class Entry:
    """An entry of ``scandir``."""

    def __init__(self, name: str, inode: Inode) -> None:
        self.name = name
        self._inode = inode

    def stat(self, *, follow_symlinks: bool = True) -> Status:
        return Status(self._inode)


class Entries:
    """What ``scandir`` returns."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    def __repr__(self) -> str:
        return f"{len(self._entries)} entries"

    def __enter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __exit__(self, *_: object) -> None:
        return None


def failed(number: int, path: object = None) -> OSError:
    """The error that a system call would raise."""
    return OSError(number, os.strerror(number), path)
