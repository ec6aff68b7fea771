"""What a seed means: the kind of world, and the commands in it.

Belongs here: drawing. Three of four seeds mean a *sweep* (``sweeps``). One of ten of the others means turns
of clients with transcripts, and three of ten of the rest a *long* world, in which agents do everything for a day. All
others mean a *drill*: few agents, and again and again a few commands beside each other that touch the same thing, with
what they need prepared in peace. Many short drills meet a race at one place sooner than long worlds do, and these meet
what nobody thought of. In a drill each process may be aimed at: one thing befalls it, before one call.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation import coordination, side_files, succession, tasks, watches
from tests.simulation.choices import Profile
from tests.simulation.commands import WEIGHTS
from tests.simulation.disk import SECOND
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

Job = tuple[int, str, int]
"""A command: its place in the run, its name, the number of its agent."""
REST, CALM, STORM, PAUSE, OUTAGE, NIGHT = "rest", "calm", "storm", "pause", "outage", "night"
"""What the driver does between commands: wait until all have ended; that, and from then on nothing goes wrong; from
then on it may; let so many minutes go by; have the power fail. In worlds of several machines:
let so many hours go by, and have each steward run."""
DOUBT = "doubt"
"""What befalls a command behind each of whose changes it is asked what a power failure would leave (``outcomes``)."""
DRIVEN = (REST, CALM, STORM, PAUSE, OUTAGE)
EVERYONE = "everyone "
"""Before a command: each agent does it."""


SCENES = {
    "a release beside the steward": Scene(5, "send everyone check", "release! run_steward! run_steward ack release"),
    "a look beside the steward": Scene(
        4, "send send everyone check", "check! run_steward! hook peek reply ack send", "everyone check"
    ),
    "a steward behind another": Scene(
        3, "send send_many everyone check", "run_steward! run_steward send foreign", "run_steward send check"
    ),
    "writers": Scene(4, "send", "send! send ack check register release send_many", "send check"),
    "writers without locks": Scene(4, "send", "send! foreign! foreign send register check run_steward", "run_steward"),
    "a steward beside writers without locks": Scene(2, "send everyone check", "run_steward! foreign! foreign send"),
    "the roster": Scene(3, "", "register! lead register freeze ask decide", "register lead register"),
    "holders of a role": Scene(
        2, "call call send", "check! check! check hook call retire freeze register", "check check", least=3
    ),
    "guards": Scene(1.5, "everyone check", "shim! send! shim send check hook register lead", "shim"),
    "bound": Scene(1, "", "lead! permit! permit permit hook", "permit permit"),
    "requests": Scene(1, "lead ask ask", "decide! decide! ask run_steward check", "run_steward check"),
    "leaving": Scene(1.5, "send send", "retire freeze register! send! check reply run_steward hook", "check"),
    "backups": Scene(0.5, "send everyone check", "back_up! run_steward! send ack check"),
    "damage": Scene(1, "send everyone check", "damage! check! send hook run_steward register shim", "check"),
    "beginnings": Scene(1, "", "found! found! found register send check hook", "found send"),
    "anything": Scene(2, "send check", "* * *", "check"),
    "a steward whose sync fails": Scene(
        1.5,
        "send everyone check",
        "run_steward! foreign!",
        "send check",
        ("0 park rename*8; 0 fault rename*8>fsync*1", "0 fault rename*8>fsync*1"),
    ),
    "a steward killed behind its change of names": Scene(
        1.5,
        "send everyone check",
        "run_steward!",
        "send run_steward",
        (
            "0 kill rename*8>fsync*1; 1 power fdatasync*3>*4",
            "0 kill rename*8>fsync*1; 1 power *60",
            "0 kill rename*8>*4",
        ),
    ),
    "a steward behind one killed so": Scene(
        1.5,
        "send everyone check",
        "run_steward!",
        "run_steward check",
        ("0 kill rename*8>fsync*1; 1 power fdatasync*3>*4", "0 kill rename*8>fsync*1; 1 power *60"),
    ),
    "who decided dies of a sync": Scene(
        1.5,
        "register",
        "lead!",
        "lead register decide",
        ("0 faint fdatasync*6", "0 fault fdatasync*6>*1; 0 kill fdatasync*6>*5"),
    ),
    "a look at everything beside the steward": Scene(
        1.5, "send send everyone check forget", "check! run_steward! run_steward", "everyone check", ("0 park open*24",)
    ),
    "ids that stand twice": Scene(
        1.5, "send foreign everyone check", "foreign_again! foreign check send", "foreign_again everyone check"
    ),
    "questions": Scene(
        3,
        "send send_many everyone check question",
        "question! send! ack reply release foreign_note check run_steward question configure",
        "everyone question send foreign_note everyone question",
    ),
    "questions beside foreign writers": Scene(
        2, "send foreign_note question", "foreign_note! foreign_again! foreign send check question", "everyone question"
    ),
    "processes that stay": Scene(
        2, "send everyone check", "stand! send! configure check foreign run_steward", "configure stand"
    ),
    "what failed is repeated": Scene(
        2,
        "send send everyone check",
        "ack! ack resend send check",
        "ack resend ack",
        ("0 fault fdatasync*3", "0 faint fdatasync*2", "0 kill fdatasync*2"),
    ),
    "sent again behind the steward": Scene(
        1.5, "send everyone check", "resend! run_steward! release ack send check", "resend everyone check"
    ),
    "files": Scene(1.5, "send everyone check", "attach! run_steward! send check ack", "check run_steward"),
}
SCENES |= succession.SCENES | coordination.SCENES | watches.SCENES | side_files.SCENES | tasks.SCENES
BEGINNINGS = "beginnings"
CLIENTS = {
    "turns": Scene(3, "send send", "turn! send! turn check ack send run_steward register forget", "turn"),
    "turns that are killed": Scene(
        1.5, "send send", "turn!", "turn turn", ("0 kill write*12>utime*2", "0 kill utime*8", "0 kill write*16")
    ),
    "a client that comes back": Scene(
        2, "everyone launch call call everyone turn die", "check! launch! check run_steward", "turn", least=4
    ),
    "turns of holders": Scene(
        2, "call call send", "turn! turn! check run_steward retire register", "turn turn", least=3
    ),
    "clients that are killed": Scene(
        4,
        "everyone launch call call send",
        "turn! die! turn launch check run_steward send call",
        "check turn run_steward",
        least=4,
    ),
}
CLIENTS |= succession.WITH_CLIENTS
"""Drills of clients with transcripts, which other commands do not know how to go on with."""


SWEPT, WITH_CLIENT, LASTS = 0.75, 0.1, 0.3
"""How many worlds are sweeps; how many of the others have clients with transcripts; how many of the rest are long."""
SWEEP, CLIENT, LONG, DRILL = "sweep", "clients", "long", "drill"
"""The first words of the names of kinds of plans."""


class Plan(NamedTuple):
    """All that a seed decides before the run."""

    profile: Profile
    jobs: list[Job]
    max_live: int
    width: int
    victims: tuple[int, ...] = ()
    """The places of commands that are held at a drawn call until nobody else can go on."""
    found: bool = True
    """Is the mailbox there before anything else?"""
    power_at_end: bool = False
    """Does the power fail once all is done?"""
    pauses: float = 0.5
    """How often hours go by while nobody is at work."""
    directed: tuple[tuple[int, str], ...] = ()
    """The places of commands, each with something that befalls it (``choices.aim_of``)."""
    sited: tuple[tuple[int, str], ...] = ()
    """The places of commands, each with what befalls it where it asks the system (``sites``)."""
    beside: tuple[str, ...] = ()
    """Functions of the product, ``log.HeldLog.append``, beside which more is drawn."""
    small: bool = False
    """Does the product take a few for many, so that what it does with many happens here, too?"""
    scans: bool = True
    """Does it scan a log that is large by that?"""
    start: int = 0
    """When it begins, in seconds since 1970; 0: with the year 2026."""


def kinds() -> dict[str, float]:
    """Each kind of plan by its name, and how often it is drawn."""
    from tests.simulation.sweeps import SWEEPS  # which are plans, too

    found: dict[str, float] = {}
    for family, share, weights in (
        (SWEEP, SWEPT, {name: sweep.weight for name, sweep in SWEEPS.items()}),
        (CLIENT, (1 - SWEPT) * WITH_CLIENT, {name: scene.weight for name, scene in CLIENTS.items()}),
        (LONG, (1 - SWEPT) * (1 - WITH_CLIENT) * LASTS, {"": 1.0}),
        (DRILL, (1 - SWEPT) * (1 - WITH_CLIENT) * (1 - LASTS), {name: scene.weight for name, scene in SCENES.items()}),
    ):
        whole = sum(weights.values())
        found |= {f"{family} {name}".rstrip(): share * weight / whole for name, weight in weights.items()}
    return found


def plan_of(seed: int, count: int = 60, *, kind: str = "") -> Plan:
    """What the seed means; what it means as a plan of a ``kind``, if one is named."""
    kind = kind or _drawn(Random(f"kind {seed}"))
    family, _, name = kind.partition(" ")
    chance = Random(f"plan {seed}")
    if family == SWEEP:
        from tests.simulation.sweeps import sweep_of

        return sweep_of(seed, profile_of(seed), name)
    if family == CLIENT:
        # A client starts long after its machine: no coarse time and no clock calls its offers older than the start.
        return drill(chance, profile_of(seed)._replace(grain=1, jump=0.0), CLIENTS[name])
    if family == LONG:
        max_live = (1, 1, 2, 3, 6, 9)[int(chance.random() * 6)]
        return Plan(profile_of(seed), jobs_of(seed, count), max_live, 2 + int(chance.random() * 4))
    return drill(chance, profile_of(seed), SCENES[name])


def _drawn(chance: Random) -> str:
    found = kinds()
    return chance.choices([*found], [*found.values()])[0]


def drill(chance: Random, long: Profile, scene: Scene) -> Plan:
    """A drill, in a world much like a long one's: its own seed decides which faults there are."""
    profile = long._replace(
        switch=(0.0, 0.0, 0.02, 0.1, 0.3)[int(chance.random() * 5)],
        strict=chance.random() < 0.85,
        aimed=(0.3, 0.6, 0.9)[int(chance.random() * 3)],
        aims=_aims(chance, jumps=long.jump > 0),
    )
    if chance.random() < 0.7:
        profile = profile._replace(kill=0.0, stop=0.0, fault=0.0, short=0.0, full=0.0, power=0.0, slow=0.0)
    if any(" power " in aims for aims in scene.aims):
        profile = profile._replace(jump=0.0)  # what is from before a machine's start is told by the clock
    agents = max(2 + int(chance.random() * 2.5), scene.least)
    begins = scene is SCENES[BEGINNINGS]
    jobs: list[tuple[str, int]] = [] if begins else [(CALM, 0), *(("register", who) for who in range(agents))]
    victims: list[int] = []
    directed: list[tuple[int, str]] = []
    for _ in range(1 if begins else 4 + int(chance.random() * 9)):
        jobs += _round(chance, scene, agents, len(jobs), victims, directed)
    numbered = [(place, command, who) for place, (command, who) in enumerate(jobs)]
    max_live = (0, 0, 1, 2)[int(chance.random() * 4)]
    power = not long.jump and chance.random() < 0.5
    return Plan(
        profile, numbered, max_live, 8, tuple(victims), not begins, power_at_end=power, pauses=0.03,
        directed=tuple(directed), small=chance.random() < 0.5,
    )  # fmt: skip


