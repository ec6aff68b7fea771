"""What is measured: one function a group, each making its subjects in the worlds of a ``Bench``.

Belongs here: which command lines in which state, and how a group is put together. How a process is timed is
``timing``; what the figures have to reach is ``goals``.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from agent_mailbox.core import instant
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.files import paths

from . import launch, writers
from .children import Child, ask
from .timing import Failed, Subject, Timed, paired, peak_mib, run_once, works
from .world import RARE, RARE_MESSAGES, World, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

UNREAD = 5
FRESH = "fresh mail"
NEWCOMER = "newcomer"
"""The session that registers and retires."""
BUSY_RATES = (10, 200)
"""Mails and checks a second among twenty others: ten in all, and ten by each of them."""
BUSY_AGENTS = 20
CHEAP = 3
"""So many times the rounds for what takes a millisecond: one that the scheduler took weighs less among more."""
BUSY_SECONDS = 300
"""After so long the load ends by itself, whatever became of us."""

HOOK, BUSY, HOOK_MAIL, CHECK_MAIL, CHECK = (
    "hook, nothing new",
    "hook, nothing new, others busy",
    "hook, 5 unread",
    "check, 5 unread",
    "check, nothing new",
)
SEND, SEARCH, PLAIN_CHECK, PLAIN_SEND, FLOOR = (
    "send, durable",
    "search, a rare word, warm",
    "plain: check, nothing new",
    "plain: send, durable",
    "floor",
)
REGISTER, RETIRE, CHANGED_SEND, LIST, STAMPS = (
    "roster register",
    "roster retire",
    "send, durable, after a change of the roster",
    "roster list",
    "the stamps of all removed",
)
POLL, CURSOR, CURSOR_PEAK, INDEX, PEAK = (
    "poll inside a process, nothing new",
    "cursor rebuilt from nothing",
    "cursor rebuilt from nothing: peak memory",
    "search with everything derived gone",
    "check: peak memory",
)
START, STATUS, DEAD = "session start, nothing new", "status", "dead-letters"
FOREIGN = "check, 5 unread by another program"


@dataclass(frozen=True)
class Fact:
    """A figure that is no ratio."""

    name: str
    value: float
    unit: str
    size: int = 0
    agents: int = 0
    how: str = ""


@dataclass
class Results:
    """Everything one run found out."""

    timed: list[Timed] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def of(self, name: str) -> list[Timed]:
        """The timed subjects of a name."""
        return [one for one in self.timed if one.subject.name == name]

    def facts_of(self, name: str) -> list[Fact]:
        """The facts of a name."""
        return [fact for fact in self.facts if fact.name == name]


class Bench:
    """The worlds of one run, made when first asked for, and what was found in them."""

    def __init__(
        self, scratch: Path, sizes: tuple[int, ...], agents: tuple[int, ...], rounds: int, writes: int
    ) -> None:
        self.scratch = scratch
        self.sizes = sizes
        self.agents = agents
        self.rounds = rounds
        self.writes = writes
        self.results = Results()
        self._worlds: dict[tuple[int, int], World] = {}
        self._launchers: dict[str, tuple[str, ...]] = {}

    def world(self, size: int, agents: int) -> World:
        """The mailbox of that many messages and agents, its measured sessions having read everything."""
        if (size, agents) not in self._worlds:
            self._worlds[size, agents] = world = build(self.scratch, size, agents)
            self.prime(world)
        return self._worlds[size, agents]

    def worlds(self) -> list[World]:
        """All of them."""
        return [self.world(size, agents) for size in self.sizes for agents in self.agents]

    def crowded(self) -> list[World]:
        """Those with the longest roster."""
        return [self.world(size, self.agents[-1]) for size in self.sizes]

    def prime(self, world: World) -> None:
        """Have the measured sessions read what there is."""
        measured = world.quiet, world.attended, world.prompted, world.checking
        ask(self.scratch, "prime", str(world.directory), *measured)

    def launchers(self) -> dict[str, tuple[str, ...]]:
        """The ways to start the program that work at this time."""
        if not self._launchers:
            world = self.world(self.sizes[0], self.agents[0])
            env = self.env(world)
            probe = ("check", "--session", world.quiet)
            ways = {name: way for name, way in launch.LAUNCHERS.items() if works((*way, *probe), env)}
            if not ways:
                raise Failed("no launcher works")
            self._launchers = ways
        return self._launchers

    def env(self, world: World) -> dict[str, str]:
        """The environment of a command in a world."""
        return launch.command_environment(self.scratch, world.directory)

    def time(self, subjects: Iterable[Subject], times: int = 1) -> None:
        """Time the subjects in one run, in ``times`` as many rounds as usual, and keep the figures."""
        self.results.timed += paired(list(subjects), self.rounds * times)


def _hook(bench: Bench, world: World, session: str, shell: str, words: tuple[str, ...], name: str) -> Subject:
    return Subject(
        name=name,
        argv=(*words, launch.shim(bench.scratch), launch.PROMPT),
        env=launch.hook_environment(bench.scratch, world.directory, session),
        stdin=launch.hook_input(world.directory, session, launch.PROMPT),
        expect=_silent,
        size=world.size,
        agents=world.agents,
        how=shell,
    )


def _begin_session(bench: Bench, world: World, session: str) -> None:
    """What the client calls once, before any prompt."""
    env = launch.hook_environment(bench.scratch, world.directory, session)
    given = launch.hook_input(world.directory, session, launch.BEGIN)
    run_once((launch.shim(bench.scratch), launch.BEGIN), env, given)


def _silent(output: bytes) -> bool:
    return output == b""


def _has_fresh(output: bytes) -> bool:
    to_model, _, _ = output.partition(b'"systemMessage"')  # which names some of the mail once more, for the person
    return to_model.count(FRESH.encode()) == UNREAD


def _commands(bench: Bench, world: World, name: str, *words: str) -> list[Subject]:
    """One subject a launcher."""
    made = partial(Subject, name=name, env=bench.env(world), size=world.size, agents=world.agents)
    return [made(argv=(*way, *words), how=how) for how, way in bench.launchers().items()]


def _send_fresh(world: World, reader: str) -> None:
    """Five messages for the reader, the state a measured check finds."""
    drafts = [Draft(sender=world.sender, to=(reader,), content=f"{FRESH} {k}: please look.") for k in range(UNREAD)]
    Mailbox(str(world.directory)).send_all(drafts)


# -- groups -----------------------------------------------------------------------------------------------------------


def hook(bench: Bench) -> None:
    """The hook with nothing new through the shipped shim, in each shell; the shell alone is the floor."""
    shells = launch.shells()
    for world in bench.worlds():
        _begin_session(bench, world, world.attended)
    floor = [
        Subject(name=FLOOR, argv=(*words, "-c", ":"), env=launch.environment(bench.scratch), how=f"an empty {shell}")
        for shell, words in shells.items()
    ]
    mine = [_hook(bench, w, w.attended, shell, words, HOOK) for w in bench.worlds() for shell, words in shells.items()]
    bench.time([*floor, *mine], CHEAP)


def busy(bench: Bench) -> None:
    """The same while twenty others mail each other and check."""
    for world in dict.fromkeys([bench.crowded()[0], bench.crowded()[-1]]):
        _begin_session(bench, world, world.attended)
        others = [f"busy-{k:02}" for k in range(BUSY_AGENTS)]
        for rate in BUSY_RATES:
            arguments = ("load", str(world.directory), str(rate), str(BUSY_SECONDS), *others)
            with Child(bench.scratch, *arguments) as load:
                bench.time(
                    _hook(bench, world, world.attended, f"{shell}, {rate}/s", words, BUSY)
                    for shell, words in launch.shells().items()
                )
            done = load.answer["done"] / load.answer["seconds"]
            bench.results.facts.append(Fact("load kept up", done, "/s", world.size, world.agents, f"{rate}/s"))


def mail(bench: Bench) -> None:
    """Hook and check with five unread messages, sent before each round."""
    shell, words = next(iter(launch.shells().items()))
    subjects = []
    for world in bench.worlds():
        _begin_session(bench, world, world.prompted)
        prompted = [_hook(bench, world, world.prompted, shell, words, HOOK_MAIL)]
        checking = _commands(bench, world, CHECK_MAIL, "check", "--session", world.checking)
        for reader, found in ((world.prompted, prompted), (world.checking, checking)):
            fresh = partial(_send_fresh, world, reader)
            subjects += [replace(subject, before=fresh, expect=_has_fresh) for subject in found]
    bench.time(subjects)


def check(bench: Bench) -> None:
    """Check with nothing new, ours and the plain scheme's, in the same mailboxes; and the memory each takes.

    One run a size: the plain scheme's seconds over a long history must not cost a short one its rounds.
    """
    for size in bench.sizes:
        subjects = []
        for world in (bench.world(size, agents) for agents in bench.agents):
            subjects += _commands(bench, world, CHECK, "check", "--session", world.quiet)
        subjects.append(_plain_check(bench, bench.world(size, bench.agents[-1])))
        bench.time(subjects)
        for one in subjects:
            if one.agents == bench.agents[-1]:
                peak = peak_mib(one.argv, one.env)
                bench.results.facts.append(Fact(PEAK, peak, "MiB", one.size, one.agents, one.how))


def _plain_check(bench: Bench, world: World) -> Subject:
    return Subject(
        name=PLAIN_CHECK,
        argv=(*launch.PLAIN, "check", "--session", world.quiet, "--dir", str(world.directory)),
        env=bench.env(world),
        expect=lambda output: output == b"0 unread\n",
        size=world.size,
        agents=world.agents,
        how="plain",
    )


def send(bench: Bench) -> None:
    """A durable send, ours, the plain scheme's, and the least that lock, write and sync cost in Python."""
    subjects = []
    for world in bench.worlds():
        subjects += _commands(bench, world, SEND, *_letter(world))
    first = bench.crowded()[0]
    copy = bench.scratch / "plain"
    shutil.copytree(first.directory, copy)
    plain = (*launch.PLAIN, *_letter(first), "--dir", str(copy))
    floor = (*launch.FLOOR_SEND, str(bench.scratch / "floor"))
    env = bench.env(first)
    subjects.append(Subject(PLAIN_SEND, plain, env, size=first.size, agents=first.agents, how="plain"))
    subjects.append(Subject(FLOOR, floor, env, how="lock, write, unlock, sync in Python"))
    bench.time(subjects)


