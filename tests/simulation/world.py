"""The simulated machine: processes in one thread, and who goes on at every system call.

Belongs here: processes, the scheduler, the clock, signals, faults, power. The calls are ``kernel``'s, the content of a
power failure is ``disk``'s, what processes do is ``commands``'.

Every choice is made at a call of a process, and is known by the process's name and the number of its call. So a run is
its seed, or, for a shorter story, a list of choices that are made while all others are left out (``Choices``).
"""

from __future__ import annotations

import errno
import gc
import sys
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from greenlet import getcurrent, greenlet

from agent_mailbox.store import lock, system
from tests.simulation.disk import SECOND, Disk
from tests.simulation.hosts import Processes
from tests.simulation.kernel import Kernel, OpenFile, failed
from tests.simulation.sites import MISSING, Site, Sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from tests.simulation.disk import Inode

CALLS = (
    *("open", "close", "dup", "read", "pread", "write", "pwrite", "ftruncate", "fsync", "fdatasync", "fstat", "stat"),
    *(
        "lstat",
        "access",
        "utime",
        "chmod",
        "mkdir",
        "rmdir",
        "unlink",
        "rename",
        "replace",
        "link",
        "listdir",
        "scandir",
    ),
    *(
        "readlink",
        "flock",
        "flock_within",
        "monotonic",
        "time_ns",
        "booted",
        "sleep",
        "sched_yield",
        "watched",
        "readable",
        "urandom",
        "getpid",
    ),
    *("geteuid", "getcwd", "kill", "sysconf", "home", "real_path", "absolute", "at_home", "stream", "library_lock"),
)
"""The calls that the simulation answers. Any other that the product made would end the run."""
SILENT = {
    "booted",
    "getpid",
    "geteuid",
    "getcwd",
    "sysconf",
    "home",
    "real_path",
    "absolute",
    "at_home",
    "stream",
    "library_lock",
}
"""Those of them at which nothing can happen: they tell a constant, or consist of other calls."""
CHANGING = {"write", "pwrite", "ftruncate", "fsync", "fdatasync", "utime", "unlink", "rename", "link", "flock"}
"""Calls before which five times as much happens: between them lie the states that matter."""
CAN_FAIL = ("write", "pwrite", "open", "pread", "rename", "unlink", "mkdir", "listdir", "link", "ftruncate")
"""Calls that are made to fail, beside the syncs."""
TURNING = (
    *({"rename", "replace", "ftruncate"},) * 3,
    {"write", "pwrite"},
    {"flock"},
    {"fsync", "fdatasync"},
    {"open"},
)
"""Calls behind which a process is half way: each world has one of these, and more happens at the next calls."""
USUAL = {"open", "close", "read", "pread", "write", "fdatasync", "fsync", "fstat", "stat", "flock", "utime", "unlink"}
"""Calls of which some worlds choose a few, before which more happens."""
AIMS = {
    "fault": ("fdatasync", "fdatasync", "fdatasync", "fsync", "fsync", "write", "open", "rename", "pwrite", "unlink"),
    "short": ("write", "write", "pwrite"),
    "faint": ("fdatasync", "fdatasync", "fsync"),
}
"""Calls that are aimed at, by what shall befall them."""
AIMED = ("write", "fdatasync", "fsync", "rename", "flock", "open", "open", "pread", "fstat", "stat", "utime", "unlink",
         "pwrite", "ftruncate", "link", "listdir", "close", "time_ns", "mkdir")  # fmt: skip
"""The same for all else: each kind of call as often as any other, so that rare ones are met."""
BEHIND = ("rename", "rename", "fdatasync", "fsync", "pwrite", "link")
"""Calls behind which a process is half way: things are aimed at the calls that follow."""
DOUBTED = {"rename", "link", "fsync", "fdatasync"}
"""Calls behind which a power failure takes something else than before."""
TICK = 20_000
"""The ns of a call."""
START = 1_767_225_600 * SECOND
"""The beginning of 2026."""


Met = tuple[str, str, str, str]
"""A call site, a call, what befell it, and the state of another process."""
PRODUCT, WORKLOAD = "/agent_mailbox/", "the workload"
_sites: dict[CodeType, str] = {}


