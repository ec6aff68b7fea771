"""Machines join a space, their persons say whom they trust, and their sessions come, change and end.

Belongs here: these commands, and the mailbox of a machine that was alone before. All others must learn of a changed
roster, and of what sessions may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.control.orders import Orders
from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.space import joining_space
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import space_troubles
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.space.trust.machine_keys import RightsChange
from agent_mailbox.store.files import system
from agent_mailbox.store.user_state import creation
from tests.simulation.machines_days import run_steward
from tests.simulation.machines_mail import look, post_as
from tests.simulation.machines_stage import box_of, desk_of, space_of

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


def register(stage: Stage, process: Process, me: Session) -> None:
    """Register a session."""
    request = Registration(session_id=me.id, roles=me.roles, name=f"n-{me.id}")
    desk_of(stage, me).register(request, me.id)
    me.registered = True


def rename(stage: Stage, process: Process, me: Session) -> None:
    """A session takes another name."""
    stage.count += 1
    desk_of(stage, me).register(Registration(session_id=me.id, roles=me.roles, name=f"n-{me.id}-{stage.count}"), me.id)


def twin(stage: Stage, process: Process, me: Session) -> None:
    """A program appends the last line of the roster once more."""
    stage.judge.is_scattered = stage.judge.is_late = True
    log = stage.desk(me.machine, None).logs.roster
    lines = [line for _, line in log.lines()]
    fd = system.open(log.path, system.O_WRONLY | system.O_APPEND)
    try:
        system.write(fd, lines[-1] + b"\n")
    finally:
        system.close(fd)


def order(stage: Stage, process: Process, me: Session) -> None:
    """A session writes to the others what may order."""
    others = tuple(other.id for other in stage.judge.sessions if other is not me and other.registered)
    if others:
        stage.count += 1
        desk_of(stage, me).send(Draft(sender=me.id, to=others, content=f"order {stage.count}", type="control"))


def forbid(stage: Stage, process: Process, me: Session) -> None:
    """The person of a machine forbids a session of another one something."""
    others = [other for other in stage.judge.sessions if other.machine is not me.machine and other.registered]
    if others:
        stage.count += 1
        other, rule = others[int(process.chance.random() * len(others))], f"Bash(number{stage.count})"
        desk = stage.desk(me.machine, proofs.TERMINAL)
        Orders(desk).set_policy(USER, [other.id], deny=(rule,))
        stage.judge.forbidden[other.id] = rule


def mortals(stage: Stage, process: Process, me: Session) -> None:
    """Sessions come, take names, and end for good."""
    for _ in range(1 + int(process.chance.random() * 2)):
        stage.count += 1
        who = f"mortal-{stage.count}"
        desk, is_renamed = stage.desk(me.machine, proofs.of_session(who)), process.chance.random() < 0.5
        for n in range(3):
            if n == 0 or is_renamed:
                desk.register(Registration(session_id=who, name=f"{who}-{n}"), who)
            else:
                desk.check_in(who)
            desk.end(who, "freeze", who)
        desk.end(who, "retire", who)
        stage.judge.dead.add(who)


def freeze(stage: Stage, process: Process, me: Session) -> None:
    """End a session for now."""
    desk_of(stage, me).end(me.id, "freeze", me.id)


def look_elsewhere(stage: Stage, process: Process, me: Session) -> None:
    """Somebody asks when the others last acted."""
    directory = spaces.record_of(stage.desk(me.machine, None).logs).path(spaces.PLACE)
    for one in space_troubles.load_peers(directory):
        for who, at in one.seen.items():
            if at > one.heard:
                late = (at - one.heard) // 1000
                stage.judge.breach(f"{who} on {one.machine} acted {late} seconds after {me.machine.name} heard of it")
