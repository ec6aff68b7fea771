"""The saved rows of the mail that nobody took, in columns that are searched without being read whole.

Belongs here: the derived file and its columns. ``untaken`` says which mail is in it.

    head      JSON: the marks, the doubtful messages, the sizes of what follows
    words     the groups' recipients, sorted, a line each
    columns   numbers of 8 bytes: each group's hours to live (0: none of its own) and its first row; then of each row
              the message's instant, the digest of its id, its position, the digest of its sender; then all rows'
              numbers, once in the order of the digests of their ids, once in that of their senders

The rows of a group stand together, the oldest first.
"""

from __future__ import annotations

from bisect import bisect_left
from sys import byteorder

from ...core import codec
from ...core.records import BadLine
from ..files import cache, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..files.cache import Mark

    Group = tuple[str, int]
    """Recipient, hours to live (0: the mode's)."""
    Row = tuple[int, int, int, int]
    """A message's instant, the digest of its id, its position, the digest of its sender."""

BYTES = 8
_HEAD = 1 << 16
"""Bytes of the file that are read first."""
_BLOCK = 512
_COLUMNS = 6
_TTL = b'"ttl_hours":'


class Column:
    """Numbers in an open file, read as they are needed."""

    def __init__(self, fd: int, start: int, size: int) -> None:
        self._fd, self._start, self._size = fd, start, size
        self._at, self._block = -1, memoryview(b"").cast("Q")
        self._whole: bytes | None = None

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> int:
        if not 0 <= place < self._size:
            raise IndexError(place)
        block, offset = divmod(place, _BLOCK)
        if block != self._at:
            self._at, self._block = block, self._read(block * _BLOCK, min(_BLOCK, self._size - block * _BLOCK))
        return self._block[offset]

    def _read(self, place: int, size: int) -> memoryview:
        data = system.pread(self._fd, size * BYTES, self._start + place * BYTES) if size else b""
        return memoryview(data.ljust(size * BYTES, b"\0")).cast("Q")

    def all(self) -> list[int]:
        """Return every number."""
        return self._read(0, self._size).tolist()

    def places(self, number: int) -> Iterator[int]:
        """Yield the places of a number, in order."""
        if self._whole is None:
            self._whole = bytes(self._read(0, self._size))
        word, at = number.to_bytes(BYTES, byteorder), -1
        while (at := self._whole.find(word, at + 1)) >= 0:
            if at % BYTES == 0:
                yield at // BYTES


class SavedRows:
    """The rows in a derived file; none if it holds nothing sound (``path`` None: no file). To be closed.

    Another process may write the file anew meanwhile. Then ``is_sound`` says that the answers count for nothing.
    """

    def __init__(self, path: str | None) -> None:
        self.marks: tuple[Mark, Mark] = (cache.NOWHERE, cache.NOWHERE)
        self.doubtful: dict[str, list[int]] = {}
        self.words: list[str] = []
        self._fd, self._time = -1, 0
        self._lay(0, 0, 0)
        if path is None:
            return
        try:
            self._fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
            self._open()
        except (OSError, TypeError, ValueError, KeyError):  # no file; or sealed, but of another shape
            self._lay(0, 0, 0)

    def _open(self) -> None:
        self._time = system.fstat(self._fd).st_mtime_ns
        place = cache.sealed(self._fd)
        if place is None:
            return
        start, size = place
        head, newline, rest = system.pread(self._fd, min(_HEAD, size), start).partition(b"\n")
        if not newline:
            head, newline, rest = system.pread(self._fd, size, start).partition(b"\n")
        marks, doubtful, (length, groups, rows) = _checked(codec.parse(head))
        begin = start + len(head) + 1
        if len(head) + 1 + length + BYTES * (2 * groups + _COLUMNS * rows) != size:
            return
        words = rest[:length] if len(rest) >= length else system.pread(self._fd, length, begin)
        found = words.decode().split("\n")[:-1]
        if len(found) == groups:
            self.marks, self.doubtful, self.words = marks, doubtful, found
            self._lay(begin + length, groups, rows)

    def _lay(self, start: int, groups: int, rows: int) -> None:
        self.hours = Column(self._fd, start, groups)
        self.firsts = Column(self._fd, start + BYTES * groups, groups)
        start += BYTES * 2 * groups
        self.times, self.ids, self.positions, self.senders, self._by_id, self._by_sender = (
            Column(self._fd, start + BYTES * rows * n, rows) for n in range(_COLUMNS)
        )

    def forget(self) -> None:
        """Forget the rows: they are of other logs."""
        self.doubtful, self.words = {}, []
        self._lay(0, 0, 0)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            system.close(self._fd)

    def is_sound(self) -> bool:
        """Return whether nobody wrote to the file since it was opened."""
        return self._fd < 0 or system.fstat(self._fd).st_mtime_ns == self._time

    def __len__(self) -> int:
        return len(self.times)

    def row(self, n: int) -> Row:
        """Return a row."""
        return self.times[n], self.ids[n], self.positions[n], self.senders[n]

    def of_id(self, number: int) -> Iterator[int]:
        """Yield the rows of an id's digest."""
        return _rows(self._by_id, self.ids, number)

    def of_sender(self, number: int) -> Iterator[int]:
        """Yield the rows of a sender's digest, in order."""
        return _rows(self._by_sender, self.senders, number)

    def rows(self) -> list[Row]:
        """Return all rows."""
        return list(zip(self.times.all(), self.ids.all(), self.positions.all(), self.senders.all(), strict=True))

    def groups(self) -> list[Group]:
        """Return all groups, in order."""
        return list(zip(self.words, self.hours.all(), strict=True))

    def group(self, g: int) -> Group:
        """Return a group."""
        return self.words[g], self.hours[g]

    def span(self, group: int) -> range:
        """Return the rows of a group."""
        end = self.firsts[group + 1] if group + 1 < len(self.firsts) else len(self)
        return range(self.firsts[group], min(end, len(self)))