def site_of(frame: FrameType | None) -> str:
    """The function of the product that makes a call, ``store/log.py:HeldLog.append``: the first outside the door."""
    while frame is not None:
        code = frame.f_code
        site = _sites.get(code)
        if site is None:
            _, ours, file = code.co_filename.rpartition(PRODUCT)
            inner = not ours or file == "store/system.py"
            site = _sites[code] = "" if inner else f"{file}:{code.co_qualname.partition('.<')[0]}"
        if site:
            return site
        frame = frame.f_back
    return WORKLOAD


def _can(call: str, kind: str) -> bool:
    """Can that befall the call? A call that cannot fail, or run short, goes on as if nothing had been chosen."""
    writes = "write" in call
    return {"fault": call in CAN_FAIL or "sync" in call, "short": writes, "brim": writes}.get(kind, True)


class Killed(BaseException):
    """The end of a process by ``SIGKILL``: it unwinds the stack, and no call of it has an effect any more."""


class Profile(NamedTuple):
    """What a world is like, drawn from its seed. Probabilities are of one call."""

    ordered: bool = True
    grain: int = 1
    lockless: bool = False
    watchless: bool = False
    switch: float = 0.2
    kill: float = 0.0
    stop: float = 0.0
    fault: float = 0.0
    short: float = 0.0
    full: float = 0.0
    jump: float = 0.0
    power: float = 0.0
    slow: float = 0.0
    strict: bool = False
    """Does whoever has the highest rank go on (probabilistic concurrency testing, Burckhardt 2010)? Else anyone."""
    spots: int = 0
    """How many calls are chosen before which more happens."""
    heat: int = 0
    """At how many calls behind a turning one more happens."""
    focused: bool = False
    """Do kills and faults come there, and hardly elsewhere? Else few long commands come to their end."""
    aimed: float = 0.0
    """How many processes are aimed at: one thing befalls each, before a call that is drawn when it starts."""
    aims: tuple[str, ...] = ()
    """The things that befall them."""


class Aim(NamedTuple):
    """What befalls a process before one of its calls: which of those with that name, or of all (no name).

    ``then``: the call is only where to look from, and this one is meant, counted behind it.
    """

    kind: str
    call: str
    number: int
    then: tuple[str, int] | None = None


def aim_of(words: str) -> Aim:
    """Read ``park rename*2``, or ``fault rename*2>fsync*1``: the first ``fsync`` behind the second ``rename``."""
    kind, _, calls = words.partition(" ")
    (call, number), *then = [
        (call, int(number)) for call, _, number in (word.partition("*") for word in calls.split(">"))
    ]
    return Aim(kind, call, number, then[0] if then else None)


def _now(aims: list[Aim], call: str) -> Aim | None:
    """Count a call down; the aim that meant it, if one did."""
    met = None
    for place, aim in enumerate(aims):
        if aim.call not in ("", call):
            continue
        if aim.number == 1 and aim.then is not None:
            aims[place] = Aim(aim.kind, *aim.then)
            continue
        aims[place] = aim._replace(number=aim.number - 1)
        met = aim if aim.number == 1 else met
    return met


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
        self.trail: tuple[Site, ...] = ()
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