AIMS = ("park", "kill", "fault", "fault", "short", "power", "long", "faint")


def _aims(chance: Random, *, jumps: bool) -> tuple[str, ...]:
    """Which things befall aimed processes: often one alone, so that it is not hidden behind another."""
    there = [kind for kind in AIMS if not (kind == "power" and jumps)]
    if chance.random() < 0.5:
        return (there[int(chance.random() * len(there))],)
    return tuple(kind for kind in there if chance.random() < 0.4) or ("park",)


def _round(
    chance: Random, scene: Scene, agents: int, begun: int, victims: list[int], directed: list[tuple[int, str]]
) -> list[tuple[str, int]]:
    def who() -> int:
        return int(chance.random() * agents)

    jobs: list[tuple[str, int]] = [(CALM, 0)]
    for command in scene.prepared.replace(EVERYONE, EVERYONE.strip() + "_").split():
        _, everyone, each = command.rpartition("everyone_")
        jobs += [(each, number) for number in range(agents)] if everyone else [(each, who())]
    if chance.random() < 0.15:
        jobs.append((PAUSE, 11 if chance.random() < 0.7 else 10 * 60))
    jobs.append((STORM, 0))
    words = scene.met.split()
    met = [word.rstrip("!") for word in words if word.endswith("!")]
    others = [word for word in words if not word.endswith("!")]
    if others:
        met += [others[int(chance.random() * len(others))] for _ in range(int(chance.random() * 3) + (len(met) < 2))]
    places = [begun + len(jobs) + number for number in range(len(met))]
    if not scene.aims and chance.random() < 0.75:  # the first one named, if those beside it are to overtake it
        victims.append(begun + len(jobs) + (0 if chance.random() < 0.6 else int(chance.random() * len(met))))
    jobs += [(_any(chance) if word == "*" else word, who()) for word in met]
    for command in scene.since.replace(EVERYONE, EVERYONE.strip() + "_").split():
        _, everyone, each = command.rpartition("everyone_")
        places.append(begun + len(jobs) + 1)
        jobs += [(REST, 0), *([(each, number) for number in range(agents)] if everyone else [(each, who())])]
    if scene.aims and chance.random() < 0.8:
        directed += _directed(chance, scene.aims[int(chance.random() * len(scene.aims))], len(met), places)
    return jobs


