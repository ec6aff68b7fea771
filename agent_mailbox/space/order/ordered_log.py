"""A log of a mailbox that several machines share: look, then append in the order.

Belongs here: what takes the place of ``Log`` and ``HeldLog`` there, for the same deciding code.
"""

from __future__ import annotations

from ...errors import Busy, Unavailable
from ...store.files import system
from ...store.files.lines import lines_of
from ...store.files.small_files import OpenFile
from ...store.locks.lock import Patience
from .order import HeldUp, Moved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Concatenate, ParamSpec, TypeVar

    from ...core.records import Proof
    from ...store.log.log import HeldLog, Log
    from ..copy.replica import Replica

    P = ParamSpec("P")
    T = TypeVar("T")
    Waiting = tuple[list[bytes], list[Proof | None]]
    """Lines, and what is proven of the writer of each."""

IN_TURN = 10.0
"""Seconds for which a send waits for other commands of this machine while they get on, before it is queued."""
TURNS = 50
"""Times that a decision is taken again because another machine was first."""


class OrderedLog:
    """One log of a shared mailbox under the machine's lock: open, and caught up."""

    def __init__(self, replica: Replica, log: Log, fd: int) -> None:
        self._replica = replica
        self._log = log
        self.fd = fd

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        return lines_of(self.fd, start)

    def append(
        self,
        lines: Iterable[bytes],
        disturbs: Iterable[str] | None = (),  # noqa: ARG002 - the copy finds it for everybody's lines
        proofs: Sequence[Proof | None] = (),
        *,
        durably: bool = True,  # noqa: ARG002 - what is in the order is synced
    ) -> int:
        """Publish the lines, and write here what the order has up to them; return how many bytes; 0: others wrote, too.

        Another session may do so without a turn: it records what it read. Raises ``Moved``: see ``decide_again``."""
        todo = [line.rstrip(b"\n") for line in lines]
        if not todo:
            return 0
        about = {**dict.fromkeys(todo), **dict(zip(todo, proofs, strict=False))}
        before = system.fstat(self.fd).st_size
        alone = self._replica.publish_lines(self._log, todo, about)
        end = system.fstat(self.fd).st_size
        written = sum(at < end for at, _ in self.lines(before))
        return end - before if alone and written == len(todo) else 0

    def begin_again(self) -> None:
        """Do nothing: a line of the copy is synced before it is shown, so none was lost that a session read."""

    def sync(self, found: Iterable[tuple[int, bytes]] | None = None) -> None:
        """Do nothing: what is in the order is durable, and the copy is synced before it is shown."""


class SharedLog:
    """One log of a shared mailbox, as decisions are taken in it.

    ``is_own``: its lines tell what sessions of this machine did. Then it is written first, and published behind that.
    ``hurried``: the caller can do without a decision now, and does not wait for who keeps the lock for long.
    """

    def __init__(self, replica: Replica, log: Log, *, is_own: bool = False, hurried: bool = False) -> None:
        self._replica = replica
        self._log = log
        self._is_own = is_own
        self._hurried = hurried
        self._away: Busy | None = None

    def catch_up(self) -> None:
        """Take in what other machines decided, ahead of a look. If several commands wait for their turn, one asks.

        If the engine is out of reach, or another command keeps the machine's lock, ``decide`` raises that."""
        since = system.time_ns() // 1_000_000
        try:
            with Patience(IN_TURN), self._replica.machine_lock(hurried=True):
                self._replica.catch_up_since(since)
        except Busy as error:
            self._away = error
        else:
            _ = self._replica.judge.key  # loaded here, it holds up nobody

    def decide(self, act: Callable[Concatenate[HeldLog | OrderedLog, P], T], *given: P.args, **named: P.kwargs) -> T:
        """Return what ``act`` does with what is ``given``; it looks again each time that another machine was first.

        Raises ``Unavailable`` if the engine is out of reach, ``Busy`` if another command keeps the lock."""
        if self._away is not None:
            raise self._away
        return decide_again(lambda: self._decide_until_first(lambda log: act(log, *given, **named)))

    def decide_or_wait(
        self,
        later: Callable[[str], Waiting],
        act: Callable[Concatenate[HeldLog | OrderedLog, P], T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T | None:
        """Return the same; None if it cannot be decided now: what ``later`` returns, as it hears why, waits here until
        it can. It may be in the order already, and is there once."""
        try:
            self._hurried = True
            with Patience(IN_TURN):
                return self.decide(act, *given, **named)
        except Busy as error:
            why = error.what if isinstance(error, HeldUp) else f"{error.what}; {error.hint}"
            if not isinstance(error, Unavailable):
                why = f"this machine's turn at the engine did not come yet: {error.what}; it goes out behind that"
            self._replica.queue.put_entry(*later(why), why)
            return None

    def _decide_until_first(self, act: Callable[[HeldLog | OrderedLog], T]) -> T:
        if not self._is_own:
            with self._replica.machine_lock(hurried=self._hurried):
                self._replica.begin_decision()
                with self._log.held():
                    pass  # which makes the log
                if (found := self._log.open()) is None:
                    raise Moved(f"log is gone: {self._log.path}", "try again")
                with OpenFile(found) as fd:
                    return act(OrderedLog(self._replica, self._log, fd))
        # It is published in the sequence in which the log has it, so it means the same everywhere, whatever other
        # processes record meanwhile. This machine decides nothing until then, nor after a kill.
        with self._replica.machine_lock():
            with self._log.held() as held:
                done = act(held)
            self._replica.catch_up()
        return done


def decide_again(decide: Callable[[], T]) -> T:
    """Return what ``decide`` does, which looks once more each time that another machine was first."""
    for _ in range(TURNS):
        try:
            return decide()
        except Moved:
            continue
    raise Busy("engine is too busy: others are always first", "try again; nothing was changed")
