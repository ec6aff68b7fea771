"""A run of a world of several machines: drawn from a seed, driven, settled, judged.

Belongs here: drawing such a world, and driving it. ``scripts/simulate --machines`` runs them alone.
"""

from __future__ import annotations

import traceback
from random import Random
from time import process_time
from typing import TYPE_CHECKING

from agent_mailbox.engine import joining_space, replicator
from agent_mailbox.mailbox import space as spaces
from agent_mailbox.upkeep import shared_steward
from tests.simulation.disk import SECOND
from tests.simulation.judge import LAPSES
from tests.simulation.machines import LossyOrder, Machines
from tests.simulation.machines_commands import COMMANDS, NoFiles, Stage, expected, found, key_of, settle, trust
from tests.simulation.machines_judge import Judge, Session
from tests.simulation.plans import AIMS, REST
from tests.simulation.runs import Result, replaced
from tests.simulation.world import Killed, Profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agent_mailbox.mailbox.space import Space
    from tests.simulation.machines import Machine
    from tests.simulation.plans import Job
    from tests.simulation.world import Process

WEIGHTS = {
    "send": 10, "check": 9, "hook": 5, "ack": 2, "release": 1.5, "freeze": 0.5,
    "replicate": 5, "run_steward": 2.5, "cut": 1.2, "clock": 0.6,
}  # fmt: skip


def jobs_of(seed: int, count: int, sessions: int) -> list[Job]:
    """The commands that a seed means, in order, each with the number of its session.

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


def networked(world: Machines) -> AbstractContextManager[None]:
    """Let the product reach the engine by our order, and ask our clock where it asks Python's, for a block."""

    def order_of(space: Space, _patience: float = 5.0) -> LossyOrder:
        return LossyOrder(world, space.machine)

    doors = world.doors
    return replaced(
        (
            (spaces, "order_of", order_of),
            (spaces, "files_of", lambda *_: NoFiles()),
            (joining_space, "monotonic", doors["monotonic"]),
            (joining_space, "sleep", doors["sleep"]),
            (replicator, "monotonic", doors["monotonic"]),
            (replicator, "time_ns", doors["time_ns"]),
            (shared_steward, "COMPACT_ABOVE", 15),
        )
    )


class Driver:
    """What drives a run."""

    def __init__(self, world: Machines, judge: Judge, stage: Stage, jobs: list[Job], most: int) -> None:
        self.world = world
        self.judge = judge
        self.stage = stage
        self.jobs = jobs
        self.most = most
        self.chance = Random(f"driver {world.seed}")
        self.width = 2 + int(self.chance.random() * 5)

    def run(self) -> None:
        """Found, work, settle, judge."""
        world = self.world
        world.quiet = True
        for machine in world.machines:
            self._alone(machine, "found", found)
        if self.chance.random() < 0.6:
            keys: dict[str, str] = {}
            for machine in world.machines:
                self._alone(machine, "key", lambda stage, _, at: keys.update({at.name: key_of(stage, at)}))
            for machine in world.machines:
                self._alone(machine, "trust", lambda stage, process, at: trust(stage, process, at, keys))
        for session in self.judge.sessions:
            self._command("0", "register", session)
            self._until_idle()
        for machine in world.machines:
            self._alone(machine, "settle", settle)  # who knows nobody of that name sends to a role
        world.quiet = False
        done = 0
        while not self.judge.breaches and world.calls < self.most:
            while done < len(self.jobs) and len(world.living()) < self.width:
                if self.jobs[done][1] == REST and world.living():
                    break
                self._begin(*self.jobs[done])
                done += 1
            if not world.living():
                break
            if not world.turn():
                self.judge.breach("nobody can go on: " + ", ".join(f"{p.name} at {p.last}" for p in world.living()))
            self._reap()
        if not self.judge.breaches:
            self._settle()

    def _begin(self, place: int, name: str, number: int) -> None:
        session = self.judge.sessions[number]
        if name == "cut":
            session.machine.away_until = self.world.now + int(self.chance.random() ** 2 * 120 * SECOND)
        elif name == REST:
            return
        elif name == "clock":
            if self.world.profile.power or "power" in self.world.profile.aims:
                return  # what is from before a machine's start is told by the clock
            session.machine.offset += int((self.chance.random() * 6 - 3) * 3600) * SECOND
        else:
            self._command(str(place), name, session)

    def _settle(self) -> None:
        """Nothing goes wrong any more: all machines catch up, and everyone looks, until there is nothing new."""
        world = self.world
        world.kill_all()
        self._reap()
        world.quiet = True
        for machine in world.machines:
            machine.away_until, machine.disk.full = 0, False
        world.now += 2 * LAPSES
        for _ in range(3):
            for machine in world.machines:
                self._alone(machine, "settle", settle)
            for session in self.judge.sessions:
                self._command("end", "look", session)
                self._until_idle()
            if self.judge.breaches:
                return
        for _ in range(2):
            for machine in world.machines:
                self._alone(machine, "settle", settle)
        if not self.judge.breaches:
            self.judge.finish()

    def _alone(self, machine: Machine, name: str, work: Callable[[Stage, Process, Machine], object]) -> None:
        self.world.begin(machine, f"{name} {machine.name}", lambda process: work(self.stage, process, machine))
        self._until_idle()

    def _command(self, place: str, name: str, me: Session) -> None:
        work = COMMANDS[name]
        process = self.world.begin(me.machine, f"{place} {name} {me.id}", lambda process: work(self.stage, process, me))
        if self.world.story is not None:
            self.world.story.append(f"  {process.name} starts")

    def _until_idle(self) -> None:
        while self.world.living() and self.world.turn():
            self._reap()
        self._reap()

    def _reap(self) -> None:
        ended = [process for process in self.world.processes if process.ended]
        self.world.processes = [process for process in self.world.processes if not process.ended]
        for process in ended:
            self.judge.interrupted(process)
            error = process.error
            if error is None or isinstance(error, Killed):
                continue
            if self.world.story is not None:
                self.world.story.append(f"  {process.name} ends: {type(error).__name__}: {error}")
            words = process.name.split(" ")
            if not expected(error, words[1] if len(words) > 2 else words[0], process):
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.judge.breach(f"{process.name}: {type(error).__name__}: {error} ({where.name}:{where.lineno})")


def run(seed: int, count: int = 60, *, told: bool = False, most: int = 400_000) -> Result:
    """Run the world of several machines that a seed means."""
    started = process_time()
    chance = Random(f"space {seed}")
    world = Machines(seed, profile(seed), 2 + int(chance.random() * 2))
    if told:
        world.story = []
    judge = Judge(world)
    for machine in world.machines:
        judge.sessions += [Session(f"{machine.name}-{n}", machine, (("dev", "ops"), ("dev",))[n]) for n in range(2)]
    jobs = jobs_of(seed, count, len(judge.sessions))
    stage = Stage(world, judge, (0, 1, 3, 9)[int(chance.random() * 4)])
    with world, networked(world):
        Driver(world, judge, stage, jobs, most).run()
    return Result(
        seed=seed, kind="", beside=(), breaches=judge.breaches, calls=world.calls, digest=world.digest,
        seconds=process_time() - started, simulated=(world.now - 1000 * SECOND) / SECOND, shown=judge.shown,
        acknowledged=judge.acknowledged, checks=judge.checks, met=world.met, made=world.choices.made,
        jobs=jobs, story=world.story or [],
    )  # fmt: skip
