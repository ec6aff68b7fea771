"""The same commands on the real system: does it answer as the simulated one does?

Belongs here: running a world's commands one after the other, simulated or real, and what each answered. Real processes
side by side have their own order each time, so only commands that follow each other can be compared.
"""

from __future__ import annotations

import os
import time
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.simulation import commands, runs
from tests.simulation.commands import Stage
from tests.simulation.judge import Judge
from tests.simulation.world import Profile, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.simulation.judge import Session

    Act = Callable[[str, Callable[[Any], object]], str]

WITHOUT = ("wait", "ask", "back_up", "damage")
"""Commands that wait, or that need a disk of their own."""
Answers = list[tuple[str, tuple[tuple[str, ...], ...], str]]


def jobs(seed: int) -> list[runs.Job]:
    """The commands of a seed that can be compared."""
    return [job for job in runs.jobs_of(seed, 60) if job[1] not in WITHOUT]


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

        act("found", lambda process: commands.found(stage, process))
        _each(seed, stage, judge, answers, act)
    assert judge.breaches == []
    return answers


def real(seed: int, scratch: Path, patch: pytest.MonkeyPatch) -> Answers:
    """What they answer on this machine, in a directory of their own."""
    from tests.simulation import judge as judging

    box = str(scratch / "m")
    patch.setenv("AGENT_MAILBOX_TEST_STATE", str(scratch / "state"))
    for module, name, value in (
        (commands, "BOX", box),
        (judging, "BOX", box),
        (judging, "QUIET", f"{box}/.cache/quiet/"),
        (commands, "LIVE", (f"{box}/agent-mailbox.jsonl",)),
    ):
        patch.setattr(module, name, value)
    world: Any = SimpleNamespace(seed=seed, calls=1, now=time.time_ns(), befell=lambda *_: True)
    world.kernel = SimpleNamespace(look_up=os.stat)
    judge = Unsynced(world)
    stage = Stage(world, judge, 6, 3)
    answers: Answers = []

    def act(name: str, work: Callable[[Any], object]) -> str:
        process = SimpleNamespace(name=name, chance=Random(f"{seed} {name}"), dead=False, ended=False, hurt=False)
        try:
            work(process)
        except Exception as error:
            return type(error).__name__
        finally:
            process.ended = True
        return "NoneType"

    act("found", lambda process: commands.found(stage, process))
    _each(seed, stage, judge, answers, act)
    assert judge.breaches == []
    return answers


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
    getattr(commands, name)(stage, process, me)