def _letter(world: World) -> tuple[str, ...]:
    body = "The ledger's schema has changed; please migrate before the next release and tell the librarian."
    return ("send", "--from", world.sender, "--to", world.sink, "--body", body)


def roster(bench: Bench) -> None:
    """A change of the roster, what follows one, all agents listed; and the stamps of all, which mail to many ends."""
    subjects = []
    for world in (bench.world(bench.sizes[0], agents) for agents in bench.agents):
        newcomer = ("--session-id", NEWCOMER, "--name", "Newcomer")
        for name, words, before in (
            (REGISTER, ("roster", "register", *newcomer), "retire"),
            (RETIRE, ("roster", "retire", NEWCOMER), "register"),
            (CHANGED_SEND, _letter(world), "change"),
        ):
            change = partial(_change, world, before)
            subjects += [replace(one, before=change) for one in _commands(bench, world, name, *words)]
        subjects += _commands(bench, world, LIST, "roster", "list")
        answer = ask(bench.scratch, "stamps", str(bench.scratch), str(world.agents))
        bench.results.facts.append(Fact(STAMPS, answer["ms"], "ms", world.size, world.agents))
    bench.time(subjects)


def _change(world: World, what: str) -> None:
    """Retire the newcomer, register it, or do both."""
    box = Mailbox(str(world.directory))
    box.register(Registration(session_id=NEWCOMER, name="Newcomer"), NEWCOMER)
    if what != "register":
        box.end(NEWCOMER, "retire", NEWCOMER)


