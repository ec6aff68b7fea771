"""The choices of a run: who goes on and what happens at each call, drawn from its seed, or taken from a list.

Belongs here: how likely each is, drawing them, and aims: things that shall befall a process at one of its calls. A
choice is known by the process's name and the number of its call. So a run is its seed, or, for a shorter story, a list
of choices that are made while all others are left out. Doing what was chosen is ``mishaps``'.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.sites import EACH_TIME, Site

if TYPE_CHECKING:
    from tests.simulation.process import Process


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


CHANGING = {"write", "pwrite", "ftruncate", "fsync", "fdatasync", "utime", "unlink", "rename", "link", "flock"}
"""Calls before which five times as much happens: between them lie the states that matter."""
TURNING = (*({"rename", "replace", "ftruncate"},) * 3, {"write", "pwrite"}, {"flock"}, {"fsync", "fdatasync"}, {"open"})
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
            kinds = [what.partition(" ")[0] for what in befalls]
            return [Aim(EACH_TIME.get(kind, kind), "", 1 + int(chance.random() * min(length, 100))) for kind in kinds]
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
        if number > 1 or kind in EACH_TIME:
            marks[site] = max(number - 1, 1), kind
        return None if number > 1 else EACH_TIME.get(kind, kind)

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