def _directed(chance: Random, aims: str, met: int, places: list[int]) -> Iterator[tuple[int, str]]:
    """Draw the numbers of the calls in aims such as ``0 park rename*8; 1 power fdatasync*3>*4``.

    The command (0 is the first that meets others, 1 the first one behind them), then the kind, and the call: one of the
    first eight of that name. ``>``: counted behind that call. The same words draw the same number.
    """
    drawn: dict[str, str] = {}
    for aim in aims.split(";"):
        who, _, what = aim.strip().partition(" ")
        yield places[0 if who == "0" else met], numbered(chance, what, drawn)


def numbered(chance: Random, what: str, drawn: dict[str, str] | None = None) -> str:
    """Draw the numbers of the calls in ``kill rename*8>fsync*2``; the same as those of ``drawn`` for the same words.

    ``=``: that one."""
    kind, _, calls = what.partition(" ")
    drawn = {} if drawn is None else drawn
    for word in calls.split(">") if is_numbered(what) else ():
        if word not in drawn:
            call, _, most = word.replace("=", "*").partition("*")
            number = int(most) if "=" in word else 1 + int(chance.random() * int(most))
            drawn[word] = f"{call}*{number}"
    return f"{kind} {'>'.join(drawn.get(word, word) for word in calls.split('>'))}".rstrip()


