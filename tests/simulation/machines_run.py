"""A run of a world of several machines: drawn from a seed, driven, settled, judged.

Belongs here: driving such a world, and one door to the rooms of its commands. ``scripts/simulate --machines`` runs them
alone.
"""

from __future__ import annotations

import traceback
from time import process_time
from typing import TYPE_CHECKING, Any

from agent_mailbox.errors import BadData, Busy, MailboxError, NotFound, Refused, StorageFailed
from agent_mailbox.space import joining_space, replicator
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import known_copy, replica
from agent_mailbox.space.order.order import PAGE
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.upkeep import shared_steward
from tests.simulation import (
    machines_absence,
    machines_days,
    machines_files,
    machines_joining,
    machines_mail,
    machines_proofs,
    machines_tasks,
)
from tests.simulation.disk import SECOND
from tests.simulation.judge_showings import LAPSES
from tests.simulation.machines import Machines
from tests.simulation.machines_days import keep_up, settle, tidy
from tests.simulation.machines_deeds import DEEDS, LIAR, Deed
from tests.simulation.machines_deeds import key_of as key_of_liar
from tests.simulation.machines_files import OrderWithFiles
from tests.simulation.machines_joining import confide, found, key_of
from tests.simulation.machines_judge import Judge, Session
from tests.simulation.machines_plans import ROLES, plan_of
from tests.simulation.machines_stage import Stage
from tests.simulation.machines_sweeps import SWEEPS, TALLY, THEN
from tests.simulation.plans import CALM, NIGHT, REST, STORM, is_numbered
from tests.simulation.process import Killed
from tests.simulation.runs import Result, named_ids, replaced
from tests.simulation.sites import Sites
from tests.simulation.telling import READY, first_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from agent_mailbox.space.space import Space
    from tests.simulation.machines import Machine
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_plans import MachinePlan
    from tests.simulation.machines_stage import Stage
    from tests.simulation.plans import Job
    from tests.simulation.process import Process


COMMANDS: dict[str, Callable[[Stage, Process, Session], object]] = {
    "send": machines_mail.send,
    "call": machines_mail.call,
    "check": machines_mail.check,
    "hook": machines_mail.hook,
    "ack": machines_mail.ack,
    "release": machines_mail.release,
    "freeze": machines_joining.freeze,
    "replicate": machines_days.replicate,
    "run_steward": machines_days.run_steward,
    "register": machines_joining.register,
    "look": machines_mail.look,
    "mend": machines_days.mend,
    "blind": machines_days.blind,
    "join": machines_joining.join,
    "alone": machines_joining.alone,
    "rename": machines_joining.rename,
    "order": machines_joining.order,
    "forbid": machines_joining.forbid,
    "mortals": machines_joining.mortals,
    "retell": machines_days.run_steward,
    "newcomer": machines_joining.newcomer,
    "trust": machines_joining.trust,
    "send_to": machines_mail.send_to,
    "post": machines_mail.post,
    "twin": machines_joining.twin,
    "return": machines_mail.give_back,
    "foreign": machines_mail.foreign,
    "look_elsewhere": machines_joining.look_elsewhere,
}
COMMANDS |= {"attach": machines_files.attach} | machines_absence.COMMANDS | machines_days.COMMANDS
COMMANDS |= machines_tasks.COMMANDS
SWEEPS |= machines_days.SWEEPS | machines_tasks.SWEEPS
DEEDS |= machines_days.DEEDS | {"false_file": machines_files.false_file, "slip": machines_absence.slip}
WAITED = (REST, CALM, STORM, NIGHT, TALLY, *DEEDS)
"""What is not begun before everybody has ended. Links are cut and clocks set beside others in long stories, too."""
ANY_TIME = ("cut", "clock")


def networked(world: Machines, *, small: bool = False) -> AbstractContextManager[None]:
    """Let the product reach the engine by our order, and ask our clock where it asks Python's, for a block.

    ``small``: a few are many for it."""

    def order_of(space: Space, _patience: float = 5.0) -> OrderWithFiles:
        return OrderWithFiles(world, space.machine)

    def is_signed(*words: Any) -> bool:
        if is_blind():
            raise ImportError("no library that verifies")
        return signed(*words)

    def is_blind() -> bool:
        return world.running is not None and world.running.is_blind

    doors, signed = world.doors, machine_keys.is_signed
    return replaced(
        (
            (spaces, "order_of", order_of),
            (joining_space, "monotonic", doors["monotonic"]),
            (joining_space, "sleep", doors["sleep"]),
            (replicator, "monotonic", doors["monotonic"]),
            (replicator, "time_ns", doors["time_ns"]),
            (shared_steward, "COMPACT_ABOVE", 6 if small else 15),
            (replica, "PAGE", 4 if small else PAGE),
            (known_copy, "KEPT", 0.01 if small else known_copy.KEPT),
            (machine_keys, "is_available", lambda: not is_blind()),
            (machine_keys, "is_signed", is_signed),
        )
    )


