"""The simulated disk and locks answer as the real ones do, call by call; and what their comparison found."""

from __future__ import annotations

import errno
import os
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from tests.simulation import agreement, plans, runs, sessions, upkeep
from tests.simulation.disk import Disk
from tests.simulation.judge import Judge
from tests.simulation.kernel import Kernel
from tests.simulation.open_files import OpenFile
from tests.simulation.places import BOX
from tests.simulation.process import Process
from tests.simulation.profile import Profile
from tests.simulation.stage import Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALLS = 700


@pytest.mark.parametrize("seed", [1, 4])
def test_every_call_is_answered_as_by_the_real_system(seed: int, tmp_path: Path) -> None:
    """Three real processes make the calls of a drawn trace in turn, and are killed at times."""
    trace = agreement.drawn(seed, CALLS)
    expected = agreement.real(trace, tmp_path)
    numbers = {number for number, _ in expected}
    assert {0, errno.ENOENT, errno.EEXIST, errno.EBADF, errno.ENOTDIR, errno.EISDIR} <= numbers
    different = [one for one in zip(trace, agreement.simulated(trace), expected, strict=True) if one[1] != one[2]]
    assert different[:1] == []


def _forgetting(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: None


def _timeless(cut: Callable[..., Any]) -> Callable[..., Any]:
    def kept(disk: Disk, inode: Any, size: int, now: int) -> None:
        before = inode.mtime
        cut(disk, inode, size, now)
        inode.mtime = before

    return kept


@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [(OpenFile, "unlock", _forgetting), (Kernel, "_changed", _forgetting), (Disk, "cut", _timeless)],
)
def test_the_traces_tell_a_world_that_differs(
    place: Any, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that nobody frees, directories whose time is, files that are cut and look as old as before."""
    trace = agreement.drawn(3, 8 * CALLS)
    whole = agreement.simulated(trace)
    monkeypatch.setattr(place, name, broken(getattr(place, name)))
    assert agreement.simulated(trace) != whole


def test_what_is_written_again_takes_no_stamp_away() -> None:
    """A repeated send writes the log's bytes to their places once more: the note keeps the log's time."""
    world = World(1, Profile())
    world.quiet = True
    stage = Stage(world, Judge(world), 2, 3)
    draft = Draft(sender="agent-0", to=("agent-1",), content="once", id=uuid_of("1" * 32, "4"))
    registered = partial(sessions.register, stage)
    with world:
        for work in (
            lambda _: upkeep.found(stage, _),
            lambda process: registered(process, stage.judge.sessions["agent-0"]),
            lambda process: registered(process, stage.judge.sessions["agent-1"]),
            *[lambda _: stage.desk("agent-0").send(draft)] * 2,
        ):
            process = world.spawn("work", work)
            while world.living() and world.turn():
                pass
            assert process.error is None
        log, note = (
            world.kernel.look_up(f"{BOX}/{name}") for name in ("agent-mailbox.jsonl", ".cache/ends/agent-mailbox")
        )
        assert note.mtime == log.mtime


def test_where_locks_come_and_go_commands_fail_and_nothing_is_lost() -> None:
    """A file system whose lock service is away for a while: no promise is broken."""
    writers = plans.SCENES["writers"]
    drawn = [plans.drill(Random(f"plan {seed}"), Profile(lockless=True), writers) for seed in (3, 4)]
    results = [runs.run(seed, plan=plan, told=True) for seed, plan in enumerate(drawn)]
    assert [result.breaches for result in results] == [[], []]
    assert sum(result.acknowledged for result in results) > 0
    assert any("cannot lock" in line for result in results for line in result.story)


def _busy(process: Process) -> None:
    """Make calls that lock, write, sync, rename and wait, whatever befalls them."""
    do = process.world.doors
    for number in range(200):
        fd = -1
        try:
            fd = do["open"](f"/{number % 4}", os.O_RDWR | os.O_CREAT, 0o600)
            do["flock"](fd, 2 | 4)
            do["write"](fd, b"x" * int(process.chance.random() * 9000))
            do["fsync"](fd)
            do["rename"](f"/{number % 4}", f"/{(number + 1) % 4}")
            do["sleep"](process.chance.random())
        except OSError:
            continue
        finally:
            if fd >= 0:
                do["close"](fd)


def test_a_seed_is_the_same_world_on_every_machine_and_python() -> None:
    """The digest of all calls, choices and faults, of processes that know no product."""
    profile = Profile(ordered=False, kill=0.001, stop=0.01, fault=0.02, short=0.02, full=0.002, power=0.0005, slow=0.01)
    world = World(5, profile)
    for number in range(8):
        world.spawn(f"busy {number}", _busy)
    while world.living() and world.turn():
        pass
    assert {"fault", "short", "power", "kill"} <= world.befallen
    assert f"{world.calls} {world.digest:08x}" == "1461 c9ae2c78"