def search(bench: Bench) -> None:
    """A search for a rare word, all that can be derived being there."""

    def found(output: bytes) -> bool:
        return output.count(RARE.encode()) >= RARE_MESSAGES

    subjects = [one for world in bench.crowded() for one in _commands(bench, world, SEARCH, "search", RARE)]
    bench.time(replace(one, expect=found) for one in subjects)


def poll(bench: Bench) -> None:
    """A poll with nothing new inside a process."""
    for world in bench.worlds():
        answer = ask(bench.scratch, "poll", str(world.directory), world.quiet)
        bench.results.facts.append(Fact(POLL, answer["us"], "µs", world.size, world.agents))


def rebuild(bench: Bench) -> None:
    """What it takes to begin with nothing derived: a session's cursor, and the first search."""
    for world in bench.worlds():
        answer = ask(bench.scratch, "rebuild", str(world.directory), world.quiet)
        here = (world.size, world.agents)
        bench.results.facts.append(Fact(CURSOR, answer["seconds"], "s", *here))
        bench.results.facts.append(Fact(CURSOR_PEAK, answer["mib"], "MiB", *here))
        if world.agents == bench.agents[-1]:
            shutil.rmtree(world.directory / ".cache", ignore_errors=True)
            way = next(iter(bench.launchers().values()))
            seconds, _ = run_once((*way, "search", RARE), bench.env(world))
            bench.results.facts.append(Fact(INDEX, seconds, "s", *here))
        bench.prime(world)


