"""The ids of the live messages, in derived files that are searched without being read.

Belongs here: the table of ids, and how it is kept up with the log. A message's line has an entry under its id
(``word_table``). The table may offer a line too many, so each is decoded; it must never hold one back.

Two files hold it, so that a few new lines cost little: a large one, and a small one with the entries since then. The
small one names the large one's state that it belongs to; beside any other it counts for nothing.
"""

from __future__ import annotations

from ...core import codec
from ...core.line_forms import message_id_of
from ...core.records import BadLine
from ..files import cache
from ..files.lines import boundary, line_at, line_chunks
from . import word_table
from .word_table import TWINS, TableFile, entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..files.cache import Mark
    from ..log.logs import Logs
    from .word_table import Entries

TABLE, NEWS = "ids", "ids-news"
MOST, ROOTS = 4096, 8
"""Entries of the small file; more go into the large one. Beside a very large one: so many roots of its number."""


class IdTable:
    """The table beside the open log, for a ``with`` block."""

    def __init__(self, logs: Logs, fd: int) -> None:
        self._logs = logs
        self._fd = fd
        self._files: list[TableFile] = []
        self._fresh: list[int] = []
        self._large = self._mark = cache.NOWHERE
        for name in (TABLE, NEWS):
            try:
                file = TableFile(logs.cache(name))
            except OSError:
                return
            self._files.append(file)
            mark, beside = _marks(file.head)
            if not cache.holds(fd, mark) or beside != self._large:
                self._files.pop().close()
                return
            self._mark = mark
            self._large = self._large if name == NEWS else mark

    def __enter__(self) -> IdTable:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def lag(self, end: int) -> int:
        """Return how many bytes of the log up to ``end`` the table has not taken in."""
        return end - self._mark[1]

    def catch_up(self, end: int) -> None:
        """Take in the lines since the table's mark, up to the end of one."""
        if self.lag(end) > 0:
            self._fresh = sorted(_entries(self._fd, self._mark[1], end))
            self._mark = cache.mark(self._fd, end)

    def may_have_before(self, position: int, ids: Iterable[str]) -> bool:
        """Return whether a message with one of the ids stands before a position; also if too many lines may be it."""
        return any(self._may_have(message_id, position) for message_id in ids)

    def _may_have(self, message_id: str, position: int) -> bool:
        word = message_id.encode("utf-8", "surrogatepass")
        parts: tuple[Entries, ...] = (*self._files, self._fresh)
        places = (at for part in parts for at in word_table.positions(part, b"", word) if at < position)
        for turn, at in enumerate(places):
            message = codec.message(line_at(self._fd, at))
            if turn == TWINS or (not isinstance(message, BadLine) and message.id == message_id):
                return True
        return False

    def is_sound(self) -> bool:
        """Return whether nobody wrote to the files since they were opened."""
        return all(file.is_sound() for file in self._files)

    def save(self) -> None:
        """Save what was taken in, in the small file unless it grows too large. Ends the use of the table."""
        large, small = self._files[:1], self._files[1:]
        if not self._fresh or not self._logs.derives:
            return
        fresh = [*self._fresh, *(one for file in small for one in file.entries())]
        is_small = bool(large) and _is_few(len(fresh), len(large[0]))
        if not is_small:
            fresh += [one for file in large for one in file.entries()]
        if self.is_sound():
            name, beside = (NEWS, self._large) if is_small else (TABLE, cache.NOWHERE)
            head = b"%d %d %d %d %d %d" % (*self._mark, *beside)
            word_table.save(self._logs.cache(name), head, sorted(fresh))


def _is_few(fresh: int, large: int) -> bool:
    return fresh < max(MOST, ROOTS * int(large**0.5))


def keep_up(logs: Logs, fd: int, end: int) -> None:
    """Take in the open messages log up to ``end``, however long it takes."""
    with IdTable(logs, fd) as table:
        table.catch_up(boundary(fd, end))
        table.save()


def _entries(fd: int, start: int, end: int) -> Iterator[int]:
    for place, chunk in line_chunks(fd, end, start):
        for line in chunk.split(b"\n"):
            word = message_id_of(line)
            if word is None and line and not isinstance(message := codec.message(line), BadLine):
                word = message.id.encode("utf-8", "surrogatepass")
            if word is not None:
                yield entry(b"", word, place)
            place += len(line) + 1


def _marks(head: bytes) -> tuple[Mark, Mark | None]:
    """Return the mark of a table in its head, and that of the table beside which it counts; no mark is none."""
    words = head.split()
    if len(words) != 6 or not all(map(bytes.isdigit, words)):
        return cache.NOWHERE, None
    a, b, c, d, e, f = map(int, words)
    return (a, b, c), (d, e, f)
