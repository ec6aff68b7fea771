"""What a power failure would leave at this moment: several outcomes of it are tried, and dropped.

Belongs here: trying them. Behind a change that is in doubt (``World.doubted``) the disk is copied, and loses its power.
What was acknowledged must be there, and the steward must find the mailbox as it was left. Then the world goes on as if
nothing had been. One that really loses its power comes to a single outcome, and only where everybody else is, too.
"""

from __future__ import annotations

from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.errors import MailboxError
from agent_mailbox.store.archive import rotation
from tests.simulation.disk import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.disk import Disk
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage
    from tests.simulation.world import World

    Unsure = tuple[tuple[tuple[str, str, int], ...], tuple[tuple[str, int, int], ...]]

DERIVED = (".cache", "agent-heartbeats")
TRIED = 3
"""Outcomes at a moment."""


def ask(stage: Stage, when: str) -> None:
    """Try some outcomes of a power failure, and note a promise that one of them breaks."""
    world, judge = stage.world, stage.judge
    if judge.founded is None or judge.breaches:
        return
    unsure = _unsure(world.disk)
    if unsure == world.asked or not any(unsure):
        return
    world.asked = unsure
    for _ in range(TRIED):
        world.outcomes += 1
        with _elsewhere(world):
            world.disk.crash(Random(f"outcome {world.seed} {world.outcomes}"))
            judge.survives(f"if the power fails when {when}")
            if not judge.breaches:
                _look(stage, when)
        if judge.breaches:
            return


def _unsure(disk: Disk) -> Unsure:
    """The names and the contents that a power failure may take, but for what is derived."""
    there: dict[int, str] = {}
    contents: list[tuple[str, int, int]] = []
    todo = [("", disk.root)]
    while todo:
        path, directory = todo.pop()
        there[id(directory)] = path
        for name, inode in directory.entries.items():
            if inode.is_directory and name not in DERIVED:
                todo.append((f"{path}/{name}", inode))
            elif inode.dirty:
                contents.append((f"{path}/{name}", len(inode.data), len(inode.solid)))
    names = [
        (there[id(where)], name, 0 if target is None else target.number)
        for entry in disk.journal
        for where, name, target in entry
        if id(where) in there
    ]
    return tuple(names), tuple(sorted(contents))


@contextmanager
def _elsewhere(world: World) -> Iterator[None]:
    """Give the world another disk, without processes, for a block; its judge does not look."""
    names = ("disk", "processes", "now", "started", "quiet", "running", "_last", "on_appeared", "on_renamed")
    before = {name: getattr(world, name) for name in names}
    hosts, started = dict(world.hosts.there), world.hosts.started
    try:
        world.disk = world.kernel.disk = world.disk.copy()
        world.processes, world.quiet = [], True
        world.now += 60 * SECOND
        world.started = world.now
        world.hosts.boot(world.wall())
        world.on_appeared, world.on_renamed = lambda _: None, lambda: None
        yield
    finally:
        world.kill_all()
        for name, value in before.items():
            setattr(world, name, value)
        world.kernel.disk = world.disk
        world.hosts.there, world.hosts.boots, world.hosts.started = hosts, world.hosts.boots - 1, started


def _look(stage: Stage, when: str) -> None:
    """The steward comes, and looks whether it may move anything."""

    def work(_: Process) -> None:
        rotation.refuse_broken(stage.desk(proof=proofs.STEWARD).logs)

    process = stage.world.spawn(f"outcome-{stage.world.outcomes} look", work)
    while stage.world.living() and stage.world.turn():
        pass
    error = process.error
    if isinstance(error, MailboxError | OSError):
        stage.judge.breach(f"if the power fails when {when}, the steward says: {error}")
    elif error is not None:
        raise error
