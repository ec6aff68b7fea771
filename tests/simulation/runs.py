"""One run: a world drawn from a seed, its workload, its judge, and how it ended.

Belongs here: drawing a world, driving it to its end, shortening a failing one.
"""

from __future__ import annotations

import re
import traceback
from random import Random
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from agent_mailbox.store import rotation
from tests.simulation import commands
from tests.simulation.commands import WEIGHTS, Stage
from tests.simulation.disk import SECOND
from tests.simulation.judge import LAPSES, Judge
from tests.simulation.world import Killed, Met, Process, Profile, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Job = tuple[int, str, int]
"""A command: its place in the run, its name, the number of its agent."""


class Result(NamedTuple):
    """How a run ended."""

    seed: int
    breaches: list[str]
    calls: int
    digest: int
    seconds: float
    simulated: float
    shown: int
    acknowledged: int
    checks: int
    met: dict[Met, int]
    made: dict[tuple[str, int], str]
    jobs: list[Job]
    story: list[str]


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
            chosen, drawn = command.__name__, drawn - weight * more
            if drawn < 0:
                break
        jobs.append((len(jobs), chosen, int(chance.random() * agents)))
        if chosen == beside:  # the steward, from cron, at the wrong moment
            jobs.append((len(jobs), "run_steward", 0))
    return jobs


def run(
    seed: int,
    *,
    count: int = 60,
    jobs: Sequence[Job] | None = None,
    only: dict[tuple[str, int], str] | None = None,
    told: bool = False,
    most: int = 200_000,
) -> Result:
    """Run the world of a seed; ``jobs`` and ``only`` leave parts of it out."""
    started = process_time()
    world = World(seed, profile_of(seed), only)
    if told:
        world.story = []
    jobs = jobs_of(seed, count) if jobs is None else list(jobs)
    judge = Judge(world)
    chance = Random(f"stage {seed}")
    stage = Stage(
        world,
        judge,
        1 + max((number for _, _, number in jobs), default=0),
        (1, 1, 2, 3, 6, 9)[int(chance.random() * 6)],
    )
    pauses = Random(f"pauses {seed}")
    width = 2 + int(chance.random() * 4)
    before = rotation.COMPACT_ABOVE
    with world:
        try:
            rotation.COMPACT_ABOVE = 15
            _drive(Driver(world, judge, stage, list(jobs), pauses, width, most, []))
        finally:
            rotation.COMPACT_ABOVE = before
    return Result(
        seed=seed, breaches=judge.breaches, calls=world.calls, digest=world.digest, seconds=process_time() - started,
        simulated=(world.now - 1000 * SECOND) / SECOND, shown=judge.shown, acknowledged=judge.acknowledged,
        checks=judge.checks, met=world.met, made=world.choices.made, jobs=list(jobs), story=world.story or [],
    )  # fmt: skip


def kind(breach: str) -> str:
    """What is broken, without the names and numbers of the case."""
    return re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d+|role:\w+|project:\w+", "N", breach)


class Driver(NamedTuple):
    """What drives a run."""

    world: World
    judge: Judge
    stage: Stage
    jobs: list[Job]
    pauses: Random
    width: int
    most: int
    again: list[Job]
    """Commands that were killed, and that somebody repeats."""


def _drive(it: Driver) -> None:
    world, judge = it.world, it.judge
    for round_, quiet in enumerate((False, True) if it.pauses.random() < 0.5 else (True,)):
        world.quiet, world.disk.full = quiet, False
        _start(it, f"{round_}", "found", lambda process: commands.found(it.stage, process))
        _until_idle(it)
    world.quiet = False
    done = 0
    while not judge.breaches and world.calls < it.most:
        living = world.living()
        if not living and it.pauses.random() < 0.5:
            world.now += int(it.pauses.random() * 8 * 3600) * SECOND
        while it.again and len(living) < it.width:
            place, name, number = it.again.pop()
            _command(it, f"{place}+", name, f"agent-{number}")
            living = world.living()
        while done < len(it.jobs) and len(living) < it.width:
            place, name, number = it.jobs[done]
            _command(it, place, name, f"agent-{number}")
            done += 1
            living = world.living()
        if not living:
            break
        if not world.turn():
            judge.breach("nobody can go on: " + ", ".join(f"{p.name} at {p.last}" for p in world.living()))
        _reap(it)
    if not judge.breaches:
        _settle(it)


def _settle(it: Driver) -> None:
    """Nothing goes wrong any more: everyone alive looks, until there is nothing new."""
    world = it.world
    world.kill_all()
    _reap(it)
    world.quiet = True
    world.disk.full = False
    world.now += 2 * LAPSES  # what the killed had claimed goes back
    for round_ in range(2):
        for session in list(it.judge.sessions.values()):
            if session.registered is not None and not session.may_be_dead and not session.retired:
                _command(it, 1000 + round_, "_last", session.id)
                _until_idle(it)
        if it.judge.breaches:
            return
    _command(it, 1002, "run_steward", "agent-0")
    _until_idle(it)
    for session in list(it.judge.sessions.values()):
        if session.registered is not None and not session.may_be_dead and not session.retired:
            _command(it, 1003, "settle", session.id)
            _until_idle(it)
    it.judge.finish()


def _until_idle(it: Driver) -> None:
    while it.world.living() and it.world.turn():
        _reap(it)
    _reap(it)


def _command(it: Driver, number: int | str, name: str, session: str) -> None:
    work: Callable[..., object] = (
        (lambda stage, process, me: commands._deliver(stage, process, me))
        if name == "_last"
        else getattr(commands, name)
    )
    me = it.judge.sessions[session]
    _start(it, number, f"{name} {session}", lambda process: work(it.stage, process, me))


def _start(it: Driver, number: int | str, name: str, work: Callable[[Process], object]) -> None:
    process = it.world.spawn(f"{number} {name}", work)
    if it.world.story is not None:
        it.world.story.append(f"  {process.name} starts")


def _reap(it: Driver) -> None:
    ended = [process for process in it.world.processes if process.ended]
    if not ended:
        return
    it.world.processes = [process for process in it.world.processes if not process.ended]
    for process in ended:
        it.judge.interrupted(process)
        error = process.error
        if process.dead and not it.world.quiet:
            _repeat(it, process)
        if error is None or isinstance(error, Killed):
            continue
        command = process.name.split(" ")[1]
        if it.world.story is not None:
            it.world.story.append(f"  {process.name} ends: {type(error).__name__}: {error}")
        if not commands.expected(error, command, process):
            where = traceback.extract_tb(error.__traceback__)[-1]
            it.judge.breach(f"{process.name}: {type(error).__name__}: {error} ({where.name}:{where.lineno})")


def _repeat(it: Driver, process: Process) -> None:
    """Have a command that was killed come again, as cron and a person repeat it."""
    place, name, *session = process.name.split(" ")
    if session and not place.endswith("+") and Random(f"again {it.world.seed} {place}").random() < 0.3:
        it.again.append((int(place), name, int(session[0].partition("-")[2])))
