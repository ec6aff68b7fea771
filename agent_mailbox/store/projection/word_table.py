"""Words and the positions of the lines they are about, sorted, in derived files that are searched without being read.

Belongs here: an entry, looking a word up, the file that holds the entries. Must not know which words there are
(``asking``).

An entry is one number: the word's hash in its upper bits, a position in a log in its lower ones. By chance two words
share a hash, so whoever asks decodes the line at the position and looks.

    hash(bob) << 40 | 430        bob's line at 430
    hash(bob) << 40 | 812        bob's line at 812
    hash(m17) << 40 | 430        and 430 is about m17, too
"""

from __future__ import annotations

from sys import byteorder

from ..files import cache, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    class Entries(Protocol):
        """Sorted entries, in memory or in a file."""

        def __len__(self) -> int: ...
        def __getitem__(self, place: int, /) -> int: ...


BITS = 40
_POSITION = (1 << BITS) - 1
_PRIME = 15_485_863
"""Under 24 bits, and near no power of two: next to one, the bytes of ids would hardly mix."""
_HEAD = 256
"""Bytes at the beginning of a table's file, for what the owner says about it."""
_BLOCK = 512
"""Entries that are read in one go."""
TWINS = 32
"""Lines under one hash that are decoded: chance brings one or two, and whoever chooses ids brings any number."""


def entry(kind: bytes, word: bytes, position: int) -> int:
    """Return the entry of a word of some kind at a position."""
    return int.from_bytes(kind + word, "little") % _PRIME << BITS | position


def positions(entries: Entries, kind: bytes, word: bytes) -> Iterator[int]:
    """Yield the positions of a word in sorted entries, in order, and by chance those of other words."""
    wanted = entry(kind, word, 0)
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        if entries[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    while low < len(entries) and entries[low] <= wanted | _POSITION:
        yield entries[low] & _POSITION
        low += 1


class TableFile:
    """The entries in an open file. ``head`` is what their owner says about them.

    Another process may write the file anew meanwhile. Then ``is_sound`` says that the answers count for nothing.
    """

    def __init__(self, path: str) -> None:
        self._fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
        self._at, self._block = -1, memoryview(b"").cast("Q")
        self._start, self._size, self._time = 0, 0, -1
        self.head = b""
        there = system.fstat(self._fd)
        found = cache.sealed(self._fd)
        if found is not None and found[1] >= _HEAD and found[1] % 8 == 0 and there.st_size >= sum(found):
            self._start, self._size, self._time = found[0] + _HEAD, found[1] - _HEAD, there.st_mtime_ns
            self.head = system.pread(self._fd, _HEAD, found[0]).rstrip()

    def close(self) -> None:
        """Close the file."""
        system.close(self._fd)

    def is_sound(self) -> bool:
        """Return whether the file was sealed when it was opened, and nobody wrote to it since."""
        return system.fstat(self._fd).st_mtime_ns == self._time

    def __len__(self) -> int:
        return self._size // 8

    def __getitem__(self, place: int) -> int:
        block, offset = divmod(place, _BLOCK)
        if block != self._at:
            left = min(_BLOCK * 8, self._size - block * _BLOCK * 8)
            data = system.pread(self._fd, left, self._start + block * _BLOCK * 8)
            self._at, self._block = block, memoryview(data.ljust(left, b"\0")).cast("Q")
        return self._block[offset]

    def entries(self) -> list[int]:
        """Return all entries."""
        data = system.pread(self._fd, self._size, self._start)
        return memoryview(data[: len(data) & ~7]).cast("Q").tolist()


def save(path: str, head: bytes, entries: Iterable[int]) -> None:
    """Write a table of sorted entries."""
    cache.save(path, head.ljust(_HEAD) + b"".join([number.to_bytes(8, byteorder) for number in entries]))