def _rows(order: Column, column: Column, number: int) -> Iterator[int]:
    at = bisect_left(order, number, key=column.__getitem__)
    while at < len(order) and column[n := order[at]] == number:
        yield n
        at += 1


def spelt(message_id: str) -> bytes:
    """Return an id or a sender as a line spells it."""
    return message_id.encode("utf-8", "surrogatepass")


def hours_of(line: bytes) -> int:
    """Return the hours to live in a line of our usual spelling; 0 for its mode's."""
    begin = line.rfind(_TTL) + len(_TTL)
    word = line[begin : line.find(b",", begin)]
    return 0 if word == b"null" else int(word)


def is_for_one(line: bytes) -> bool:
    """Return whether the line's message has one recipient. One of several may wait, though others took the mail."""
    if b"[" not in line.replace(b'"read_by":[]', b"", 1):
        return True
    message = codec.message(line)
    return isinstance(message, BadLine) or len(message.recipients) == 1


def save(
    path: str, marks: Sequence[Mark], doubtful: Mapping[str, list[int]], groups: Mapping[Group, Iterable[Row]]
) -> None:
    """Write the rows."""
    every: list[Row] = []
    firsts = []
    kept = sorted((group, sorted(rows)) for group, rows in groups.items())
    for _, rows in kept:
        firsts.append(len(every))
        every += rows
    words = "".join(f"{word}\n" for (word, _), _ in kept).encode()
    sizes = len(words), len(kept), len(every)
    head = codec.dumps({"marks": marks, "doubtful": doubtful, "sizes": sizes}).encode("utf-8", "surrogatepass")
    numbers = [*(hours for (_, hours), _ in kept), *firsts, *(row[n] for n in range(4) for row in every)]
    for column in (1, 3):
        numbers += sorted(range(len(every)), key=[row[column] for row in every].__getitem__)
    cache.save(path, head + b"\n" + words + b"".join([number.to_bytes(BYTES, byteorder) for number in numbers]))


def _checked(obj: Any) -> tuple[tuple[Mark, Mark], dict[str, list[int]], tuple[int, int, int]]:
    """Return the marks, the doubtful messages and the sizes of a file's head; raise for another shape."""
    (first, second), doubtful, sizes = obj["marks"], {**obj["doubtful"]}, tuple(obj["sizes"])
    numbers = [*first, *second, *sizes, *(at for some in doubtful.values() for at in some)]
    if {*map(type, numbers)} != {int} or {*map(type, doubtful)} - {str} or min(numbers) < 0:
        raise ValueError
    if not len(first) == len(second) == len(sizes) == 3:
        raise ValueError
    return (tuple(first), tuple(second)), doubtful, sizes
