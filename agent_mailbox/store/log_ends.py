"""Where a log ended when our last writer left it, as one line of text.

Belongs here: that line, and holding a log against it. What follows from a difference is ``custody``'s.
"""

from __future__ import annotations

from ..core.records import Record
from . import paths, system
from .tails import tail


class LogEnd(Record):
    """Where a log ended when our last writer left it, and what of it is proven.

    ``inode``, ``size`` and ``checksum`` (``tails.tail``) tell whether the log continues that.
    ``generation`` counts how often the log was replaced; what stands before ``base`` was put there by the replacement.
    ``count`` and ``digest`` are of all lines that decide, in their order. What stands before ``before`` was there when
    the record was made, or retells that.
    """

    inode: int = 0
    size: int = 0
    checksum: int = 0
    generation: int = 0
    base: int = 0
    count: int = 0
    digest: bytes = b"-"
    before: int = 0

    def text(self) -> bytes:
        """Return the entry as it is written: always as long, so that one write replaces another."""
        numbers = (self.inode, self.size, self.checksum, self.generation, self.base, self.count, self.before)
        return b" ".join([*(b"%020d" % number for number in numbers), self.digest.ljust(32)]) + b"\n"

    def continues(self, fd: int) -> bool:
        """Return whether the open log continues what was left."""
        there = system.fstat(fd)
        if not self.size:
            return True
        return there.st_ino == self.inode and there.st_size >= self.size and tail(fd, self.size) == self.checksum


def read_entry(text: bytes) -> LogEnd | None:
    """Return the entry that a text is; None for what is none."""
    words = text.split()
    if len(words) != 8 or not all(word.isdigit() for word in words[:7]):
        return None
    inode, size, checksum, generation, base, count, before = map(int, words[:7])
    return LogEnd(inode, size, checksum, generation, base, count, words[7], before)


def left(path: str, entry: LogEnd | None = None) -> LogEnd:
    """Return an entry for a log as it is now: all that it holds stands below the base."""
    entry = entry or LogEnd()
    try:
        fd = paths.open_file(path, system.O_RDONLY)
    except FileNotFoundError:
        return entry.replace(inode=0, size=0, checksum=0, base=0)
    try:
        there = system.fstat(fd)
        size = there.st_size
        return entry.replace(inode=there.st_ino, size=size, checksum=tail(fd, size), base=size)
    finally:
        system.close(fd)
