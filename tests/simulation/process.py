"""A simulated process: what it runs, its open files, the calls it made, and what shall befall it.

Belongs here: its state. When it goes on is the scheduler's (``world``).
"""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING

from greenlet import greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.open_files import OpenFile
    from tests.simulation.sites import Site
    from tests.simulation.world import World


class Killed(BaseException):
    """The end of a process by ``SIGKILL``: it unwinds the stack, and no call of it has an effect any more."""


class Endless(BaseException):
    """A command made more calls than any that ends: what it does it does again for ever."""


class Process:
    """A process: what it runs, its open files, the calls it made."""

    def __init__(self, world: World, name: str, work: Callable[[Process], object]) -> None:
        self.world = world
        self.name = name
        taken = {other.pid for other in world.processes}
        self.pid: int = next(pid for pid in count(100) if pid not in taken)  # as in a container: soon given again
        self.begun = world.wall()
        self.files: dict[int, OpenFile] = {}
        self.calls = self.turns = 0
        self.last = "start"
        self.dead = self.ended = self.stopped = False
        self.hurt = False
        """Was one of its calls made to fail?"""
        self.in_peace = self.is_blind = False
        """In worlds of several machines: does it run alone, and nothing goes wrong? Can it verify no signature?"""
        self.faults: set[str] = set()
        """Those calls."""
        self.doubted = name.partition(" ")[0] in world.doubted and not world.quiet
        """Is it asked behind each of its changes what a power failure would leave?"""
        self.wakes: int | None = None
        self.ready: Callable[[], bool] | None = None
        self.chance = Random(f"{world.seed} {name}")
        self.entropy = Random(f"urandom {world.seed} {name}")
        self.error: BaseException | None = None
        self.work = work
        self.first = world.calls
        """The call before its first."""
        self.command = name.partition(" ")[2].partition(" ")[0]
        self.aims = [] if world.quiet else world.choices.aims(self)
        self.marks = {} if world.quiet else world.choices.marks(self)
        """Places at which something befalls it: the how many-th time there, and what."""
        self.opened = -9
        """The number of its last call that opened a file."""
        self.half_way = self.missing = 0
        """How many of its next calls are half way, or right behind a failed one (``sites``)."""
        self.beside = 0
        """How many of its next calls are beside a function that is named (``sites``)."""
        self.stamp_files: tuple[Site, ...] = ()
        """The places of its last two calls."""
        self.heat = 0
        """How many of its next calls lie right behind a change that others must not meet half done."""
        self.rank = world.choices.chance.random()
        self.began = 0
        """The call before it went on for the first time."""
        self.is_late = False
        """Was it held for long?"""
        self.thread = greenlet(self._run)

    def was_alone(self) -> bool:
        """Did nobody else make a call since it went on for the first time?"""
        return self.world.calls - self.calls == self.began

    def _run(self) -> None:
        self.began = self.world.calls
        try:
            self.work(self)
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.ended = True

    def install(self, file: OpenFile) -> int:
        """The lowest free descriptor, for an open file."""
        fd = 3
        while fd in self.files:
            fd += 1
        self.files[fd] = file
        return fd

    def is_ready(self) -> bool:
        """Could it go on at this moment?"""
        if self.wakes is not None and self.world.now >= self.wakes:
            return True
        if self.stopped:
            return False
        if self.ready is not None:
            return self.ready()
        return self.wakes is None
