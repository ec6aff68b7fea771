"""Machines join a space, and their persons say whom they trust.

Belongs here: these commands, and the mailbox of a machine that was alone before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.space import joining_space
from agent_mailbox.space import space as spaces
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.space.trust.space_trust import RightsChange
from agent_mailbox.store.files import system
from agent_mailbox.store.user_state import creation
from tests.simulation.machines_mail import look, post_as
from tests.simulation.machines_sessions import register
from tests.simulation.machines_stage import box_of, space_of
from tests.simulation.machines_upkeep import run_steward

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


def found(stage: Stage, process: Process, machine: Machine) -> None:
    """Make a machine's mailbox, and join."""
    made(machine)
    joining_space.join_space(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    machine.joined = True


def made(machine: Machine) -> None:
    """Make a machine's mailbox."""
    system.make_directory(f"/{machine.name}")
    system.make_directory(f"/{machine.name}/home")
    creation.create(box_of(machine), system.environment())


def key_of(stage: Stage, process: Process, machine: Machine) -> None:
    """A machine's person looks at the fingerprint of its key."""
    copy = spaces.open_replica(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    assert copy.judge is not None
    assert copy.judge.key is not None
    stage.keys[machine.name] = machine_keys.key_fingerprint(copy.judge.key.public)


def confide(stage: Stage, process: Process, machine: Machine) -> None:
    """The person says that the other machines may speak for their sessions, and, where that is so, as the person."""
    joining_space.join_space(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine), words_on(stage, machine))


def words_on(stage: Stage, machine: Machine) -> list[RightsChange]:
    """The word of a machine's person on the others."""
    others = {name: key for name, key in stage.keys.items() if name != machine.name}
    stage.judge.trusting.update((machine.name, name) for name in others)
    return [RightsChange(name, key, stage.trusted == "user", ("all",)) for name, key in others.items()]


def trust(stage: Stage, process: Process, me: Session) -> None:
    """The person of a machine confides in the others late."""
    stage.judge.is_late = True
    confide(stage, process, me.machine)


def join(stage: Stage, process: Process, me: Session) -> None:
    """A machine joins, perhaps once more, and its session registers."""
    found(stage, process, me.machine)
    if not me.registered:
        register(stage, process, me)


def alone(stage: Stage, process: Process, me: Session) -> None:
    """A mailbox of one machine has mail, and archives it."""
    made(me.machine)
    register(stage, process, me)
    for _ in range(3):
        post_as(stage, process, "user", me.id, me)
    look(stage, process, me)
    run_steward(stage, process, me)


def newcomer(stage: Stage, process: Process, me: Session) -> None:
    """One more machine joins."""
    machine = next((machine for machine in stage.world.machines if not machine.joined), None)
    if machine is not None:
        stage.world.place[process] = machine
        made(machine)
        changes = words_on(stage, machine) if stage.trusted else []
        joining_space.join_space(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine), changes)
        machine.joined = True
