"""Reading on in a log that grows: each reader gets what came since it last looked.

Belongs here: how far one reader is, in memory. A place that outlives its process is a cursor (``poll``).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..files import system
from ..files.lines import boundary, lines_of
from .logs import end_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .log import Log


class LogPlace:
    """A reader's place in a log: the file (inode, 0 at first) and the position behind the last whole line.

    Another file under the log's name, or a shorter one, is read from its beginning.
    """

    def __init__(self) -> None:
        self.inode, self.position = 0, 0

    def look(self, fd: int) -> tuple[bool, int, int]:
        """Return whether the open log is the file that was read, and no shorter than what was read. With that return
        its inode, and the end of its whole lines: a line that is being written is read when it is whole."""
        inode, size = end_of(fd)
        return inode == self.inode and size >= self.position, inode, boundary(fd, size)

    def lines(self, fd: int) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line) for each new whole line of the open log; they count as read once all were taken."""
        continues, inode, end = self.look(fd)
        start = self.position if continues else 0
        end = max(end, start)
        yield from lines_of(fd, start, end)
        self.inode, self.position = inode, end


class GrowingLog(LogPlace):
    """A log with the place of its one reader."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def skip(self) -> None:
        """Go to the log's present end."""
        self.inode, self.position = end_of(self.log.path)

    def changed(self) -> bool:
        """Return whether the log is another file than the one read, or has another length."""
        return end_of(self.log.path) != (self.inode, self.position)

    @contextmanager
    def news(self) -> Iterator[tuple[bool, Iterator[tuple[int, bytes]]]]:
        """Open the log; yield whether it begins again (as another file), and its new lines as ``lines`` does."""
        fd = self.log.open()
        if fd is None:
            restarted, (self.inode, self.position) = self.inode != 0, (0, 0)
            yield restarted, iter(())
            return
        try:
            yield not self.look(fd)[0], self.lines(fd)
        finally:
            system.close(fd)