def is_numbered(what: str) -> bool:
    """Return whether something befalls a command at a call of a number, not at a place that is known."""
    return "*" in what or "=" in what


def _any(chance: Random) -> str:
    return WEIGHTS[int(chance.random() * len(WEIGHTS))][0]


def profile_of(seed: int) -> Profile:
    """The kind of world that a seed means."""
    chance = Random(f"profile {seed}")

    def maybe(share: float, value: float) -> float:
        return value if chance.random() < share else 0.0

    jump = maybe(0.2, 0.001)
    return Profile(
        ordered=chance.random() < 0.4,
        grain=(1, 1_000_000, 10_000_000, SECOND, 2 * SECOND)[int(chance.random() * 5)],
        lockless=int(chance.random() * 20) == 0,
        watchless=chance.random() < 0.3,
        switch=(0.005, 0.02, 0.1, 0.3, 0.6)[int(chance.random() * 5)],
        kill=maybe(0.6, (0.001, 0.003, 0.01)[int(chance.random() * 3)]),
        stop=maybe(0.3, 0.001),
        fault=maybe(0.4, (0.001, 0.003, 0.01)[int(chance.random() * 3)]),
        short=maybe(0.3, (0.003, 0.01, 0.05)[int(chance.random() * 3)]),
        full=maybe(0.15, 0.002),
        jump=jump,
        power=0.0 if jump else maybe(0.6, 0.0006),
        slow=maybe(0.3, 0.002),
        strict=chance.random() < 0.6,
        spots=(0, 0, 1, 2)[int(chance.random() * 4)],
        heat=(1, 3, 8)[int(chance.random() * 3)],
        focused=chance.random() < 0.5,
    )


def jobs_of(seed: int, count: int) -> list[Job]:
    """The commands that a seed means, in order, each with its agent."""
    chance = Random(f"jobs {seed}")
    agents = 2 + int(chance.random() * 4)
    jobs: list[Job] = [(number, "register", number) for number in range(agents)]
    # Each world has habits of its own; some do few things, and those often.
    habits = ((0.0, 0.4, 1.0, 1.0, 4.0), (0.0, 0.0, 0.0, 1.0, 5.0))[int(chance.random() * 2)]
    favourites = [habits[int(chance.random() * 5)] for _ in WEIGHTS]
    favourites[0] = favourites[2] = 1.0
    beside = ("", "", "", "release", "check", "send", "hook", "peek")[int(chance.random() * 8)]
    count = count * (1, 2, 3)[int(chance.random() * 3)] // 3
    total = sum(weight * more for (_, weight), more in zip(WEIGHTS, favourites, strict=True))
    while len(jobs) < count:
        drawn = chance.random() * total
        chosen = ""
        for (command, weight), more in zip(WEIGHTS, favourites, strict=True):
            chosen, drawn = command, drawn - weight * more
            if drawn < 0:
                break
        jobs.append((len(jobs), chosen, int(chance.random() * agents)))
        if chosen == beside:  # the steward, from cron, at the wrong moment
            jobs.append((len(jobs), "run_steward", 0))
    return jobs
