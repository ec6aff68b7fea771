"""The end of a log as our last writer left it, as one line of text.

Belongs here: that line, and comparing a log with it. ``custody`` decides what a difference means.
"""

from __future__ import annotations

from ...core.records import Record
from ..files import paths, system
from ..files.tails import tail


class LogEnd(Record):
    """The end of a log as our last writer left it, and what of the log is proven.

    ``inode``, ``size`` and ``checksum`` (``tails.tail``) tell whether the log continues that. ``generation`` counts the
    log's replacements; the replacement itself wrote the lines before ``base``. ``count`` and ``digest`` cover all
    deciding lines, in their order. Lines before ``before`` are older than the record, or retell such lines.

        00000000000000131075 00000000000000001624 … 00000000000000000002 3f0c…   (seven numbers, then the digest)
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
        """Return the entry as it is written: of fixed length, so that one write replaces another."""
        numbers = (self.inode, self.size, self.checksum, self.generation, self.base, self.count, self.before)
        return b" ".join([*(b"%020d" % number for number in numbers), self.digest.ljust(32)]) + b"\n"

    def continues(self, fd: int) -> bool:
        """Return whether the open log continues this entry."""
        there = system.fstat(fd)
        if not self.size:
            return True
        return there.st_ino == self.inode and there.st_size >= self.size and tail(fd, self.size) == self.checksum

    def difference(self, fd: int | None) -> str:
        """Return in words how an open log, or a missing one, differs from this entry, which it does not continue."""
        if fd is None:
            return f"is gone; it had {self.size} bytes"
        there = system.fstat(fd)
        if there.st_size < self.size:
            return f"has {there.st_size} bytes, and had {self.size}: its last lines are missing"
        if there.st_ino != self.inode:
            return "is another file than the one that was written"
        return "was changed: it does not hold what was written"

    def ended(self, fd: int, inode: int, size: int) -> LogEnd:
        """Return the entry of the open log that ends there; unchanged if another writer noted more, or replaced it."""
        if self.inode not in (0, inode) or self.size >= size:
            return self
        return self.replace(inode=inode, size=size, checksum=tail(fd, size))


def read_entry(text: bytes) -> LogEnd | None:
    """Return the entry in a text; None if it holds none."""
    words = text.split()
    if len(words) != 8 or not b"".join(words[:7]).isdigit():
        return None
    inode, size, checksum, generation, base, count, before = map(int, words[:7])
    return LogEnd(inode, size, checksum, generation, base, count, words[7], before)


def left(path: str, entry: LogEnd | None = None) -> LogEnd:
    """Return an entry for a log as it is now: its whole content is below the base."""
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