def throughput(bench: Bench) -> None:
    """One and eight durable writers, and what the disk gives to raw appends."""
    world = build(bench.scratch / "writers", bench.sizes[0], bench.agents[0])
    for name, value, unit in writers.figures(bench.scratch, world, bench.writes):
        bench.results.facts.append(Fact(name, value, unit))


def owed(bench: Bench) -> None:
    """A known session's start with nothing new, and its status: what is owed, and what nobody read."""
    shell, words = next(iter(launch.shells().items()))
    subjects = []
    for world in bench.crowded():
        _begin_session(bench, world, world.attended)
        start = _hook(bench, world, world.attended, shell, words, START)
        given = launch.hook_input(world.directory, world.attended, launch.BEGIN)
        subjects.append(replace(start, argv=(*words, launch.shim(bench.scratch), launch.BEGIN), stdin=given))
        subjects += _commands(bench, world, STATUS, "status", "--session", world.quiet)
        subjects += _commands(bench, world, DEAD, "dead-letters", "--session", world.quiet)
    bench.time(subjects)


def foreign(bench: Bench) -> None:
    """Check with five messages that a program without our writer appended before each round, an index being there."""
    subjects = []
    for world in bench.crowded():
        run_once((*next(iter(bench.launchers().values())), "search", RARE), bench.env(world))
        made = _commands(bench, world, FOREIGN, "check", "--session", world.checking)
        subjects += [replace(one, before=partial(_append_fresh, world), expect=_has_fresh) for one in made]
    bench.time(subjects)


def _append_fresh(world: World) -> None:
    """Append five messages as a script does: no lock, no announcement."""
    common = {
        "sender": world.sender,
        "recipient": world.checking,
        "timestamp": instant.text(time.time_ns() // 1_000_000),
    }
    lines = ({"id": str(uuid.uuid4()), **common, "content": f"{FRESH} {k}"} for k in range(UNREAD))
    with (world.directory / paths.MESSAGES).open("a") as log:
        log.writelines(json.dumps(line) + "\n" for line in lines)


GROUPS: dict[str, Callable[[Bench], None]] = {
    "hook": hook,
    "mail": mail,
    "check": check,
    "send": send,
    "roster": roster,
    "search": search,
    "owed": owed,
    "foreign": foreign,
    "poll": poll,
    "busy": busy,
    "rebuild": rebuild,
    "writers": throughput,
}
