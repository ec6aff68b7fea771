"""The lines of a log with their numbers, for messages that name a line.

Belongs here: counting. A log's own reader knows positions only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.codec import MAX_LINE
from .lines import chunks, lines_of
from .small_files import OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..log.log import Log


def numbered(log: Log, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line) of a log that need not exist; empty lines count but are skipped. See ``lines_of``."""
    fd = log.open()
    if fd is not None:
        with OpenFile(fd):
            yield from numbered_in(fd, end)


def numbered_in(fd: int, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the same of an open file, up to ``end``."""
    number, reached = 1, 0  # of the line that begins there
    for position, line in lines_of(fd, 0, end):
        if position != reached:
            number += newlines(fd, reached, position)
        yield number, line
        reached = position
        if len(line) <= MAX_LINE:  # a longer one was given in part
            number, reached = number + 1, position + len(line) + 1


def newlines(fd: int, start: int, end: int) -> int:
    """Return the number of line ends in a stretch of an open file."""
    return sum(chunk.count(b"\n") for chunk in chunks(fd, start, end))
