"""What the simulation found in the product, each told in the few commands that show it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core import proofs
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.files.board import WATCHED, Board
from agent_mailbox.store.files.edits import RECENT, Edit, Edits
from agent_mailbox.store.files.small_files import read_file, replace_file
from agent_mailbox.store.log import custody, custody_setup
from agent_mailbox.store.log.logs import Logs
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import steward
from tests.simulation import durability, outcomes, runs, sweeps, upkeep
from tests.simulation.choices import Profile
from tests.simulation.judge import Judge
from tests.simulation.places import BOX, LIVE, STATE
from tests.simulation.stage import Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable


def alone(world: World, *works: Callable[[], object]) -> None:
    """Run each in a process of its own, one after the other; nothing goes wrong."""
    for work in works:
        process = world.spawn("work", partial(_do, work))
        while world.living() and world.turn():
            pass
        assert process.error is None, process.error
        world.processes.clear()


def _do(work: Callable[[], object], _: Any) -> None:
    work()


def machine(seed: int = 1, *, ordered: bool = True) -> tuple[World, Stage]:
    """A quiet machine with a mailbox to come. ``ordered``: any sync takes all earlier changes of names along."""
    world = World(seed, Profile(ordered=ordered))
    world.quiet = True
    return world, Stage(world, Judge(world), 2, 3)


def found_mailbox(stage: Stage) -> None:
    """The mailbox is made."""
    upkeep.found(stage, None)  # type: ignore[arg-type] # it looks at no process


def lose_record() -> None:
    """The record outside the project is gone."""
    found = custody.find(BOX, paths.state_directory({}))
    assert found is not None
    custody_setup.remove(system.dirname(found.path("place")))


def append_unsynced() -> None:
    """Another program appends some lines, and syncs nothing."""
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    system.write(fd, b'{"id":"x"}\n' * 300)
    system.close(fd)


def test_a_new_record_accuses_nobody_of_lines_that_a_power_failure_took() -> None:
    """Another program appends without a sync; the record outside the project is made then, and the power fails."""
    world, stage = machine()

    with world:
        alone(world, partial(found_mailbox, stage), lose_record, append_unsynced)
        alone(world, lambda: custody_setup.ensure(BOX, {}))
        world.power_off()
        alone(world, lambda: steward.run_upkeep(stage.desk(proof=proofs.STEWARD), 3))
        assert not any(path.endswith("/broken") for path, _ in world.disk.files(solid=False))


def test_a_write_beside_ours_is_told_though_it_came_after_our_time() -> None:
    """Another session notes its write between our look at the clock and our look at the notes; an old note goes.

    The steward takes the notes of who writes no more, and leaves no directory of theirs."""
    world, stage = machine()
    now = 1_000_000_000

    def write() -> None:
        edits = Edits(stage.desk().logs)
        edits.settle(holds=False)
        edits.note("/x", "agent-1", now + 2)
        assert edits.others("/x", "agent-0", now) == [Edit("agent-1", now + 2)]
        assert edits.others("/x", "agent-0", now + 2 + RECENT) == []
        assert edits.others("/x", "agent-0", now) == []
        edits.note("/x", "agent-1", now)
        edits.note("/x", "agent-2", now + 1)
        edits.sweep(now + RECENT)
        assert [*edits._sessions()] == ["agent-2"]

    with world:
        alone(world, partial(found_mailbox, stage), write)


@pytest.mark.parametrize("seed", range(4))
def test_a_record_that_was_made_late_survives_a_power_failure(seed: int) -> None:
    """``init`` could not make the record outside the project; the first command that opens the mailbox makes it."""
    world, stage = machine(seed, ordered=False)

    def forget() -> None:
        lose_record()
        system.rmdir(boxes())
        system.sync_directory(system.dirname(boxes()))

    with world:
        alone(world, partial(found_mailbox, stage), forget)
        assert_durable(world, lambda: custody_setup.ensure(BOX, {}))


@pytest.mark.parametrize("seed", range(4))
def test_a_mailbox_that_is_made_again_stays_in_its_space_after_a_power_failure(seed: int) -> None:
    """The new record has what the earlier one kept of the space, and that one is removed."""
    world, stage = machine(seed, ordered=False)
    kept: list[bytes | None] = []

    def place() -> str:
        found = custody.find(BOX, paths.state_directory({}))
        assert found is not None
        return found.path(custody_setup.SPACE, "space")

    def join() -> None:
        system.make_directory(system.dirname(place()))
        replace_file(place(), b"its space")
        system.sync_way(system.dirname(place()))

    with world:
        alone(world, partial(found_mailbox, stage), join, lambda: custody_setup.begin_again(BOX, {}))
        world.power_off()
        alone(world, lambda: kept.append(read_file(place())))
    assert kept == [b"its space"]


@pytest.mark.parametrize("seed", range(4))
def test_a_record_whose_maker_was_killed_survives_a_power_failure(seed: int) -> None:
    """``init`` was killed behind the change of names, before its sync; the person repeats it."""
    world, stage = machine(seed, ordered=False)

    def make_again() -> None:
        found = custody.find(BOX, paths.state_directory({}))
        assert found is not None
        system.rename(found.directory, f"{boxes()}/aside")
        system.sync_directory(boxes())
        system.rename(f"{boxes()}/aside", found.directory)

    with world:
        alone(world, partial(found_mailbox, stage), make_again)
        assert_durable(world, lambda: creation.create(BOX, {}))


def boxes() -> str:
    """The place of all records."""
    return system.join(paths.state_directory(system.environment()), custody.BOXES)


def assert_durable(world: World, make: Callable[[], object]) -> None:
    """The record is there, and the same, when the power fails behind that."""
    ids: list[object] = []

    def look() -> None:
        found = custody.find(BOX, paths.state_directory({}))
        ids.append(found and found.id)

    alone(world, make, look)
    world.power_off()
    alone(world, look)
    assert ids[0] is not None
    assert ids[0] == ids[1]


@pytest.mark.parametrize("seed", range(4))
def test_the_note_of_a_watch_outlives_a_power_failure(seed: int) -> None:
    """Without it the guard would let no hook through at the end of a turn, and who watches would hear much later."""
    world, stage = machine(seed, ordered=False)
    found: list[bool] = []

    def notes() -> Board:
        return Board(Logs(BOX, state=STATE).stamp_files, WATCHED)

    with world:
        alone(world, partial(found_mailbox, stage), lambda: notes().add_told("bo", "ann"))
        world.power_off()
        alone(world, lambda: found.append(notes().has("bo")))
    assert found == [True]


@pytest.mark.parametrize("seed", range(4))
def test_a_file_stays_though_the_one_who_made_its_directory_was_killed(seed: int) -> None:
    """It was killed before its sync; another process keeps a file there, and the power fails."""
    world, stage = machine(seed, ordered=False)
    kept: list[str] = []

    def keep() -> None:
        kept.append(attachment_files.put(BOX, "a.txt", [b"a file"]).stored)

    with world:
        alone(world, partial(found_mailbox, stage))
        alone(world, lambda: system.mkdir(attachment_files.place(BOX)), keep)
        world.power_off()
        alone(world, lambda: kept.append(str(attachment_files.content(BOX, kept[0]))))
    assert kept[1] == str(b"a file")


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
