"""The lock of one machine of a space: who publishes, and asking the engine while nobody's files are locked.

Belongs here: two locks, and which of them is held when. One process of a machine decides and publishes at a time; it
holds the *turn*. The *files* are the local copy and its saved state. Their lock is given back whenever the engine is
asked. So a process that waits for a network, or was stopped, keeps no mail out (``Replica.take_in_beside``).
docs/internals/shared-mailbox.md says why nothing is lost by that.
"""

from __future__ import annotations

from ...errors import Busy
from ...store.files import system
from ...store.files.small_files import set_time, time_of
from ...store.locks.lock import FileLock, Patience, deadline
from ..order.hurry import ANSWERED, Hurry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self, TypeVar

    from ..order.order import Ordered, TotalOrder

    T = TypeVar("T")

TURN, FILES = "lock", "files"
"""The files of the two locks, in the user's own record."""
KEPT, UNANSWERED = 1.0, 0.3
"""Seconds for which those in a hurry wait for a process that has its turn, from each answer on. For the next answer to
one that is in no hurry they wait the second."""
LONG = 2.0
"""Seconds for which they wait for the latter in all: it may read all records."""
AHEAD = 1_000_000.0
"""Seconds that nobody waits: whoever has the turn of a file that promises them has just taken it."""


class AskedOrder:
    """A ``TotalOrder`` that is asked while the local files are free; ``looked_again`` then looks what others did.

    ``files``: their lock, as long as this process has its turn. ``hurried``: it can do without an answer. ``promise``:
    says for how many seconds others shall wait for it."""

    def __init__(self, engine: TotalOrder, looked_again: Callable[[], None]) -> None:
        self.engine = engine
        self.machine = engine.machine
        self.files: FileLock | None = None
        self.hurried = False
        self.promise: Callable[[float], None] = lambda _: None
        self._looked_again = looked_again

    def ask(self, question: Callable[[], T]) -> T:
        files = self.files
        if files is None:
            return question()
        patience = KEPT if self.hurried else UNANSWERED
        self.promise(patience)
        files.release()
        try:
            with Hurry(ANSWERED if self.hurried else None, lambda: self.promise(patience)):
                return question()
        finally:
            files.take()
            self.promise(KEPT)
            self._looked_again()

    def last_position(self) -> int:
        return self.ask(self.engine.last_position)

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        return self.ask(lambda: self.engine.append_lines(log, lines, ids=ids, expect=expect))

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        return self.ask(lambda: self.engine.read_after(after, most))

    def count_holes(self) -> int:
        return self.ask(self.engine.count_holes)


class MachineLock:
    """The turn of a process of this machine, for a ``with`` block, with the lock of the files.

    ``hurried``: wait only as long as the turn moves from one process to the next, or answers come. The time of the
    turn's file says until when: whoever has the turn promises that."""

    def __init__(self, directory: str, wait: float, order: AskedOrder, *, hurried: bool = False) -> None:
        self._turn = FileLock(system.join(directory, TURN), wait)
        self._files = FileLock(system.join(directory, FILES), wait)
        self._order = order
        self._wait = wait
        self._hurried = hurried
        self._last = 0

    def take(self) -> Self:
        """Get the lock, perhaps ahead of a ``with`` block that gives it back; raise ``Busy`` at the time-out."""
        if self._order.files is self._files:
            return self
        self._take_turn()
        try:
            self._last = _in_ns(LONG)
            self._order.hurried, self._order.promise = self._hurried, self._promise
            self._promise(KEPT)
            self._files.take()
        except BaseException:
            self._give_turn()
            raise
        self._order.files = self._files
        return self

    __enter__ = take

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        self._order.files = None
        self._files.release()
        self._give_turn()

    def _give_turn(self) -> None:
        set_time(self._turn.path, _in_ns(AHEAD))
        self._turn.release()

    def _promise(self, seconds: float) -> None:
        """Have others wait for so many seconds from now on."""
        until = _in_ns(seconds)
        set_time(self._turn.path, until if self._order.hurried else min(until, self._last))

    def _take_turn(self) -> None:
        end = deadline(self._wait)
        promised, moved = -1, 0.0
        while True:
            now = system.monotonic()
            if (said := time_of(self._turn.path) or 0) != promised:
                promised, moved = said, now
            left = end - now
            if self._hurried:  # a promise may become shorter
                left = min(left, moved + KEPT - now, UNANSWERED, (promised - system.time_ns()) / 1_000_000_000)
            try:
                with Patience(left):
                    self._turn.take()
                return
            except Busy:
                if not self._hurried or left <= 0:
                    raise


def _in_ns(seconds: float) -> int:
    return system.time_ns() + int(seconds * 1_000_000_000)
