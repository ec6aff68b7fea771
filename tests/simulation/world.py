"""The simulated machine: processes in one thread, and who goes on at every system call.

Belongs here: the door, which replaces ``agent_mailbox.store.files.system``; the scheduler, the clock, signals, power.
What happens at a call is chosen by ``choices`` and done by ``mishaps``. The calls are ``kernel``'s, the content of a
power failure is ``disk``'s, what processes do is ``commands``'.
"""

from __future__ import annotations

import gc
import sys
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

from greenlet import getcurrent

from agent_mailbox.space.order import order
from agent_mailbox.store.files import system
from agent_mailbox.store.locks import lock
from tests.simulation.choices import Choices
from tests.simulation.disk import SECOND, Disk
from tests.simulation.hosts import Processes
from tests.simulation.kernel import Kernel
from tests.simulation.mishaps import befall
from tests.simulation.process import Endless, Killed, Process
from tests.simulation.sites import CALLS, DOUBTED, MISSING, PURE, SILENT
from tests.simulation.telling import PEACE, told_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.choices import Profile
    from tests.simulation.disk import Inode
    from tests.simulation.sites import Sites

TICK = 20_000
"""The ns of a call."""
LONGEST = 100_000
"""Calls of a command that does not end; the longest that ends make some 10,000."""
START = 1_767_225_600 * SECOND
"""The beginning of 2026."""
_BOUNDS = lock._bound, order._bound
"""Until when this thread waits for a lock, and for an engine's answer."""


def _set_bounds(until: Sequence[float | None]) -> None:
    for bound, one in zip(_BOUNDS, until, strict=True):
        bound.until = one


ENGINE = ("ask", "publish")
"""The calls that a machine makes of the engine of its space."""


