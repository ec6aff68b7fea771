"""What sessions hold and were told of leases, edits and watches, as far as the judge knows.

Belongs here: the model that the commands of ``coordination`` and ``watches`` write and are held to. Must not know any
command.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.stage import Stage
    from tests.simulation.world import World


class Lease:
    """A lease that its holder was told of."""

    def __init__(self, world: World, holder: Session, files: tuple[str, ...], lease_id: str, ends: int) -> None:
        self.world, self.holder, self.files, self.id, self.ends = world, holder, files, lease_id, ends
        self.deaths = holder.deaths
        self.failures = world.failures_of_power
        self.over = False

    def holds(self) -> bool:
        """Does it hold at this moment, for sure?"""
        return (
            not self.over
            and self.holder.deaths == self.deaths  # it ends with its session
            and not self.holder.is_gone
            and self.world.wall() // 1_000_000 < self.ends
            and not self.world.befell("jump")
        )


class AgentWatch:
    """A watch that its watcher was told of.

    ``begun``: a turn of the agent ended since, which may have ended it. ``may_be_over``: its watcher began the same
    again, and may have failed behind the end of this one."""

    def __init__(self, world: World, watcher: Session, agent: Session, until: tuple[str, ...], made: object) -> None:
        self.watcher, self.agent, self.until, self.acked = watcher, agent, until, world.calls
        self.id: str = made.id  # type: ignore[attr-defined]
        self.ends: int = made.ends  # type: ignore[attr-defined]
        self.over = self.begun = self.may_be_over = False


class Task:
    """A task that its adder was told of."""

    def __init__(self) -> None:
        self.holders: dict[str, int] = {}
        """The sessions that were told that they hold it, with their deaths by then."""
        self.is_done = self.may_be_done = False


class Told:
    """What sessions hold and were told, as far as the judge knows."""

    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.watches: list[AgentWatch] = []
        self.about: Counter[tuple[str, str]] = Counter()
        """Session, and a file or its real path: how often it was told, or perhaps, of another who has that."""
        self.edits: dict[str, dict[str, int]] = {}
        """By the real path: when each session wrote the file, and was done with that."""
        self.is_blind = False
        """Were the notes of leases and edits lost, and no file tool asked since? Then a command is not looked at."""
        self.ended: dict[str, int] = {}
        """The call before an agent's last retirement, of which somebody was told."""
        self.looked: dict[str, dict[str, tuple[int, int]]] = {}
        """By the real path: when each session that asked Python was done with that, and the losses by then."""
        self.pages = 0
        """How many files there were to write, one after the other."""
        self.leasing: dict[str, float] = {}
        """The last call at which each session began or ended to lease; infinite while it does."""
        self.tasks: dict[str, Task] = {}
        self.added = 0
        """How many tasks somebody began to add."""
        self.losses = 0
        """How often the notes were lost, or began to be."""

        self.turned: dict[str, int] = {}
        """The call at which the last turn's end of each session was over."""

    def forget(self) -> None:
        """The notes of leases and edits are lost."""
        self.is_blind, self.losses = True, self.losses + 1
        self.edits.clear()


def ends_turn(stage: Stage, me: Session) -> None:
    """The hook of a turn's end ended somehow: it may have told who watches the session, which ends the watch."""
    stage.told.turned[me.id] = stage.world.calls
    for one in stage.told.watches:
        if one.agent is me:
            one.begun = True


def is_there(me: Session) -> bool:
    """Is the session registered and alive, for sure?"""
    return me.registered is not None and not me.may_be_dead and not me.is_gone