ALIVE = 180
"""Hours that a world lets go by at most: who is silent for eight days is dead, and is refused."""


class Driver:
    """What drives a run."""

    def __init__(self, world: Machines, stage: Stage, plan: MachinePlan, jobs: Sequence[Job], most: int) -> None:
        self.world = world
        self.stage = stage
        self.judge = stage.judge
        self.plan = plan
        self.jobs = jobs
        self.most = most
        self.hours = ALIVE

    def run(self) -> None:
        """Found, work, settle, judge."""
        world, judge = self.world, self.judge
        self._prepare()
        done = 0
        while not judge.breaches and world.calls < self.most:
            while done < len(self.jobs) and not judge.breaches and self._begins(*self.jobs[done]):
                done += 1
            if not world.living():
                break
            if not world.turn():
                judge.breach("nobody can go on: " + ", ".join(f"{p.name} at {p.last}" for p in world.living()))
            self._reap()
        if not judge.breaches:
            self._settle()

    def _prepare(self) -> None:
        world, there = self.world, self.world.machines[: self.plan.found]
        world.quiet = True
        for machine in there:
            self._alone(machine, "found", found)
        for machine in there:
            self._alone(machine, "key", key_of)
        self.stage.keys[LIAR] = machine_keys.key_fingerprint(key_of_liar(world.seed, 1).public)
        if self.plan.trusted:
            for machine in there:
                self._alone(machine, "confide", confide)
        for session in self.judge.sessions:
            if session.machine.joined:
                self._command("0", "register", session)
                self._until_idle()
        for machine in there:
            self._alone(machine, "settle", settle)  # who knows nobody of that name sends to a role
        world.quiet = False
        world.tell(READY)

    def _begins(self, place: int, name: str, number: int) -> bool:
        """Begin the next command, if there is room for it; or do what happens between commands."""
        living, session = len(self.world.living()), self.judge.sessions[0 if name == NIGHT else number]
        if name in WAITED and living and name not in ANY_TIME:
            return False
        if name == THEN:
            return all(process.rank < 0 for process in self.world.living())
        if name in (CALM, STORM):
            self.world.quiet = name == CALM
        elif name == NIGHT and number <= self.hours:
            self.hours -= number
            self._let_go_by(number)
        elif name == TALLY:
            self._each(name, machines_proofs.tally)
        elif name in DEEDS:
            self.world.tell(f"{place} {name} {session.machine.name}: {first_sentence(DEEDS[name])}")
            DEEDS[name](Deed(self.stage, place, session))
            self._reap()
        elif name not in (REST, NIGHT):
            if living >= (1 if self.world.quiet else self.plan.width):  # in peace one follows the other
                return False
            self._command(str(place), name, session)
        return True

    def _let_go_by(self, hours: int) -> None:
        """Let so many hours go by, in which each steward runs as in life."""
        self.world.quiet = True
        self.world.tell(f"{hours} hours go by")
        for _ in range(hours // 12 + 1):  # one that hears of nothing for a day moves nothing
            self.world.now += hours * 3600 * SECOND // (hours // 12 + 1)
            for machine in self.world.machines:
                self._alone(machine, "run_steward", keep_up)
        self.world.quiet = (0, CALM, 0) in self.plan.jobs  # a long story has no peace

    def _settle(self) -> None:
        """Nothing goes wrong any more: all machines catch up, and everyone looks, until there is nothing new."""
        world = self.world
        world.make_peace()
        self._reap()
        for machine in world.machines:
            machine.away_until, machine.is_unheard, machine.disk.full = 0, False, False
        world.now += 2 * LAPSES
        for machine in world.machines:
            if not machine.joined or self.plan.found < len(world.machines):
                self._alone(machine, "found", found)
        for round_ in range(3):
            for machine in world.machines:
                self._alone(machine, "settle" if round_ else "first", settle)
            for session in self.judge.sessions:
                if session.registered:
                    self._command("end", "look", session)
                    self._until_idle()
            if self.judge.breaches:
                return
        for _ in range(2):
            for machine in world.machines:
                self._alone(machine, "settle", settle)
        if self.judge.attached:
            for _ in range(3):
                for machine in world.machines:
                    self._alone(machine, "exchange", machines_files.exchange)
                world.now += LAPSES
            for machine in world.machines:
                self._alone(machine, "files", machines_files.look)
        self._each("proofs", machines_proofs.look)
        self._each("tasks", machines_tasks.tasks)
        if not self.judge.breaches:
            self.judge.finish()
        if not self.judge.breaches and not self.judge.edited and not self.judge.is_damaged:
            self._each("tidy", tidy)

    def _each(self, name: str, question: Callable[[Stage, Process, Machine], object]) -> None:
        """Ask all machines, whose answers are compared."""
        self.judge.holders.clear()
        for machine in self.world.machines:
            self._alone(machine, name, question)

    def _alone(self, machine: Machine, name: str, work: Callable[[Stage, Process, Machine], object]) -> None:
        process = self.world.begin(
            machine, f"{name} {machine.name}", lambda process: work(self.stage, process, machine)
        )
        process.in_peace = True
        self._until_idle()

    def _command(self, place: str, name: str, me: Session) -> None:
        work = COMMANDS[name]
        process = self.world.begin(me.machine, f"{place} {name} {me.id}", lambda process: work(self.stage, process, me))
        until = max(me.machine.away_until, me.machine.doubted_until)
        process.in_peace = self.world.quiet and not me.machine.is_unheard and self.world.now >= until
        self.world.tell(f"{process.name} starts: {first_sentence(work)}")

    def _until_idle(self) -> None:
        while self.world.living() and self.world.turn():
            self._reap()
        self._reap()

    def _reap(self) -> None:
        ended = [process for process in self.world.processes if process.ended]
        self.world.processes = [process for process in self.world.processes if not process.ended]
        for process in ended:
            self.judge.interrupted(process)
            for session in self.judge.sessions:
                session.acted = self.world.now if process.name.endswith(f" {session.id}") else session.acted
            error = process.error
            if error is None or isinstance(error, Killed):
                continue
            self.world.tell(f"{process.name} ends: {type(error).__name__}: {error}")
            words = process.name.split(" ")
            command = words[1] if len(words) > 2 else words[0]
            if not expected(error, command, process, edited=bool(self.judge.edited)):
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.judge.breach(f"{process.name}: {type(error).__name__}: {error} ({where.name}:{where.lineno})")


def run(
    seed: int,
    *,
    count: int = 60,
    kind: str = "",
    beside: Sequence[str] = (),
    plan: MachinePlan | None = None,
    jobs: Sequence[Job] | None = None,
    only: dict[tuple[str, int], str] | None = None,
    told: bool = False,
    most: int = 400_000,
) -> Result:
    """Run the world of several machines of a seed, as a ``kind`` of sweep, or of a plan; ``jobs`` and ``only`` leave
    parts of it out. More is drawn ``beside`` these functions of the product."""
    started = process_time()
    plan = plan or plan_of(seed, count, kind=kind)
    world = Machines(seed, plan.profile, plan.machines, plan.network, only, plan.start * SECOND)
    for place, what in plan.sited:
        (world.directed if is_numbered(what) else world.sited).setdefault(str(place), []).append(what)
    world.sites = Sites(beside) if plan.sited and only is None else None
    if told:
        world.story = []
    judge = Judge(world)
    for machine in world.machines:
        judge.sessions += [Session(f"{machine.name}-{n}", machine, ROLES[n]) for n in range(plan.sessions)]
    jobs = plan.jobs if jobs is None else list(jobs)
    stage = Stage(world, judge, plan.max_live, plan.trusted)
    with world, networked(world, small=plan.small):
        Driver(world, stage, plan, jobs, most).run()
    return Result(
        seed=seed, kind=kind, beside=beside, breaches=judge.breaches, calls=world.calls, digest=world.digest,
        seconds=process_time() - started, simulated=(world.now - 1000 * SECOND) / SECOND, shown=judge.shown,
        acknowledged=judge.acknowledged, checks=judge.checks, made=world.choices.made,
        jobs=[*jobs], story=world.story or [], about=named_ids(judge.breaches),
    )  # fmt: skip


def expected(error: BaseException, command: str, process: Process, *, edited: bool = False) -> bool:
    """May the command end with this error?"""
    if isinstance(error, Busy):
        return not process.in_peace  # the engine out of reach is one
    if edited and isinstance(error, Refused | BadData):
        return command in ("trust", "run_steward")
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.profile.lockless or process.world.profile.full > 0
    if isinstance(error, Refused | NotFound):
        return command in ("ack", "release", "return", "unclaim", "freeze", "run_steward")
    return isinstance(error, OSError | MailboxError) and process.hurt
