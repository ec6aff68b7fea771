"""The lines of a local log that the order of the space is not known to have.

Belongs here: finding them, and striking out those that turn up in the order. Must not know the order.

A mark says up to where every line is in the order. Behind it, lines of three kinds stand in any sequence: this
machine's own, which wait; lines from the order; and lines that were struck out. A line is told by its content, without
its seals. So it does not matter at which moment a process was killed: what is in both is struck out, once each.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from ..core.space_seals import unsealed as unsealed
from . import system
from .lines import boundary, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .log import Log

    Spans = list[list[int]]


class Unordered:
    """The lines of one log behind a mark, see the module. ``spans`` are the ordered ones among them, as saved."""

    def __init__(self, log: Log, inode: int = 0, mark: int = 0, spans: Spans | None = None) -> None:
        self.log = log
        self.inode = inode
        self.mark = mark
        self._ordered = {start: end for start, end in spans or ()}  # noqa: C416 - JSON has lists
        self._seen = mark
        self._lines: deque[tuple[int, int]] = deque()
        self._waiting: dict[int, bytes] = {}
        self._places: dict[bytes, list[int]] = {}
        self.alone = 0
        """The sum of the digests of what was settled."""

    def total(self) -> int:
        """Return the sum of the digests of all lines of the log that were struck out, or are before the mark."""
        fd = self.log.open()
        if fd is None:
            return 0
        try:
            found = sum(number(digest(unsealed(line))) for _, line in lines_of(fd, 0, self._seen))
        finally:
            system.close(fd)
        return found - self.alone - sum(map(number, self._waiting.values()))

    def look(self) -> bool:
        """Read on to the log's end; return whether the log is still the one that the mark was made for."""
        fd = self.log.open()
        if fd is None:
            return not self.inode
        try:
            there = system.fstat(fd)
            if there.st_ino != self.inode and self.inode:
                return False
            if there.st_size < self._seen:
                return False
            self.inode = there.st_ino
            end = boundary(fd, there.st_size)
            for start, line in lines_of(fd, self._seen, end):
                self._add(start, line)
            self._seen = max(self._seen, end)
        finally:
            system.close(fd)
        return True

    def _add(self, start: int, line: bytes) -> None:
        end = start + len(line) + 1
        self._lines.append((start, end))
        if self._ordered.get(start) != end:
            key = digest(unsealed(line))
            self._waiting[start] = key
            self._places.setdefault(key, []).append(start)

    def strike(self, key: bytes) -> bool:
        """Return whether a line with that digest waits; the first of them is then struck out."""
        places = self._places.get(key)
        if not places:
            return False
        self._drop(places[0])
        return True

    def is_ordered(self, start: int) -> bool:
        """Return whether the line at a position was struck out, is before the mark, or stays here alone."""
        return start < self._seen and start not in self._waiting

    def ordered(self) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line without its seal) of these lines."""
        for start, line in self.log.lines():
            if self.is_ordered(start):
                yield start, unsealed(line)

    def replaced(self, inode: int, places: Iterable[tuple[int, int]]) -> Unordered:
        """Return the same of the log that took the place of this one, looked at.

        ``places`` are its lines: the position in the old log (-1: it is new, and in the order), and the length."""
        spans, start = [], 0
        for old, length in places:
            if old < 0 or self.is_ordered(old):
                spans.append([start, start + length])
            start += length
        found = Unordered(self.log, inode, 0, spans)
        found.look()
        return found

    def settle(self, start: int) -> None:
        """Let the waiting line at a position stay here alone."""
        self.alone += number(self._waiting[start])
        self._drop(start)

    def _drop(self, start: int) -> None:
        key = self._waiting.pop(start)
        places = self._places[key]
        places.remove(start)
        if not places:
            del self._places[key]

    def waiting(self) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line as it is) of the lines that wait, in the order of the log; some may be settled
        meanwhile. Nothing more comes once the log was replaced."""
        fd = self.log.open() if self._waiting else None
        if fd is None:
            return
        try:
            if system.fstat(fd).st_ino == self.inode:
                for start, line in lines_of(fd, next(iter(self._waiting)), self._seen):
                    if start in self._waiting:
                        yield start, line
        finally:
            system.close(fd)

    def saved(self) -> tuple[int, int, Spans]:
        """Return (inode, mark, spans) for the next process."""
        while self._lines and self._lines[0][0] not in self._waiting:
            _, self.mark = self._lines.popleft()
        if not self._lines:
            self.mark = self._seen
        return self.inode, self.mark, [[a, b] for a, b in self._lines if a not in self._waiting]


def digest(line: bytes) -> bytes:
    """Return the short form in which a line is kept in mind."""
    return blake2b(line, digest_size=16).digest()


def number(key: bytes) -> int:
    """Return a digest as a number: the sum of many is the same in any sequence."""
    return int.from_bytes(key, "big")