class World:
    """A machine with its disk. ``appeared`` and ``renamed`` are told to a judge."""

    def __init__(
        self, seed: int, profile: Profile, only: dict[tuple[str, int], str] | None = None, start: int = 0
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.choices = Choices(seed, profile, only)
        self.disk = Disk(ordered=profile.ordered, grain=profile.grain)
        self.kernel = Kernel(self, self.disk)
        self.hosts = Processes(start or START)
        self.doomed: list[Process] = []
        """Processes that somebody kills."""
        self.now = 1000 * SECOND
        self.offset = start or START
        self.started = 0
        self.calls = 0
        self.digest = 0
        self.story: list[str] | None = None
        self.befallen: set[str] = set()
        self.processes: list[Process] = []
        self.lengths: dict[str, int] = {}
        """How many calls each command made when one last came to its end."""
        self.victims: frozenset[str] = frozenset()
        """The places of commands that are held until nobody else can go on."""
        self.directed: dict[str, list[str]] = {}
        """The places of commands that something befalls."""
        self.sites: Sites | None = None
        """Where commands ask the system, in a world whose aims are drawn from that."""
        self.sited: dict[str, list[str]] = {}
        """The places of commands in the run, each with what befalls it at such a place."""
        self.doubted: set[str] = set()
        """The places of commands behind whose changes it is asked what a power failure would leave."""
        self.outcomes = 0
        """Power failures that were tried, and did not happen."""
        self.asked: object = None
        """What was unsure when that was last asked."""
        self.in_doubt = False
        """Is that to be asked at this moment?"""
        self.on_doubt: Callable[[str], None] = lambda _: None
        self.running: Process | None = None
        self.hub = getcurrent()
        self.quiet = False
        """Does nothing go wrong, and does nobody interrupt?"""
        self.failures = 0
        self.on_appeared: Callable[[str], None] = lambda _: None
        self.on_renamed: Callable[[], None] = lambda: None
        self.on_power: Callable[[], None] = lambda: None
        self.is_off = False
        self._last: Process | None = None
        self.failures_of_power = 0
        self._names: dict[str, Any] = {}
        self.doors: dict[str, Any] = {"world": self, **{name: self._door(name) for name in CALLS}}

    # -- the door -----------------------------------------------------------------------------------------------------

    def _door(self, name: str) -> Callable[..., Any]:
        method = getattr(self.kernel, name)
        if name in SILENT:
            return lambda *words, **more: method(self.running, *words, **more)
        doubted = name in DOUBTED

        def call(*words: Any, **more: Any) -> Any:
            process = self.running
            if process is None or process.dead:
                if name in ("close", "flock"):
                    return None
                raise Killed
            process.calls += 1
            if process.calls == LONGEST:
                raise Endless(f"{LONGEST:,} calls, and it goes on")
            self.calls += 1
            self.now += TICK
            process.last = name
            sites = self.sites
            site = None
            if sites is not None and not (self.quiet and process.command in self.lengths):  # it was learned
                site = sites.meet(process, name, sys._getframe(1), words)
            if not self.quiet:
                chosen = self.choices.at(process, name, site)
                if chosen is not None:
                    words = befall(self, process, name, words, chosen)
            try:
                done = method(process, *words, **more)
            except OSError:
                process.missing = MISSING
                raise
            self.digest = crc32(f"{process.name} {name} {words[:1]}".encode("utf-8", "replace"), self.digest)
            if self.story is not None:
                self._tell(process, name, words, done)
            if doubted and process.doubted:
                self.in_doubt = True
                self.leave(process)
            return done

        return call

    def __enter__(self) -> World:
        """Replace the door of the product by ours."""
        self._names = {name: getattr(system, name) for name in dir(system) if not name.startswith("__")}
        for name, value in self._names.items():
            if name in self.doors:
                setattr(system, name, self.doors[name])
            elif type(value).__name__ == "builtin_function_or_method" and name not in PURE:
                setattr(system, name, _outside(name))
        system.environ = {}
        lock._held.clear()
        gc.collect()
        gc.freeze()
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self.processes.clear()
        lock._held.clear()
        _set_bounds([None, None])
        gc.collect()  # a generator that is left closes its file as it goes: before the real door is back
        for name, value in self._names.items():
            setattr(system, name, value)
        gc.enable()
        sys.unraisablehook = self._hook

    def _unraisable(self, about: Any) -> None:
        """Be silent about a generator that is closed in a process that was killed."""
        if not isinstance(about.exc_value, Killed):
            self._hook(about)

    # -- what happened -------------------------------------------------------------------------------------------------

    def befell(self, *kinds: str) -> bool:
        """Has any of these happened in this world?"""
        if "power" in kinds and self.failures_of_power:
            return True  # one at the end is nobody's call
        return not self.befallen.isdisjoint(kinds)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wall(self) -> int:
        """The wall clock, ns since 1970."""
        return self.now + self.offset

    def wait(self, process: Process, seconds: float | None, ready: Callable[[], bool] = lambda: False) -> None:
        """Have the process wait for a time, or for something else."""
        if ready():
            return
        process.wakes = None if seconds is None else self.now + max(int(seconds * SECOND), TICK)
        process.ready = ready
        self.leave(process)
        process.wakes, process.ready = None, None

    def block(self, process: Process, ready: Callable[[], bool]) -> None:
        """Have the process wait for something."""
        self.wait(process, None, ready)

    def leave(self, process: Process) -> None:
        """Let others go on until it is the process's turn again."""
        bounds = [bound.until for bound in _BOUNDS]
        _set_bounds([None, None])  # real processes have a thread each
        self.hub.switch()
        _set_bounds(bounds)
        if process.dead:
            raise Killed

    # -- the scheduler ------------------------------------------------------------------------------------------------

    def spawn(self, name: str, work: Callable[[Process], object]) -> Process:
        process = Process(self, name, work)
        self.processes.append(process)
        return process

    def living(self) -> list[Process]:
        """The processes that have not ended."""
        return [process for process in self.processes if not process.ended]

    def turn(self) -> bool:
        """Let one process go on; False if none can ever. Chosen by the seed; in a shortened story the first one."""
        ready = [process for process in self.processes if not process.ended and process.is_ready()]
        if not ready:
            waiting = [process.wakes for process in self.living() if process.wakes is not None]
            if not waiting:
                return False
            self.now = max(self.now, min(waiting))
            return True
        process = self._pick(ready)
        self._last = process
        self.running = process
        process.thread.switch()
        process.turns += 1
        self.running = None
        while self.doomed:
            self.kill(self.doomed.pop())
        if process.ended:
            if not process.dead:
                self.lengths[process.command] = process.calls
            self._bury(process)
        if self.in_doubt or (process.ended and process.doubted):
            self.in_doubt = False
            self.on_doubt(f"{process.name} {'has ended' if process.ended else 'is behind ' + process.last}")
        if self.is_off:
            self.power_off()
        return True

    def _pick(self, ready: list[Process]) -> Process:
        if len(ready) == 1 or self.quiet:
            return ready[0]
        key = f"after {self._last.name if self._last else ''}", self._last.turns if self._last else 0
        if self.choices.only is not None:
            wanted = self.choices.only.get(key)
            return next((process for process in ready if process.name == wanted), ready[0])
        strict = self.profile.strict
        drawn = max(ready, key=lambda p: p.rank) if strict else ready[int(self.choices.chance.random() * len(ready))]
        self.choices.made[key] = drawn.name
        return drawn

    def kill(self, process: Process) -> None:
        process.dead = True
        if process is not self.running and not process.ended:
            self._unwind(process)

    def _unwind(self, process: Process) -> None:
        """Unwind the stack of a dead process; no call of it has an effect."""
        before, self.running = self.running, process
        if process.thread:
            process.thread.throw(Killed)
        process.ended = True
        self.running = before
        self._bury(process)

    def _bury(self, process: Process) -> None:
        if not process.files:
            return
        for file in process.files.values():
            self.kernel.shut(file)
        process.files = {}

    def kill_all(self) -> None:
        """End every process."""
        for process in self.living():
            process.dead = True
            self._unwind(process)

    def make_peace(self) -> None:
        """End every process; from now on nothing goes wrong."""
        self.kill_all()
        self.quiet = True
        self.tell(PEACE)

    def lose_power(self, process: Process) -> None:
        """Have the power fail at a call of the process."""
        self.is_off = True
        self.leave(process)

    def power_off(self) -> None:
        """Lose the power, and start again from what was durable."""
        self.is_off = False
        self.kill_all()
        self.failures_of_power += 1
        self.disk.crash(Random(f"power {self.seed} {self.failures_of_power}"))
        self.now += 60 * SECOND
        self.started = self.now
        self.hosts.boot(self.wall())
        self.tell("the power fails; the machine starts again")
        self.on_power()

    # -- the judge's --------------------------------------------------------------------------------------------------

    def appeared(self, path: str) -> None:
        """A file was made, or came into its place."""
        self.on_appeared(path)

    def is_at(self, path: str, inode: Inode | None) -> bool:
        try:
            return self.kernel.look_up(path) is inode
        except OSError:
            return False

    def renamed(self) -> None:
        """Names changed, or became durable."""
        self.on_renamed()

    def written(self, inode: Inode) -> None:
        """A file was written to."""

    def shuffled(self, names: list[str]) -> list[str]:
        """The names of a directory, in no useful order."""
        if len(names) > 1:
            cut = self.seed % len(names)
            return names[cut:] + names[:cut]
        return names

    def tell(self, what: str) -> None:
        """Tell what is no call, if somebody listens."""
        if self.story is not None:
            self.story.append(f"  {what}")

    def _tell(self, process: Process, name: str, words: tuple[Any, ...], done: Any) -> None:
        assert self.story is not None
        files = {} if name in ENGINE else process.files
        said = ", ".join(told_value(word, files) for word in words)
        self.story.append(f"{process.name}: {name}({said}) = {told_value(done, files)}")


def _outside(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"the product called {name}, which is outside the simulation")

    return refuse
