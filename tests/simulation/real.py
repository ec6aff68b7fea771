"""The same commands on the real system: does it answer as the simulated one does?

Belongs here: running a world's commands one after the other, simulated or real, and what each answered. Real processes
side by side have their own order each time, so only commands that follow each other can be compared.
"""

from __future__ import annotations

import os
import re
import time
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.simulation import commands, hooks, judge_durable, judge_showings, plans, sending, strangers, upkeep
from tests.simulation import judge as judging
from tests.simulation import stage as staging
from tests.simulation.choices import Profile
from tests.simulation.judge import Judge
from tests.simulation.places import BOX
from tests.simulation.stage import Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.simulation.letters import Session

    Act = Callable[[str, Callable[[Any], object]], str]

WITHOUT = ("wait", "ask", "back_up", "damage")
"""Commands that wait, or that need a disk of their own."""
DRAWN = re.compile(rb'"seal":"[^"]*"|\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b|"tokens":\d+')
"""Times, seals and ids: of a clock, a key and a random number; the cost of a text that holds some."""
Answers = list[tuple[str, tuple[tuple[str, ...], ...], str]]


def jobs(seed: int) -> list[plans.Job]:
    """The commands of a seed that can be compared."""
    return [job for job in plans.jobs_of(seed, 60) if job[1] not in WITHOUT]


def simulated(seed: int) -> Answers:
    """What they answer on the simulated machine, where nothing goes wrong."""
    world = World(seed, Profile())
    world.quiet = True
    judge = Judge(world)
    stage = Stage(world, judge, 6, 3)
    answers: Answers = []
    with world:

        def act(name: str, work: Callable[[Any], object]) -> str:
            process = world.spawn(name, work)
            while world.living() and world.turn():
                pass
            world.processes.clear()
            return type(process.error).__name__

        act("found", lambda process: upkeep.found(stage, process))
        _each(seed, stage, judge, answers, act)
        answers.append(_left({path: bytes(inode.data) for path, inode in world.disk.files(solid=False)}, BOX))
    assert judge.breaches == []
    return answers


def real(seed: int, scratch: Path, patch: pytest.MonkeyPatch) -> Answers:
    """What they answer on this machine, in a directory of their own."""
    box = str(scratch / "m")
    patch.setenv("AGENT_MAILBOX_TEST_STATE", str(scratch / "state"))
    for module, name, value in (
        *((module, "BOX", box) for module in (staging, hooks, sending, upkeep, judge_durable, judge_showings, judging)),
        (judge_showings, "QUIET", f"{box}/.cache/quiet/"),
        (hooks, "STATE", str(scratch / "state")),
        (strangers, "LIVE", (f"{box}/agent-mailbox.jsonl",)),
    ):
        patch.setattr(module, name, value)
    world: Any = SimpleNamespace(seed=seed, calls=1, now=time.time_ns(), befell=lambda *_: True)
    world.kernel, world.running = SimpleNamespace(look_up=_looked_up), None
    world.tell = lambda _: None
    world.hosts = SimpleNamespace(started=0)
    world.living, world.disk = list, SimpleNamespace(spoiled=())
    judge = Unsynced(world)
    stage = Stage(world, judge, 6, 3)
    for session in judge.sessions.values():
        session.seen = world.now  # the simulated clock begins a moment ago, so nobody was away for a day
    answers: Answers = []

    def act(name: str, work: Callable[[Any], object]) -> str:
        _next_tick(scratch / "tick")
        world.calls += 1
        process = SimpleNamespace(name=name, chance=Random(f"{seed} {name}"), files={}, hurt=False, calls=0)
        process.dead = process.ended = process.is_late = False
        try:
            work(process)
        except Exception as error:
            return type(error).__name__
        finally:
            process.ended = True
        return "NoneType"

    act("found", lambda process: upkeep.found(stage, process))
    _each(seed, stage, judge, answers, act)
    answers.append(_left({str(path): path.read_bytes() for path in Path(box).rglob("*") if path.is_file()}, box))
    assert judge.breaches == []
    return answers


def _left(files: dict[str, bytes], box: str) -> tuple[str, tuple[tuple[str, ...], ...], str]:
    """What all commands left: the lines of the logs, those of the archive together, and the names of other files."""
    logs: dict[str, list[str]] = {"archive": []}
    names = []
    for path, data in sorted(files.items()):
        name = path.removeprefix(f"{box}/")
        if path.startswith(f"{box}/") and not name.endswith(".jsonl"):
            names.append(name)
        elif path.startswith(f"{box}/") and not data.startswith(b'{"file"'):  # digests of those times and seals
            lines = [line for line in DRAWN.sub(b"", data).decode(errors="backslashreplace").split("\n") if line]
            logs.setdefault("archive" if "archive" in name else name, []).extend(lines)
    logs["archive"].sort()  # its files are named by months
    return "left", (tuple(names), *((log, *lines) for log, lines in sorted(logs.items()))), ""


def _looked_up(path: str) -> SimpleNamespace:
    return SimpleNamespace(mtime=os.stat(path).st_mtime_ns, data=Path(path).read_bytes())


def _next_tick(file: Path) -> None:
    """Wait until the file system tells another time, as the simulated one does at each call."""
    file.touch()
    before = file.stat().st_mtime_ns
    while file.stat().st_mtime_ns == before:
        file.write_bytes(b"x")


class Unsynced(Judge):
    """A judge that cannot look at the platter."""

    def durable(self) -> None:
        """Believe it."""


def _each(seed: int, stage: Stage, judge: Judge, answers: Answers, act: Act) -> None:
    for place, name, number in jobs(seed):
        me = judge.sessions[f"agent-{number}"]
        before = len(judge.answers)
        error = act(f"{place} {name} {me.id}", partial(_do, name, stage, me))
        answers.append((f"{place} {name} {me.id}", tuple(judge.answers[before:]), error))


def _do(name: str, stage: Stage, me: Session, process: Any) -> None:
    commands.named(name)(stage, process, me)
