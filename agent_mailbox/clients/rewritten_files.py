"""Reading files that another program rewrites meanwhile.

Belongs here: their bytes, and a stamp that shows a change. Everything here only reads, and takes no lock.
"""

from __future__ import annotations

import os
import stat
import time

from ..core.records import Record

MAX_FILE = 64 << 20
"""Most bytes of an inbox that are read: far more than any the client still gets through."""
_RACY = 100_000_000
"""Nanoseconds: a file written so lately may change again under the same time, so its stamp is not trusted."""
_TRIES = 5

Stamp = tuple[int, int, int]


class Content(Record):
    """A file as it was read. ``stamp``: (inode, mtime in ns, size); None: read it again next time."""

    data: bytes
    stamp: Stamp | None


def stamp_of(path: str) -> Stamp | None:
    """Return a stamp that shows whether a file changed, by ``stat``; None if missing, or if it may change unnoticed."""
    try:
        at = os.stat(path)
    except OSError:
        return None
    return None if _is_fresh(at) else (at.st_ino, at.st_mtime_ns, at.st_size)


def _is_fresh(at: os.stat_result) -> bool:
    return abs(time.time_ns() - at.st_mtime_ns) < _RACY


def read_content(path: str, most: int = MAX_FILE) -> Content | None:
    """Return a regular file's bytes; None if unreadable. One written to meanwhile is read again; ``format`` takes a
    half-written one."""
    content = None
    for _ in range(_TRIES):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError):
            return content
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or before.st_size > most:
                return None
            with open(fd, "rb", closefd=False) as file:
                data = file.read(most)
            after = os.fstat(fd)
        except OSError:
            return content
        finally:
            os.close(fd)
        same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
        stamp = (after.st_ino, after.st_mtime_ns, after.st_size)
        content = Content(data, stamp if same and not _is_fresh(after) else None)
        if same:
            break
    return content
