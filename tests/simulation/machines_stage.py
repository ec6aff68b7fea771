"""A world of several machines with its judge, as commands see it.

Belongs here: what every such command may use: where a machine's mailbox is, its space, and how its processes open them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.space.space import Space

if TYPE_CHECKING:
    from agent_mailbox.core.records import Proof
    from tests.simulation.machines import Machine, Machines
    from tests.simulation.machines_judge import Judge, Session


class Stage:
    """A world with its judge, as commands see it."""

    def __init__(self, world: Machines, judge: Judge, max_live: int, trusted: str = "") -> None:
        self.world = world
        self.judge = judge
        self.max_live = max_live
        self.trusted = trusted
        self.count = self.marked = 0
        self.keys: dict[str, str] = {}
        """The fingerprints of the machines' keys, as their persons see them."""

    def desk(self, machine: Machine, proof: Proof | None, wait: float | None = None) -> Mailbox:
        """The mailbox of a machine as one of its processes opens it."""
        return Mailbox(box_of(machine), prove=lambda _: proof, wait=wait)


def box_of(machine: Machine) -> str:
    """The path of a machine's mailbox."""
    return f"/{machine.name}/m"


def space_of(machine: Machine) -> Space:
    """The space, as a machine is in it."""
    return Space("nats://engine", "team", machine.name)


def desk_of(stage: Stage, me: Session, wait: float | None = None) -> Mailbox:
    """The mailbox of its machine as a session opens it."""
    return stage.desk(me.machine, proofs.of_session(me.id), wait)
