"""One run: a world drawn from a seed, its workload, its judge, and how it ended.

Belongs here: drawing a world, driving it to its end, shortening a failing one.
"""

from __future__ import annotations

import re
import traceback
from contextlib import contextmanager
from functools import partial
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_mailbox.clients.permission import permit
from agent_mailbox.errors import MailboxError
from agent_mailbox.store.archive import roster_compaction
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.files import system
from agent_mailbox.store.log import events, stamps
from agent_mailbox.store.polling import foreign_lines, poll
from agent_mailbox.store.projection import intake, open_ends, projection_file
from tests.simulation import (
    clients,
    commands,
    coordination,
    days,
    hosts,
    outcomes,
    policies,
    reading,
    second_judge,
    upkeep,
    watches,
)
from tests.simulation.disk import SECOND
from tests.simulation.judge import Judge
from tests.simulation.judge_showings import LAPSES
from tests.simulation.kernel_libraries import Database
from tests.simulation.plans import CALM, DOUBT, DRIVEN, OUTAGE, PAUSE, STORM, Job, Plan, plan_of
from tests.simulation.process import Killed, Process
from tests.simulation.sites import Sites
from tests.simulation.stage import Stage
from tests.simulation.telling import first_sentence
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.simulation.letters import Session


WITH_TRANSCRIPTS = {*clients.COMMANDS, *hosts.COMMANDS}
WITH_PROJECT = {*coordination.COMMANDS, *watches.COMMANDS, *days.COMMANDS}
SMALL: tuple[tuple[Any, str, int], ...] = (
    (roster_compaction, "COMPACT_ABOVE", 15),
    (attachment_files, "DAY", 0),
    (attachment_files, "GRACE", 8 * 60_000),
    (open_ends, "SHORT", 0),
    (events, "LIMIT", 300),
    (stamps, "MANY", 1),
    (stamps, "ASIDES", 2),
    (foreign_lines, "NEAR", 300),
    (poll, "LARGE", 2000),
    (intake, "SLICE", 600),
    (intake, "MANY", 300),
)
"""Numbers from which the product takes other ways, as small worlds come to them."""


