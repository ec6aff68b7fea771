"""The lines of an open log, from positions on.

Belongs here: bytes to lines, and how far one reader is. Must not know what a line says (``core.codec``), nor who may
write (``log``).
"""

from __future__ import annotations

from ...core.codec import MAX_LINE
from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20


def chunks(fd: int | None, start: int = 0, end: int | None = None, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the bytes of an open file (None: no file) from ``start`` to ``end`` (or the file's), at most ``size`` at a
    time."""
    while fd is not None and (end is None or start < end):
        chunk = system.pread(fd, size if end is None else min(size, end - start), start)
        if not chunk:
            return
        yield chunk
        start += len(chunk)


def lines_of(fd: int | None, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (position, line without newline) from ``start`` to ``end`` (or the file's), a last line without newline
    included.

    None comes for no file, and if ``start`` is beyond, as in a cursor that another process has moved on meanwhile.
    Empty lines are skipped. From a line longer than ``MAX_LINE``, only ``MAX_LINE + 1`` bytes come: no decoder takes
    them, and memory is bounded.
    """
    position, rest, oversize = start, b"", False
    for chunk in chunks(fd, start, end):
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


def line_chunks(fd: int | None, end: int, size: int = CHUNK // 2) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of a file's whole, which end with a line's end, the last line's excepted.

    A line far beyond ``MAX_LINE`` is skipped, since no decoder takes it: memory is bounded whatever the file holds.
    """
    carry, start, offset, endless = b"", 0, 0, False
    for data in chunks(fd, 0, end, size):
        offset += len(data)
        if endless:
            rest = data.find(b"\n") + 1 or len(data)
            endless = data[rest - 1 : rest] != b"\n"
            start, data = start + rest, data[rest:]
        cut = data.rfind(b"\n") + 1
        if cut == 0 and offset < end:
            carry += data
            if len(carry) > MAX_LINE:
                start, carry, endless = start + len(carry), b"", True
            continue
        chunk = carry + (data[:cut] if offset < end else data)
        yield start, chunk
        start += len(chunk)
        carry = data[cut:] if offset < end else b""


def line_at(fd: int, position: int) -> bytes:
    """Return the line that begins at a position."""
    found, _, ended = system.pread(fd, 4096, position).partition(b"\n")
    if ended or len(found) < 4096:
        return found
    return next((line for _, line in lines_of(fd, position)), b"")


def boundary(fd: int, end: int) -> int:
    """Return the position after the last whole line before ``end``: 3 for ``{}``, a newline and ``{"id``."""
    reach = 512
    while end > 0:
        start = max(0, end - reach)
        place = system.pread(fd, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end, reach = start, min(reach * 8, CHUNK)
    return 0


class LinePlace:
    """A reader's place in a log: the file (inode, 0 at first) and the position behind the last whole line.

    Another file under the log's name, or a shorter one, is read from its beginning. A place that outlives its process
    is a cursor (``poll``).
    """

    def __init__(self) -> None:
        self.inode, self.position = 0, 0

    def look(self, fd: int) -> tuple[bool, int, int]:
        """Return whether the open log is the file that was read, and no shorter than what was read. With that return
        its inode, and the end of its whole lines: a line that is being written is read when it is whole."""
        there = system.fstat(fd)
        continues = there.st_ino == self.inode and there.st_size >= self.position
        return continues, there.st_ino, boundary(fd, there.st_size)

    def lines(self, fd: int) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line) for each new whole line of the open log; they count as read once all were taken."""
        continues, inode, end = self.look(fd)
        start = self.position if continues else 0
        end = max(end, start)
        yield from lines_of(fd, start, end)
        self.inode, self.position = inode, end
