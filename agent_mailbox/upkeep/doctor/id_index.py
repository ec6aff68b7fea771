"""The message ids in each log: finds orphaned reads and duplicate ids.

Belongs here: counting ids. It keeps only an eight-byte hash per message; ids with equal hashes are read again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from ...core import codec
from ...core.findings import Problem
from ...core.records import BadLine, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...core.records import Message


class CheckedLog(Record):
    """A log to check: its path, a function that reads its numbered lines, its archive month, and its count of sealed
    lines."""

    path: str
    lines: Callable[[], Iterator[tuple[int, bytes]]]
    month: str | None = None
    sealed: int = 0


class IdIndex:
    """The hashes of the message ids in each log; two ids may share a hash."""

    def __init__(self) -> None:
        self._ids: list[tuple[CheckedLog, array[int]]] = []

    def hashes_of(self, source: CheckedLog) -> array[int]:
        """Return the list to which the caller adds the log's hashes."""
        found = array("q")
        self._ids.append((source, found))
        return found

    def sort_hashes(self) -> None:
        """Sort the lists after the last addition, before any query."""
        self._ids = [(source, array("q", sorted(ids))) for source, ids in self._ids]

    def logs_with(self, message_id: str) -> list[CheckedLog]:
        """Return the logs that may hold a message of that id."""
        wanted = hash(message_id)
        return [s for s, ids in self._ids if (at := bisect_left(ids, wanted)) < len(ids) and ids[at] == wanted]

    def repeated_hashes(self) -> set[int]:
        """Return the hashes that occur more than once."""
        everything = sorted(chain.from_iterable(ids for _, ids in self._ids))
        return {one for one, following in pairwise(everything) if one == following}

    @property
    def sources(self) -> list[CheckedLog]:
        """Return the logs in the order they were read."""
        return [source for source, _ in self._ids]


def find_duplicates(ids: IdIndex, moving: Callable[[], bool]) -> Iterator[Problem]:
    """Yield the duplicate ids: read those with repeated hashes again, and compare them."""
    repeated = ids.repeated_hashes()
    if not repeated:
        return
    met: dict[str, tuple[CheckedLog, int, Message]] = {}
    both: Counter[str] = Counter()
    first: dict[str, tuple[int, str]] = {}
    for source in ids.sources:
        for number, line in source.lines():
            message = codec.message(line)
            if isinstance(message, BadLine) or hash(message.id) not in repeated:
                continue
            home, line_number, earlier = met.setdefault(message.id, (source, number, message))
            if earlier is message:
                continue
            if home.month is None and source.month is not None:
                met[message.id] = (source, number, message)  # a second archived one is a duplicate
                if message == earlier:
                    both[source.path] += 1
                    first.setdefault(source.path, (number, message.id))
                else:  # no steward copied it: another program used the id of archived mail
                    yield Problem(home.path, line_number, _describe_duplicate(earlier, message))
                continue
            yield Problem(source.path, number, _describe_duplicate(message, earlier))
    if not moving():
        for path, (number, message_id) in first.items():
            what = f"{both[path]} archived and still live (the first is {message_id}): an archive run was interrupted"
            yield Problem(path, number, f"{what}; `agent-mailbox steward run` completes it")


def _describe_duplicate(message: Message, earlier: Message) -> str:
    same = message.replace(timestamp=0) == earlier.replace(timestamp=0)
    what = "is written twice" if same else "is used again with another body"
    return f"id {message.id} {what}; the first line counts: remove this one unless you need it"