class Choices:
    """The choices of a run: drawn from its seed and written down, or taken from such a list alone."""

    def __init__(self, seed: int, profile: Profile, only: dict[tuple[str, int], str] | None = None) -> None:
        self.chance = Random(f"choices {seed}")
        self.profile = profile
        self.only = only
        self.made: dict[tuple[str, int], str] = dict(only or {})
        p = profile
        self._kinds = [
            ("kill", p.kill), ("stop", p.stop), ("fault", p.fault), ("short", p.short), ("full", p.full),
            ("jump", p.jump), ("power", p.power), ("slow", p.slow),
        ]  # fmt: skip
        self._rare = sum(share for _, share in self._kinds)
        # Each world has calls of its own at which, and behind which, more happens (swarm testing, Groce 2012).
        self._weights = dict.fromkeys(CHANGING, 5.0)
        for _ in range(p.spots):
            spot = sorted(USUAL)[int(self.chance.random() * len(USUAL))]
            self._weights[spot] = 5 * self._weights.get(spot, 1.0)
        self._turning = TURNING[int(self.chance.random() * len(TURNING))]
        self._cold, self._hot = (0.05, 15.0) if p.focused else (1.0, 3.0)

    def at(self, process: Process, call: str, site: Site | None = None) -> str | None:
        """What happens at a call; None for nothing."""
        name, number = process.name, process.calls
        if self.only is not None:
            return self.only.get((name, number))
        if process.marks and site in process.marks:
            kind = self._marked(process.marks, site)
            if kind is not None:
                made = self.made[name, number] = f"{kind} {int(self.chance.random() * 1_000_000)}"
                return made
        if process.aims and (aim := _now(process.aims, call)) is not None:
            made = self.made[name, number] = f"{aim.kind} {int(self.chance.random() * 1_000_000)}"
            return made
        weight, drawn = self._weights.get(call, 1.0), self.chance.random()
        if process.heat:
            process.heat -= 1
            rare, weight = self._rare * weight * self._hot, weight * 3
        else:
            rare = self._rare * weight * self._cold
        if call in self._turning:
            process.heat = self.profile.heat
        rare = min(rare, 0.5)
        if drawn >= rare + self.profile.switch * weight:
            return None
        kind = "switch" if drawn >= rare else self._rare_one(drawn / rare)
        if kind == "short" and "write" not in call:
            kind = "switch"
        detail = int(self.chance.random() * 1_000_000)
        made = self.made[name, number] = f"{kind} {detail}"
        return made

    def aims(self, process: Process) -> list[Aim]:
        """What shall befall a process that starts, and where: at any of its calls, or at one of the first of a kind."""
        profile, chance = self.profile, self.chance
        aims: list[Aim] = []
        if self.only is not None:
            return aims
        length = process.world.lengths.get(process.command, 150)
        place = process.name.partition(" ")[0]
        if place in process.world.directed:
            return [aim_of(words) for words in process.world.directed[place]]
        if place in process.world.victims:
            behind = chance.random() < 0.4
            aims.append(self._behind("park") if behind else Aim("park", "", 1 + int(chance.random() * length)))
        befalls = process.world.sited.get(place)
        if befalls and process.world.sites is not None and not process.world.sites.knows(process.command):
            return [Aim(what.partition(" ")[0], "", 1 + int(chance.random() * min(length, 100))) for what in befalls]
        if not profile.aimed or chance.random() >= profile.aimed:
            return aims
        kind = profile.aims[int(chance.random() * len(profile.aims))]
        if chance.random() < 0.3:
            return [*aims, self._behind(kind)]
        if kind not in AIMS and chance.random() < 0.4:
            return [*aims, Aim(kind, "", 1 + int(chance.random() * length))]
        calls = AIMS.get(kind, AIMED)
        number = 1 + int(chance.random() * 2 ** int(chance.random() * (3 if kind == "fault" else 6)))
        return [*aims, Aim(kind, calls[int(chance.random() * len(calls))], number)]

    def marks(self, process: Process) -> dict[Site, tuple[int, str]]:
        """At which places something shall befall a process that starts: drawn from those that its command came to."""
        world, found = process.world, dict[Site, tuple[int, str]]()
        if self.only is None and world.sites is not None:
            for what in world.sited.get(process.name.partition(" ")[0], ()):
                drawn = world.sites.draw(process.command, what, self.chance)
                if drawn is not None:
                    found[drawn[0]] = drawn[1], what.partition(" ")[0]
        return found

    @staticmethod
    def _marked(marks: dict[Site, tuple[int, str]], site: Site) -> str | None:
        number, kind = marks.pop(site)
        if number > 1:
            marks[site] = number - 1, kind
            return None
        return kind

    def _behind(self, kind: str) -> Aim:
        """Aim at one of the calls that follow a turning one."""
        chance, calls = self.chance, AIMS.get(kind, ("",))
        then = calls[int(chance.random() * len(calls))], 1 + int(chance.random() * (1 if kind in AIMS else 5))
        return Aim(kind, BEHIND[int(chance.random() * len(BEHIND))], 1 + int(chance.random() * 4), then)

    def _rare_one(self, drawn: float) -> str:
        drawn *= self._rare
        for kind, share in self._kinds:
            drawn -= share
            if drawn < 0:
                return kind
        return "switch"


