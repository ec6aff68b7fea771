"""The lock of one machine of a space: who publishes, and asking the engine while nobody's files are locked.

Belongs here: two locks, and which of them is held when. One process of a machine decides and publishes at a time; it
holds the *turn*. The *files* are the local copy and its saved state. Their lock is given back whenever the engine is
asked. So a process that waits for a network, or was stopped, keeps no mail out (``taken_meanwhile``). Nor does it keep
those who do not wait for the turn. docs/internals/shared-mailbox.md says why nothing is lost by that.
"""

from __future__ import annotations

from ...errors import Busy
from ...store.files import system
from ...store.files.small_files import noted_age, set_time
from ...store.locks.lock import FileLock, Patience, deadline
from ..order.hurry import ANSWERED, Hurry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self, TypeVar

    from ..order.order import Ordered, TotalOrder

    T = TypeVar("T")

TURN, FILES = "lock", "files"
"""The files of the two locks, in the user's own record."""
KEPT, UNANSWERED = 1.0, 0.3
"""Seconds for which a process has its turn, and for which the engine lets it wait. A caller that can do without waits
for it no longer."""


class AskedOrder:
    """An order that is asked while the local files are free; then ``looked_again`` looks what others did meanwhile.

    ``files``: their lock, as long as this process has its turn. ``hurried``: it can do without an answer."""

    def __init__(self, engine: TotalOrder, looked_again: Callable[[], None]) -> None:
        self.engine = engine
        self.machine = engine.machine
        self.files: FileLock | None = None
        self.hurried = False
        self._looked_again = looked_again

    def ask(self, question: Callable[[], T]) -> T:
        """Return what the engine answers."""
        files = self.files
        if files is None:
            return question()
        if not self.hurried:
            _note_time(files)
        files.release()
        try:
            with Hurry(ANSWERED if self.hurried else None):
                return question()
        finally:
            files.take()
            if not self.hurried:
                _note_time(files, KEPT)
            self._looked_again()

    def last_position(self) -> int:
        """Return the position of the last record."""
        return self.ask(self.engine.last_position)

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        """Append the lines; see ``TotalOrder.append_lines``."""
        return self.ask(lambda: self.engine.append_lines(log, lines, ids=ids, expect=expect))

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        """Return the first records behind a position, in order."""
        return self.ask(lambda: self.engine.read_after(after, most))

    def wait_for_record(self, after: int, seconds: float) -> bool:
        """Return whether there is a record behind the position, waiting for one at most that long."""
        return self.ask(lambda: self.engine.wait_for_record(after, seconds))

    def count_holes(self) -> int:
        """Return how many positions have no record."""
        return self.ask(self.engine.count_holes)

    def remove_records(self, positions: Sequence[int]) -> None:
        """Remove records."""
        self.ask(lambda: self.engine.remove_records(positions))

    def remove_through(self, log: str, position: int) -> None:
        """Remove all records of a log up to a position."""
        self.ask(lambda: self.engine.remove_through(log, position))


class MachineLock:
    """The turn of a process of this machine, for a ``with`` block, with the lock of the files.

    ``hurried``: wait for no process that has had its turn for ``KEPT`` seconds, and for no silent engine. Nor wait for
    one that is in no hurry itself, and was not answered for ``UNANSWERED`` seconds. The times of the locks' files tell:
    the turn began then, and such a question did. The second is yet to come where nobody asks one."""

    def __init__(self, directory: str, wait: float, order: AskedOrder, *, hurried: bool = False) -> None:
        self._turn = FileLock(system.join(directory, TURN), wait)
        self._files = FileLock(system.join(directory, FILES), wait)
        self._order = order
        self._wait = wait
        self._hurried = hurried

    def take(self) -> Self:
        """Get the lock, perhaps ahead of a ``with`` block that gives it back; raise ``Busy`` at the time-out."""
        if self._order.files is self._files:
            return self
        self._take_turn()
        try:
            self._files.take()
        except BaseException:
            self._turn.release()
            raise
        self._order.files, self._order.hurried = self._files, self._hurried
        _note_time(self._turn)
        _note_time(self._files, KEPT)
        return self

    __enter__ = take

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give the lock back."""
        self._order.files = None
        self._files.release()
        _note_time(self._turn)  # for the next one, until it notes that itself
        self._turn.release()

    def _take_turn(self) -> None:
        until = deadline(self._wait)
        while True:
            left = until - system.monotonic()
            try:
                with Patience(min(left, self._worth_waiting()) if self._hurried else left):
                    self._turn.take()
                return
            except Busy:
                if system.monotonic() >= until or not self._hurried or self._worth_waiting() <= 0:
                    raise

    def _worth_waiting(self) -> float:
        """Return the seconds for which one in a hurry still waits for the process that has the turn."""
        return min(KEPT - _seconds_since(self._turn), UNANSWERED - _seconds_since(self._files))


def _note_time(lock: FileLock, ahead: float = 0.0) -> None:
    """Give the lock's file a time, so many seconds ahead."""
    set_time(lock.path, system.time_ns() + int(ahead * 1_000_000_000))


def _seconds_since(lock: FileLock) -> float:
    return max(noted_age(lock.path, system.time_ns() // 1_000_000) or 0, 0) / 1000
