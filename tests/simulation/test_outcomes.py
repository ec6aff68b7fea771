"""What a power failure would leave is tried on copies of the disk."""

from __future__ import annotations

import pytest

from agent_mailbox.store import custody, custody_setup, system
from tests.simulation import commands, durability, outcomes, runs, sweeps
from tests.simulation.judge import BOX, LIVE
from tests.simulation.test_found import alone, machine


@pytest.mark.parametrize("syncs", [True, False])
def test_an_outcome_is_found_and_leaves_no_trace(syncs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that notes more of a log than the disk has breaks a promise; the world has the same disk as before."""
    world, stage = machine(ordered=False)

    def lose_record() -> None:
        found = custody.find(BOX, {})
        assert found is not None
        custody_setup.remove(system.dirname(found.path("place")))

    def append() -> None:
        fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
        system.write(fd, b'{"id":"x"}\n' * 300)
        system.close(fd)

    if not syncs:
        monkeypatch.setattr(custody_setup, "_sync", lambda _: None)
    with world:
        alone(world, lambda: commands.found(stage, None), lose_record, append)  # type: ignore[arg-type]
        alone(world, lambda: custody_setup.ensure(BOX, {}))
        disk, now = world.disk, world.now
        before = [(path, bytes(inode.data), bytes(inode.solid)) for path, inode in disk.files(solid=False)]
        outcomes.ask(stage, "a record is made")
        assert [breach.split(":")[0] for breach in stage.judge.breaches] == (
            [] if syncs else ["if the power fails when a record is made, the steward says"]
        )
        assert (world.disk, world.kernel.disk, world.now, world.processes) == (disk, disk, now, [])
        after = [(path, bytes(inode.data), bytes(inode.solid)) for path, inode in disk.files(solid=False)]
        assert before == after


@pytest.mark.parametrize("name", durability.SWEEPS)
def test_the_promises_hold_in_each_sweep_of_durability(name: str) -> None:
    """One world of each; its attacks are known ones."""
    assert {*durability.SWEEPS[name].attacks} <= sweeps.ATTACKS.keys()
    result = runs.run(5, kind=f"sweep {name}")
    assert result.breaches == []