class World:
    """A machine with its disk. ``appeared`` and ``renamed`` are told to a judge."""

    def __init__(self, seed: int, profile: Profile, only: dict[tuple[str, int], str] | None = None) -> None:
        self.seed = seed
        self.profile = profile
        self.choices = Choices(seed, profile, only)
        self.disk = Disk(ordered=profile.ordered, grain=profile.grain)
        self.kernel = Kernel(self, self.disk)
        self.hosts = Processes()
        self.doomed: list[Process] = []
        """Processes that somebody kills."""
        self.now = 1000 * SECOND
        self.offset = START
        self.started = 0
        self.calls = 0
        self.digest = 0
        self.story: list[str] | None = None
        self.met: dict[Met, int] = {}
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
        self._kinds: dict[str, Callable[[Process, str, tuple[Any, ...], int], None]] = {
            "switch": self._switch, "kill": self._kill, "stop": self._stop, "fault": self._fault, "full": self._full,
            "jump": self._jump, "power": self._lose_power, "slow": self._slow, "park": self._park, "long": self._long,
            "faint": self._faint,
        }  # fmt: skip
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
                    words = self._happens(process, name, words, chosen)
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
                self._leave(process)
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
        gc.collect()  # a generator that is left closes its file as it goes: before the real door is back
        for name, value in self._names.items():
            setattr(system, name, value)
        gc.enable()
        sys.unraisablehook = self._hook

    def _unraisable(self, about: Any) -> None:
        """Be silent about a generator that is closed in a process that was killed."""
        if not isinstance(about.exc_value, Killed):
            self._hook(about)

    # -- what happens at a call ---------------------------------------------------------------------------------------

    def _happens(self, process: Process, name: str, words: tuple[Any, ...], chosen: str) -> tuple[Any, ...]:
        """Do what was chosen, and return the words of the call, which may be fewer. Raises what befalls the call."""
        kind, _, text = chosen.partition(" ")
        detail = int(text)
        others = [p for p in self.processes if not p.ended and not p.dead and p is not process]
        about = others[detail % len(others)] if others else None
        state = "alone" if about is None else f"{'stopped at' if about.stopped else 'at'} {about.last}"
        key = (site_of(sys._getframe(2)), name, kind, state)
        if _can(name, kind):
            self.met[key] = self.met.get(key, 0) + 1
        if self.story is not None and kind != "switch":
            self.story.append(f"    {process.name} is about to {name}: {kind}")
        self.digest = crc32(chosen.encode(), self.digest)
        if kind in ("short", "brim"):
            if kind == "brim" and "write" in name:  # the disk takes a part of this write, and nothing of the next one
                process.aims = [*process.aims, Aim("fault", name, 1)]
            return self._shortened(process, name, words, detail)
        self._kinds[kind](process, name, words, detail)
        if process.dead:
            raise Killed
        return words

    def _switch(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        if self.profile.strict:
            process.rank *= self.choices.chance.random()
        self._leave(process)

    def _park(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        process.rank = min(0.0, *(p.rank for p in self.processes)) - 1  # until nobody else can go on
        self._leave(process)

    def _long(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self._pause(process, (10 + detail % 4) * 60 * SECOND)

    def _kill(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self.kill(process)

    def _stop(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        process.stopped = True
        self._pause(process, (detail % 40) * SECOND // 2)

    def _slow(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self._pause(process, (detail % 1000) * SECOND // 100)

    def _pause(self, process: Process, time: int) -> None:
        process.is_late = True
        process.wakes = self.now + time
        self._leave(process)
        process.wakes, process.stopped = None, False

    def _fault(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        process.faults.add(name)
        if name in ("fsync", "fdatasync"):
            file = process.files.get(words[0])
            process.hurt = True
            self.failures += 1
            if file is not None and file.inode is not None and not file.inode.is_directory and detail % 2:
                self.disk.drop(file.inode)
                file.failures = file.inode.failures
            raise failed(errno.EIO)
        if name in CAN_FAIL:
            process.hurt = True
            self.failures += 1
            number = (errno.EIO, errno.ENOSPC, errno.EMFILE)[detail % 3 if name in ("open", "write") else 0]
            if name == "write" and number == errno.EMFILE:
                number = errno.EDQUOT
            raise failed(number, words[0] if isinstance(words[0], str) else None)

    def _faint(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        """Have a sync drop what it was to write, and the process die of that."""
        file = process.files.get(words[0]) if words else None
        if (
            name in ("fsync", "fdatasync")
            and file is not None
            and file.inode is not None
            and not file.inode.is_directory
        ):
            self.failures += 1
            self.disk.drop(file.inode)
        self.kill(process)

    def _shortened(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> tuple[Any, ...]:
        if name not in ("write", "pwrite") or len(words[1]) < 2:
            return words
        inode = process.files[words[0]].inode if words[0] in process.files else None
        if name == "pwrite" and inode is not None and words[2] + len(words[1]) <= len(inode.data):
            return words  # nothing can run short: the bytes have their place already
        process.hurt = True
        return words[0], words[1][: 1 + detail % (len(words[1]) - 1)], *words[2:]

    def _full(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self.disk.full = not self.disk.full
        for other in self.processes:
            if not other.ended:
                other.hurt = True

    def _jump(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self.offset += (detail % 21 - 10) * 360 * SECOND

    def _lose_power(self, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
        self.is_off = True
        self._leave(process)

    def befell(self, *kinds: str) -> bool:
        """Has any of these happened in this world?"""
        if "power" in kinds and self.failures_of_power:
            return True  # one at the end is nobody's call
        return any(kind in kinds for _, _, kind, _ in self.met)

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
        self._leave(process)
        process.wakes, process.ready = None, None

    def block(self, process: Process, ready: Callable[[], bool]) -> None:
        """Have the process wait for something."""
        self.wait(process, None, ready)

    def _leave(self, process: Process) -> None:
        self.hub.switch()
        if process.dead:
            raise Killed

    # -- the scheduler ------------------------------------------------------------------------------------------------

    def spawn(self, name: str, work: Callable[[Process], object]) -> Process:
        """Start a process."""
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
        """Send ``SIGKILL``."""
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

    def power_off(self) -> None:
        """Lose the power, and start again from what was durable."""
        self.is_off = False
        self.kill_all()
        self.failures_of_power += 1
        self.disk.crash(Random(f"power {self.seed} {self.failures_of_power}"))
        self.now += 60 * SECOND
        self.started = self.now
        self.hosts.boot()
        if self.story is not None:
            self.story.append("  the power fails; the machine starts again")
        self.on_power()

    # -- the judge's --------------------------------------------------------------------------------------------------

    def appeared(self, path: str) -> None:
        """A file was made."""
        self.on_appeared(path)

    def is_at(self, path: str, inode: Inode | None) -> bool:
        """Is that the file at the path?"""
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

    def _tell(self, process: Process, name: str, words: tuple[Any, ...], done: Any) -> None:
        assert self.story is not None
        said = ", ".join(_short(word, process) for word in words)
        self.story.append(f"{process.name}: {name}({said}) = {_short(done, process)}")


PURE = {"register_at_fork", "fspath", "WIFEXITED", "WEXITSTATUS"}


def _short(word: Any, process: Process) -> str:
    if isinstance(word, bytes):
        return f"{word[:60]!r}{f'… {len(word)} bytes' if len(word) > 60 else ''}"
    if isinstance(word, int) and word in process.files and word > 2:
        return f"{word}:{process.files[word].path}"
    text = repr(word)
    return text if len(text) < 120 else f"{text[:120]}…"


def _outside(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"the product called {name}, which is outside the simulation")

    return refuse
