"""Several simulated machines are one mailbox, whatever befalls their processes, disks, clocks and links."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import proofs
from agent_mailbox.mailbox import space as spaces
from tests.engine.memory_order import MemorySpace
from tests.helpers import ROOT
from tests.simulation import machines_commands, machines_run
from tests.simulation.machines import Machines
from tests.simulation.machines_judge import Judge
from tests.simulation.world import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.machines import Machine
    from tests.simulation.world import Process


@pytest.mark.parametrize("first", [1, 6])
def test_the_promises_hold_in_worlds_of_fixed_seeds(first: int) -> None:
    """Nothing acknowledged is lost, nothing is shown twice, role mail has one holder, and all copies are equal."""
    for seed in range(first, first + 5):
        assert (seed, machines_run.run(seed).breaches) == (seed, [])


def test_the_promises_hold_in_a_world_that_nobody_saw_yet() -> None:
    """A fresh seed each time; a failure names it."""
    seed = secrets.randbelow(1 << 40)
    print(f"scripts/simulate --machines --seed {seed}")
    assert (seed, machines_run.run(seed).breaches) == (seed, [])


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
    assert any("is shown to" in breach for seed in range(1, 9) for breach in machines_run.run(seed).breaches)


@pytest.mark.parametrize("seed", range(6))
def test_a_mailbox_that_joined_is_in_its_space_after_a_power_failure(seed: int) -> None:
    """Whichever changes of names the failure takes; else its mail would go nowhere, and nobody would be told."""
    world = Machines(seed, Profile(ordered=False), 2)
    stage = machines_commands.Stage(world, Judge(world), 0)
    told: list[object] = []

    def alone(machine: Machine, work: object) -> None:
        process = world.begin(machine, "0 alone", lambda process: work(stage, process, machine))  # type: ignore[operator]
        while world.living() and world.turn():
            pass
        assert process.error is None

    def look(stage: machines_commands.Stage, _: Process, machine: Machine) -> None:
        told.append(spaces.of(stage.desk(machine, proofs.TERMINAL).logs))

    with world, machines_run.networked(world):
        world.quiet = True
        alone(world.machines[0], machines_commands.found)
        world.at = world.machines[0]
        world.power_off()
        alone(world.machines[0], look)
    assert told == [machines_commands.space_of(world.machines[0])]
