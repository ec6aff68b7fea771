"""Several simulated machines are one mailbox, whatever befalls their processes, disks, clocks and links."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.space import space as spaces
from tests.engine.memory_order import MemorySpace
from tests.helpers import ROOT
from tests.night import nightly
from tests.simulation import machines_days, machines_joining, machines_run, machines_stage
from tests.simulation.choices import Profile
from tests.simulation.machines import Machines
from tests.simulation.machines_judge import Judge
from tests.simulation.machines_plans import Network

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.machines import Machine
    from tests.simulation.process import Process


@pytest.mark.parametrize("first", [1, pytest.param(6, marks=nightly)])
def test_the_promises_hold_in_worlds_of_fixed_seeds(first: int) -> None:
    """Nothing acknowledged is lost, nothing is shown twice, role mail has one holder, and all copies are equal."""
    for seed in range(first, first + 5):
        assert (seed, machines_run.run(seed).breaches) == (seed, [])


def test_the_promises_hold_in_a_world_that_nobody_saw_yet() -> None:
    """A fresh seed each time; a failure names it."""
    seed = secrets.randbelow(1 << 40)
    print(f"scripts/simulate --machines --seed {seed}")
    assert (seed, machines_run.run(seed).breaches) == (seed, [])


def test_a_line_that_other_machines_ignore_is_the_same_line_there() -> None:
    """A program writes again, on one machine, what a session of another one said: the copies are equal."""
    assert machines_run.run(252, jobs=[(33, "twin", 0)]).breaches == []


def traced(seed: int, hash_seed: str) -> str:
    """The whole trace of a world, from a process of its own."""
    words = [sys.executable, "-m", "tests.simulation", "--machines", "--seed", str(seed), "--trace"]
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def test_the_same_seed_is_the_same_trace_byte_for_byte() -> None:
    """Whatever order Python's sets have."""
    assert traced(5, "1") == traced(5, "2")


def test_an_engine_that_lets_everybody_be_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without expectations two machines claim the same role mail."""
    append = MemorySpace.append

    def careless(
        space: MemorySpace, machine: str, log: str, lines: Sequence[bytes], ids: Sequence[str], _: int | None
    ) -> int:
        return append(space, machine, log, lines, ids, None)

    monkeypatch.setattr(MemorySpace, "append", careless)
    results = (machines_run.run(seed, kind="role mail") for seed in range(13, 40))  # the first is enough
    assert any("is shown to" in breach for result in results for breach in result.breaches)


class Calm:
    """A world in which nothing happens by chance, with its mailboxes."""

    def __init__(self, seed: int) -> None:
        self.world = Machines(seed, Profile(ordered=False, switch=0.0), 2, Network())
        self.judge = Judge(self.world)
        self.stage = machines_stage.Stage(self.world, self.judge, 0)

    def alone(self, machine: Machine, work: Callable[..., object], *words: object) -> Process:
        """Run a command on a machine to its end, or its death."""
        process = self.world.begin(machine, "1 alone", lambda process: work(self.stage, process, machine, *words))
        while self.world.living() and self.world.turn():
            pass
        self.world.processes.clear()
        assert process.error is None
        return process

    def outage(self, machine: Machine) -> None:
        """Have a machine lose its power."""
        self.world.at = machine
        self.world.power_off()


@pytest.mark.parametrize("seed", range(6))
def test_a_mailbox_that_joined_is_in_its_space_after_a_power_failure(seed: int) -> None:
    """Whichever changes of names the failure takes; else its mail would go nowhere, and nobody would be told."""
    calm, told = Calm(seed), list[object]()

    def look(stage: machines_stage.Stage, _: Process, machine: Machine) -> None:
        told.append(spaces.space_of(stage.desk(machine, proofs.TERMINAL).logs))

    north = calm.world.machines[0]
    with calm.world, machines_run.networked(calm.world):
        calm.alone(north, machines_joining.found)
        calm.outage(north)
        calm.alone(north, look)
    assert told == [machines_stage.space_of(north)]


def test_a_line_that_a_dead_process_left_is_durable_before_it_counts() -> None:
    """A process takes in mail and dies of a sync, which dropped it. The next one finds the mail, then the power fails:
    the machine has it, or takes it in again."""

    def send(stage: machines_stage.Stage, _: Process, machine: Machine) -> None:
        stage.desk(machine, None).send(Draft(sender="ann", to=("all",), content="hello"))

    def take_in(stage: machines_stage.Stage, _: Process, machine: Machine) -> None:
        stage.desk(machine, None).catch_up()

    for seed in range(30):
        calm = Calm(seed)
        north, south = calm.world.machines
        with calm.world, machines_run.networked(calm.world):
            for machine in (north, south):
                calm.alone(machine, machines_joining.found)
            calm.alone(north, send)
            calm.world.directed["1"] = ["faint fdatasync*1"]
            calm.alone(south, take_in)
            calm.world.directed.clear()
            calm.alone(south, take_in)
            calm.outage(south)
            calm.alone(south, machines_days.settle)
