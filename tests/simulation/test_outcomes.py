"""What a power failure would leave is tried on copies of the disk."""

from __future__ import annotations

import pytest

from agent_mailbox.store.log import custody_setup
from tests.simulation import durability, outcomes, runs, sweeps, upkeep
from tests.simulation.places import BOX
from tests.simulation.test_found import alone, append_unsynced, lose_record, machine


@pytest.mark.parametrize("syncs", [True, False])
def test_an_outcome_is_found_and_leaves_no_trace(syncs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that notes more of a log than the disk has breaks a promise; the world has the same disk as before."""
    world, stage = machine(ordered=False)

    if not syncs:
        monkeypatch.setattr(custody_setup, "_sync", lambda _: None)
    with world:
        alone(world, lambda: upkeep.found(stage, None), lose_record, append_unsynced)  # type: ignore[arg-type]
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
