"""An order in memory: what an engine must do, in the fewest words.

Belongs here: the space, and a machine's way to it, which a test may cut. It proves the mailbox's side of the order
without an engine, and the conformance tests with it.
"""

from __future__ import annotations

from threading import Condition

from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.order.order import ARCHIVE, Moved, Ordered, Taken, Unavailable, check_size
from agent_mailbox.space.trust.space_judge import SpaceJudge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_mailbox.space.order.order import TotalOrder
    from agent_mailbox.store.log.logs import Logs


class MemorySpace:
    """The records that all machines share."""

    def __init__(self) -> None:
        self.records: list[Ordered] = []
        self.ids: dict[tuple[str, str], int] = {}
        self.joined: list[str] = []
        self._end = 0
        self.changed = Condition()

    def last(self, log: str) -> int:
        """Return the position of the last record of a log; 0 if it has none."""
        return next((record.position for record in reversed(self.records) if record.log == log), 0)

    def append(self, machine: str, log: str, lines: Sequence[bytes], ids: Sequence[str], expect: int | None) -> int:
        """Append the lines in the name of a machine; see ``TotalOrder.append_lines``."""
        with self.changed:
            for message_id in ids:
                if (log, message_id) in self.ids:
                    raise Taken(message_id, self.ids[log, message_id])
            if expect is not None and (self.end() if log == ARCHIVE else self.last(log)) != expect:
                raise Moved(f"log has moved: {log}", "look again")
            for place, line in enumerate(lines):
                position = self._end = self.end() + 1
                self.records.append(Ordered(position, log, line, machine))
                if ids:
                    self.ids[log, ids[place]] = position
            self.changed.notify_all()
            return self.end()

    def end(self) -> int:
        """Return the position of the last record."""
        return max(self._end, self.records[-1].position if self.records else 0)

    def remove(self, positions: Sequence[int]) -> None:
        """Remove records; an id of theirs is free again."""
        with self.changed:
            gone, self._end = {*positions}, self.end()
            self.records = [record for record in self.records if record.position not in gone]
            self.ids = {key: position for key, position in self.ids.items() if position not in gone}

    def lose(self, kept: int) -> list[Ordered]:
        """Lose all records but the first ones, and their positions; return the lost ones."""
        with self.changed:
            lost, self.records, self._end = self.records[kept:], self.records[:kept], 0
            self.ids = {key: position for key, position in self.ids.items() if position <= self.end()}
            return lost


class MemoryOrder:
    """One machine's way to a space. ``reachable``: the link is. ``mute``: what is appended is not acknowledged."""

    def __init__(self, space: MemorySpace, machine: str) -> None:
        self.space = space
        self.machine = machine
        self.reachable = True
        self.mute = False
        if machine not in space.joined:
            space.joined.append(machine)

    def _reach(self) -> None:
        if not self.reachable:
            raise Unavailable("engine is out of reach: memory", "try again")

    def last_position(self) -> int:
        self._reach()
        return self.space.end()

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        """Append the lines; see ``TotalOrder.append_lines``."""
        self._reach()
        check_size(lines)
        if not lines:
            return self.space.end()
        position = self.space.append(self.machine, log, lines, ids, expect)
        if self.mute:
            raise Unavailable("engine did not acknowledge: memory", "try again")
        return position

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        """Return the first records behind a position."""
        self._reach()
        return [record for record in self.space.records if record.position > after][:most]

    def count_holes(self) -> int:
        """Return how many positions have no record."""
        self._reach()
        return self.space.end() - len(self.space.records)

    def wait_for_record(self, after: int, seconds: float) -> bool:
        """Return whether there is a record behind the position, waiting for one at most that long."""
        self._reach()
        with self.space.changed:
            return self.space.changed.wait_for(lambda: self.space.end() > after, seconds)

    def joined_machines(self) -> list[str]:
        self._reach()
        return [*self.space.joined]

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        """Yield all records of a log behind a position, in order."""
        self._reach()
        there = (record for record in self.space.records if record.position > after)
        yield from [record for record in there if record.log == log and not record.damaged]

    def remove_records(self, positions: Sequence[int]) -> None:
        self._reach()
        self.space.remove(positions)

    def remove_through(self, log: str, position: int) -> None:
        """Remove all records of a log up to a position for ever."""
        self._reach()
        records = self.space.records
        self.space.remove([one.position for one in records if one.log == log and one.position <= position])


def copy_of(logs: Logs, order: TotalOrder, directory: str) -> Replica:
    """Return the copy of a machine that has no key."""
    return Replica(logs, order, directory, SpaceJudge("team", order.machine, directory))
