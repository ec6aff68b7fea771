"""Reading on in a log that grows: its one reader gets what came since it last looked.

Belongs here: the log with the reader's place (``lines.LinePlace``).
"""

from __future__ import annotations

from contextlib import contextmanager

from ..files.lines import LinePlace
from ..files.small_files import OpenFile
from .logs import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .log import Log


class GrowingLog(LinePlace):
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
        with OpenFile(fd):
            yield not self.look(fd)[0], self.lines(fd)