@contextmanager
def replaced(values: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Give names of modules other values for a block."""
    before = [getattr(module, name) for module, name, _ in values]
    try:
        for module, name, value in values:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(values, before, strict=True):
            setattr(module, name, value)


class Result(NamedTuple):
    """How a run ended."""

    seed: int
    kind: str
    """The kind of plan that was named; none: drawn from the seed."""
    beside: Sequence[str]
    breaches: list[str]
    calls: int
    digest: int
    seconds: float
    simulated: float
    shown: int
    acknowledged: int
    checks: int
    made: dict[tuple[str, int], str]
    jobs: list[Job]
    story: list[str]
    about: Sequence[str] = ()
    """The ids that a broken promise is about: those by which the judge's answers differ, else those that it names."""


def run(
    seed: int,
    *,
    count: int = 60,
    kind: str = "",
    beside: Sequence[str] = (),
    plan: Plan | None = None,
    jobs: Sequence[Job] | None = None,
    only: dict[tuple[str, int], str] | None = None,
    told: bool = False,
    most: int = 200_000,
) -> Result:
    """Run the world of a seed, as a ``kind`` of plan, or of a plan; ``jobs`` and ``only`` leave parts of it out.

    More is drawn ``beside`` these functions of the product.
    """
    started = process_time()
    plan = plan or plan_of(seed, count, kind=kind)._replace(beside=tuple(beside))
    world = World(seed, plan.profile, only, plan.start * SECOND)
    world.victims = frozenset(map(str, plan.victims))
    for place, aim in plan.directed:
        world.directed.setdefault(str(place), []).append(aim)
    for place, what in plan.sited:
        if what == DOUBT:
            world.doubted.add(str(place))
        else:
            world.sited.setdefault(str(place), []).append(what)
    world.sites = Sites(plan.beside) if plan.sited and only is None else None
    if told:
        world.story = []
    jobs = plan.jobs if jobs is None else list(jobs)
    judge = Judge(world)
    agents = 1 + max((number for _, name, number in plan.jobs if name not in DRIVEN), default=0)
    stage = Stage(world, judge, agents, plan.max_live)
    world.on_doubt = partial(outcomes.ask, stage)
    small = [one for one in SMALL if plan.scans or one[1] != "LARGE"] if plan.small else SMALL[:4]
    with world, replaced([*small, *_libraries(world)]):
        _drive(Driver(world, judge, stage, plan, list(jobs), Random(f"pauses {seed}"), most, []))
    return Result(
        seed=seed, kind=kind, beside=plan.beside, breaches=judge.breaches, calls=world.calls, digest=world.digest,
        seconds=process_time() - started, simulated=(world.now - 1000 * SECOND) / SECOND, shown=judge.shown,
        acknowledged=judge.acknowledged, checks=judge.checks, made=world.choices.made,
        jobs=list(jobs), story=world.story or [],
        about=sorted(judge.about) or named_ids(judge.breaches),
    )  # fmt: skip


def named_ids(breaches: Sequence[str]) -> list[str]:
    """The ids that the first breach names."""
    return list(dict.fromkeys(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", " ".join(breaches[:1]))))


def _libraries(world: World) -> list[tuple[Any, str, Any]]:
    return [(permit, "Cancelling", policies.Unended), (projection_file, "connect", partial(Database, world.doors))]


def kind(breach: str) -> str:
    """What is broken, without the names and numbers of the case."""
    return re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d+|role:\w+|project:\w+", "N", breach)


class Driver(NamedTuple):
    """What drives a run."""

    world: World
    judge: Judge
    stage: Stage
    plan: Plan
    jobs: list[Job]
    pauses: Random
    most: int
    again: list[Job]
    """Commands that were killed, and that somebody repeats."""


def _drive(it: Driver) -> None:
    world, judge = it.world, it.judge
    if it.plan.found:
        _found(it)
    if any(name in WITH_TRANSCRIPTS for _, name, _ in it.jobs):
        _prepare(it, lambda _: system.mkdir(clients.TRANSCRIPTS))
    if any(name in WITH_PROJECT for _, name, _ in it.jobs):
        _prepare(it, coordination.project)
    done = 0
    while not judge.breaches and world.calls < it.most:
        if not world.living() and it.pauses.random() < it.plan.pauses:
            world.now += int(it.pauses.random() * 8 * 3600) * SECOND
        while it.again and len(world.living()) < it.plan.width:
            place, name, number = it.again.pop()
            _command(it, f"{place}+", name, f"agent-{number}")
        while done < len(it.jobs) and _begins(it, *it.jobs[done]):
            done += 1
        if not world.living():
            break
        if not world.turn():
            judge.breach("nobody can go on: " + ", ".join(f"{p.name} at {p.last}" for p in world.living()))
        _reap(it)
    if not judge.breaches and it.plan.power_at_end:
        world.power_off()  # what is counted or noted, and not durable, shows then
    if not judge.breaches:
        _settle(it)


def _prepare(it: Driver, work: Callable[[Process], object]) -> None:
    it.world.quiet = True
    _start(it, "0", "home", work)
    _until_idle(it)
    it.world.quiet = False


def _found(it: Driver) -> None:
    for round_, quiet in enumerate((False, True) if it.pauses.random() < 0.5 else (True,)):
        it.world.quiet, it.world.disk.full = quiet, False
        _start(it, f"{round_}", "found", lambda process: upkeep.found(it.stage, process))
        _until_idle(it)
    it.world.quiet = False


def _begins(it: Driver, place: int, name: str, number: int) -> bool:
    """Begin the next command, if there is room for it; or do what the driver does between commands."""
    if name not in DRIVEN:
        if len(it.world.living()) >= it.plan.width:
            return False
        _command(it, place, name, f"agent-{number}")
    elif it.world.living():
        return False
    elif name == PAUSE:
        it.world.now += number * 60 * SECOND
    elif name == OUTAGE:
        it.world.power_off()
    elif name in (CALM, STORM):
        it.world.quiet, it.world.disk.full = name == CALM, False
    return True


def _settle(it: Driver) -> None:
    """Nothing goes wrong any more: everyone alive looks, until there is nothing new."""
    world = it.world
    world.make_peace()
    _reap(it)
    world.disk.spoiled.clear()
    world.disk.full = False
    if it.judge.founded is None:
        _start(it, 999, "found", lambda process: upkeep.found(it.stage, process))
        _until_idle(it)
        if it.judge.founded is None:
            it.judge.breach("the mailbox cannot be made, and nothing goes wrong any more")
    for session_id in list(it.stage.clients):
        if _is_there(it.judge.sessions[session_id]):
            _command(it, 998, "resume", session_id)
            _until_idle(it)
    world.now += 2 * LAPSES  # what the killed had claimed goes back
    for round_ in range(2):
        for session in list(it.judge.sessions.values()):
            if session.registered is not None and _is_there(session):
                _command(it, 1000 + round_, "_last", session.id)
                _until_idle(it)
        if it.judge.breaches:
            return
    _command(it, 1002, "run_steward", "agent-0")
    _until_idle(it)
    it.world.spawn("1002 tidy", lambda _: upkeep.look_tidy(it.stage))
    _until_idle(it)
    for session in list(it.judge.sessions.values()):
        if session.registered is not None and _is_there(session):
            _command(it, 1003, "settle", session.id)
            _until_idle(it)
    it.world.spawn("1004 judged", lambda _: second_judge.hold_all(it.stage))
    _until_idle(it)
    watches.finish(it.stage)
    it.judge.finish()


def _is_there(session: Session) -> bool:
    return not session.may_be_dead and not session.retired and not session.is_gone


def _until_idle(it: Driver) -> None:
    while it.world.living() and it.world.turn():
        _reap(it)
    _reap(it)


def _command(it: Driver, number: int | str, name: str, session: str) -> None:
    work: Callable[..., object] = reading.deliver if name == "_last" else commands.named(name)
    me = it.judge.sessions[it.stage.present.get(session, session)]
    _start(it, number, f"{name} {session}", lambda process: work(it.stage, process, me), first_sentence(work))


def _start(it: Driver, number: int | str, name: str, work: Callable[[Process], object], about: str = "") -> None:
    process = it.world.spawn(f"{number} {name}", work)
    if about:
        it.world.tell(f"{process.name} starts: {about}")


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
        it.world.tell(f"{process.name} ends: {type(error).__name__}: {error}")
        early = it.judge.founded is None or it.judge.founded > process.first
        if not (early and isinstance(error, MailboxError)) and not commands.expected(error, command, process):
            where = traceback.extract_tb(error.__traceback__)[-1]
            it.judge.breach(f"{process.name}: {type(error).__name__}: {error} ({where.name}:{where.lineno})")


def _repeat(it: Driver, process: Process) -> None:
    """Have a command that was killed come again, as cron and a person repeat it."""
    place, name, *session = process.name.split(" ")
    if session and not place.endswith("+") and Random(f"again {it.world.seed} {place}").random() < 0.3:
        it.again.append((int(place), name, int(session[0].partition("-")[2])))
