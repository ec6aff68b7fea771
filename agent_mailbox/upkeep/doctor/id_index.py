"""Which message ids stand in which logs: what is of no message there is, what stands twice.

Belongs here: counting ids. Memory stays bounded: of a message just a number of eight bytes is kept, and what those
cannot tell apart is looked at a second time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter

from ...core import codec
from ...core.records import BadLine, Record
from .findings import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...core.records import Message


class CheckedLog(Record):
    """A log to look at: its path, its numbered lines anew at each call, the month it is archived under, and how many of
    its lines are sealed."""

    path: str
    lines: Callable[[], Iterator[tuple[int, bytes]]]
    month: str | None = None
    sealed: int = 0


class Census:
    """Which message ids stand in which log, as numbers: two ids may share one, an id always has the same."""

    def __init__(self) -> None:
        self._ids: list[tuple[CheckedLog, array[int]]] = []

    def of(self, source: CheckedLog) -> array[int]:
        """The list to add a log's ids to."""
        found = array("q")
        self._ids.append((source, found))
        return found

    def settle(self) -> None:
        """No more will come: sort the lists, so that they answer."""
        self._ids = [(source, array("q", sorted(ids))) for source, ids in self._ids]

    def homes(self, message_id: str) -> list[CheckedLog]:
        """The logs in which a message of that id may stand."""
        wanted = hash(message_id)
        return [s for s, ids in self._ids if (at := bisect_left(ids, wanted)) < len(ids) and ids[at] == wanted]

    def repeated(self) -> set[int]:
        """The numbers that were met more than once."""
        found: set[int] = set()
        everything = array("q")
        for _, ids in self._ids:
            everything += ids
        before = None
        for number in sorted(everything):
            if number == before:
                found.add(number)
            before = number
        return found

    @property
    def sources(self) -> list[CheckedLog]:
        """The logs, in the order they were looked at."""
        return [source for source, _ in self._ids]


def twins(census: Census, moving: Callable[[], bool]) -> Iterator[Problem]:
    """Ids that were met more than once, read again and compared."""
    repeated = census.repeated()
    if not repeated:
        return
    met: dict[str, tuple[CheckedLog, Message]] = {}
    both: Counter[str] = Counter()
    first: dict[str, tuple[int, str]] = {}
    for source in census.sources:
        for number, line in source.lines():
            message = codec.message(line)
            if isinstance(message, BadLine) or hash(message.id) not in repeated:
                continue
            home, earlier = met.setdefault(message.id, (source, message))
            if earlier is message:
                continue
            if home.month is None and source.month is not None:
                both[source.path] += 1
                first.setdefault(source.path, (number, message.id))
                met[message.id] = (source, message)  # twice in the archive would be another matter
                continue
            yield Problem(source.path, number, _twin(message, earlier))
    if both and not moving():
        for path, (number, message_id) in first.items():
            what = f"{both[path]} archived and live (the first {message_id}): an archive run was interrupted"
            yield Problem(path, number, f"{what}; `agent-mailbox steward run` completes it")


def _twin(message: Message, earlier: Message) -> str:
    same = message.replace(timestamp=0) == earlier.replace(timestamp=0)
    what = "written twice" if same else "found again with another body"
    return f"id {message.id} {what}; the first written counts: remove this line if nobody needs it"
