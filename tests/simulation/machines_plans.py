"""What a seed means for a world of several machines: the kind of world, and what happens in it.

Belongs here: drawing. Four of five seeds mean a *sweep* (``machines_sweeps``); the others mean a long story, in which
everybody does everything.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.choices import Profile
from tests.simulation.disk import SECOND
from tests.simulation.plans import AIMS, CALM, NIGHT, REST
from tests.simulation.rich import TURNS

if TYPE_CHECKING:
    from tests.simulation.plans import Job

WEIGHTS = {
    "send": 10, "check": 9, "hook": 5, "ack": 2, "release": 1.5, "freeze": 0.5,
    "replicate": 5, "run_steward": 2.5, "cut": 1.2, "clock": 0.6,
}  # fmt: skip
SWEPT = 0.8
"""How many worlds are sweeps."""
LONG = "a long story"
ROLES = (("dev", "ops"), ("dev",))
"""Those of a machine's first session, and of its second."""


LASTS = 0.3
"""How many worlds last for days."""
HOURS = (9, 25, 25, 60)
"""What goes by before a round of such a world, twice at most: nobody is frozen for the seven days that kill."""


class Network(NamedTuple):
    """What the ways to the engine are like: the shares of questions that something befalls."""

    lost: float = 0.0
    """It never arrives."""
    mute: float = 0.0
    """It arrives, and its answer does not."""
    late: float = 0.0
    """It is given up, and arrives after that, perhaps after its sender has died."""
    doubled: float = 0.0
    slow: float = 0.0
    """It takes up to a second; else some milliseconds."""

    @classmethod
    def of(cls, seed: int) -> Network:
        chance = Random(f"network {seed}")
        return cls(*(chance.random() * 0.15 if chance.random() < 0.5 else 0.0 for _ in range(5)))


class MachinePlan(NamedTuple):
    """All that a seed decides before the run."""

    profile: Profile
    network: Network
    jobs: list[Job]
    machines: int
    sessions: int
    """Those of each machine."""
    trusted: str
    """Whom the person of each machine lets speak: ``all`` (each other's sessions), ``user`` (the person there, too),
    or nobody."""
    max_live: int
    width: int
    sited: tuple[tuple[int, str], ...] = ()
    """The places of commands, each with what befalls it where it asks the system (``sites``)."""
    small: bool = False
    """Does the product take a few for many, so that what it does with many happens here, too?"""
    found: int = 9
    """How many machines have joined before anything else; the others join in the run."""
    start: int = 0
    """When it begins, in seconds since 1970; 0: with the year 2026."""

    @classmethod
    def again(cls, kept: dict[str, Any]) -> MachinePlan:
        jobs, sited = [tuple(job) for job in kept["jobs"]], tuple((place, what) for place, what in kept["sited"])
        deep = {"profile": Profile(**kept["profile"]), "network": Network(**kept["network"])}
        return cls(**kept | deep | {"jobs": jobs, "sited": sited})


def plan_of(seed: int, count: int = 60, *, kind: str = "") -> MachinePlan:
    """What the seed means. ``kind``: it means this sweep, or a long story (``LONG``)."""
    from tests.simulation.machines_sweeps import sweep_of  # which are plans, too

    if kind not in ("", LONG) or (not kind and Random(f"kind of machines {seed}").random() < SWEPT):
        return lasting(seed, sweep_of(seed, kind))
    chance = Random(f"space {seed}")
    machines = 2 + int(chance.random() * 2)
    plan = MachinePlan(
        profile=profile(seed), network=Network.of(seed), jobs=jobs_of(seed, count, 2 * machines), machines=machines,
        sessions=2, trusted=("all", "user", "")[int(chance.random() * 3)],
        max_live=(0, 1, 3, 9)[int(chance.random() * 4)], width=2 + int(chance.random() * 5),
    )  # fmt: skip
    return lasting(seed, plan)


def lasting(seed: int, plan: MachinePlan) -> MachinePlan:
    """Let days go by in some worlds, in place of the peace before a round, or of a command of a long story.

    No command gets another place by that, so what a seed means otherwise stays. Some begin before a month ends."""
    chance = Random(f"nights {seed}")
    if chance.random() >= LASTS:
        return plan
    calm = [place for place, name, _ in plan.jobs if place and (name == CALM or plan.jobs[0][1] != CALM)]
    nights = {place: chance.choice(HOURS) for place in chance.sample(calm, min(len(calm), 2))}
    jobs = [(place, NIGHT, nights[place]) if place in nights else (place, name, n) for place, name, n in plan.jobs]
    return plan._replace(jobs=jobs, start=chance.choice((0, *TURNS)))


def jobs_of(seed: int, count: int, sessions: int) -> list[Job]:
    """The commands of a long story, in order, each with the number of its session.

    Some come in a bout: mail to a role, which all machines take in, and then everybody looks at once."""
    chance = Random(f"machines {seed}")
    habits = {name: weight * (0.2, 1.0, 1.0, 3.0)[int(chance.random() * 4)] for name, weight in WEIGHTS.items()}
    habits["send"], habits["check"] = WEIGHTS["send"], WEIGHTS["check"]
    names, bouts, jobs = [*habits], (0.0, 0.05, 0.2)[int(chance.random() * 3)], list[tuple[str, int]]()
    while len(jobs) < count:
        if chance.random() < bouts:
            jobs += [("call", int(chance.random() * sessions)) for _ in range(1 + int(chance.random() * 3))]
            jobs += [(REST, 0), *(("replicate", number) for number in range(0, sessions, 2)), (REST, 0)]
            jobs += [(("check", "hook")[int(chance.random() * 2)], number) for number in range(sessions)]
        else:
            jobs.append((chance.choices(names, [*habits.values()])[0], int(chance.random() * sessions)))
    return [(place, name, number) for place, (name, number) in enumerate(jobs)]


def profile(seed: int) -> Profile:
    """The kind of world: rarer faults than on one machine, since a process is slower by its questions to the engine."""
    chance = Random(f"profile of machines {seed}")

    def maybe(share: float, *values: float) -> float:
        value = values[int(chance.random() * len(values))]
        return value if chance.random() < share else 0.0

    aims = tuple(kind for kind in AIMS if chance.random() < 0.5)
    return Profile(
        ordered=chance.random() < 0.4,
        grain=(1, 1_000_000, 10_000_000, SECOND)[int(chance.random() * 4)],
        watchless=chance.random() < 0.3,
        switch=(0.005, 0.02, 0.1, 0.3)[int(chance.random() * 4)],
        kill=maybe(0.5, 0.0001, 0.0003, 0.001),
        stop=maybe(0.2, 0.0003),
        fault=maybe(0.25, 0.0001, 0.0003),
        short=maybe(0.25, 0.001, 0.01),
        full=maybe(0.1, 0.0001),
        power=maybe(0.5, 0.00003, 0.0001, 0.0003),
        slow=maybe(0.3, 0.0005),
        strict=chance.random() < 0.5,
        heat=(1, 3, 8)[int(chance.random() * 3)],
        focused=chance.random() < 0.5,
        aimed=maybe(0.6, 0.1, 0.3) if aims else 0.0,
        aims=aims,
    )
