"""The lines of a local log that the order of the space is not known to have.

Belongs here: finding them, and striking out those that turn up in the order. Must not know the order.

A mark says up to where every line is in the order. Behind it, lines of three kinds stand in any sequence: this
machine's own, which wait; lines from the order; and lines that were struck out. Lines are compared by content,
without their seals. So it does not matter at which moment a process was killed: what is in both is struck out, once
each.
"""

from __future__ import annotations

from collections import Counter, deque

from ...core.space_seals import unsealed as unsealed
from ..files import system
from ..files.lines import boundary, lines_of
from ..files.small_files import OpenFile
from .keys import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .log import Log

    Spans = list[list[int]]


class Unordered:
    """The lines of one log behind a mark, see the module. ``spans`` are the ordered ones among them, as saved."""

    def __init__(self, log: Log, inode: int = 0, mark: int = 0, spans: Spans | None = None) -> None:
        self.log = log
        self.inode = inode
        self.mark = mark
        self._saved = {start: end for start, end in spans or ()}  # noqa: C416 - JSON has lists
        self._seen = mark
        self._waiting: dict[int, tuple[int, bytes]] = {}
        """The waiting lines: their beginning, with their end and their digest."""
        self._queue: deque[int] = deque()
        """Their beginnings in the log's order; some may wait no more."""
        self._behind: dict[int, int] = {}
        """The ordered lines behind the first that waits: their beginning, with their end."""
        self._places: dict[bytes, int] = {}
        self._twins: dict[bytes, deque[int]] = {}
        """The beginning of the first waiting line with a digest, and those of further ones."""
        self.alone = 0
        """The sum of the digests of what was settled."""
        self._solid = 0, 0
        """A part of the log that this process made durable."""
        self._unsure: int | None = None
        """The beginning of the first line that was struck out and may not be durable."""

    @property
    def end(self) -> int:
        """Return the position behind the last line that was seen."""
        return self._seen

    def total(self) -> int:
        """Return the sum of the digests of all lines of the log that were struck out, or are before the mark."""
        fd = self.log.open()
        if fd is None:
            return 0
        with OpenFile(fd):
            found = sum(number(digest(unsealed(line))) for _, line in lines_of(fd, 0, self._seen))
        return found - self.alone - sum(number(key) for _, key in self._waiting.values())

    def look(self, written: Sequence[tuple[bytes, bytes]] = ()) -> bool:
        """Read on to the log's end; return whether the log is still the one that the mark was made for.

        ``written``: lines of the order, with their digests, that the caller has just appended. Each is struck out as it
        is met."""
        fd = self.log.open()
        if fd is None:
            return not self.inode
        with OpenFile(fd):
            there = system.fstat(fd)
            if there.st_size < self._seen or (self.inode and there.st_ino != self.inode):
                return False
            self.inode = there.st_ino
            end = boundary(fd, there.st_size)
            known = dict(written)
            expected: dict[bytes, int] = Counter([key for _, key in written]) if written else {}
            for start, line in lines_of(fd, self._seen, end):
                self._add(start, line, known.get(line) or digest(unsealed(line)), expected)
            self._seen = max(self._seen, end)
        return True

    def _add(self, start: int, line: bytes, key: bytes, expected: dict[bytes, int]) -> None:
        end = start + len(line) + 1
        is_expected = expected.get(key, 0) > 0
        if is_expected or self._saved.get(start) == end:
            if is_expected:
                expected[key] -= 1
            if self._queue:
                self._behind[start] = end
            return
        self._waiting[start] = end, key
        self._queue.append(start)
        if self._places.setdefault(key, start) != start:
            self._twins.setdefault(key, deque()).append(start)

    def strike(self, key: bytes) -> bool:
        """Return whether a line with that digest waits; the first of them is then struck out."""
        start = self._places.get(key)
        if start is None:
            return False
        self._drop(start)
        if not self._solid[0] <= start < self._solid[1]:
            self._unsure = start if self._unsure is None else min(start, self._unsure)
        return True

    def secure(self) -> None:
        """Make the lines that were struck out durable, before a state says that they are here.

        A process that was killed, or whose sync failed, may have written them."""
        if self._unsure is None:
            return
        start, self._unsure = self._unsure, None
        with self.log.held() as log:
            if system.fstat(log.fd).st_ino != self.inode:
                return  # it was replaced, durably
            log.sync_from(start)
        self._solid = start, self._seen

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
        """Let the waiting line at a position stay here alone, unless it waits no more."""
        if start not in self._waiting:
            return
        self.alone += number(self._waiting[start][1])
        self._drop(start)

    def _drop(self, start: int) -> None:
        end, key = self._waiting.pop(start)
        self._behind[start] = end
        twins = self._twins.get(key)
        if twins is None:
            del self._places[key]
        elif self._places[key] == start:
            self._places[key] = twins.popleft()
        else:
            twins.remove(start)
        if twins is not None and not twins:
            del self._twins[key]

    def _first(self) -> int:
        """Return the beginning of the first waiting line; the end of what was seen if none waits."""
        while self._queue and self._queue[0] not in self._waiting:
            self._queue.popleft()
        return self._queue[0] if self._queue else self._seen

    def waiting(self) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line as it is) of the lines that wait, in the order of the log; some may be settled
        meanwhile. Nothing more comes once the log was replaced."""
        fd = self.log.open() if self._waiting else None
        if fd is None:
            return
        with OpenFile(fd):
            if system.fstat(fd).st_ino == self.inode:
                for start, line in lines_of(fd, self._first(), self._seen):
                    if start in self._waiting:
                        yield start, line

    def saved(self) -> tuple[int, int, Spans]:
        """Return (inode, mark, spans) for the next process."""
        self.mark = self._first()
        self._behind = {start: end for start, end in self._behind.items() if start > self.mark}
        return self.inode, self.mark, [[start, end] for start, end in sorted(self._behind.items())]


def digest(line: bytes) -> bytes:
    """Return the short form in which a line is kept in mind."""
    return blake2b(line, digest_size=16).digest()


def number(key: bytes) -> int:
    """Return a digest as a number: the sum of many is the same in any sequence."""
    return int.from_bytes(key, "big")
