"""What processes do in a world of several machines, and what its judge learns of each.

Belongs here: one function for a command, as in ``commands``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.core import compose, proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.engine import joining_space, replicator, space_trust
from agent_mailbox.engine.space_trust import RightsChange
from agent_mailbox.errors import BadData, Busy, MailboxError, NotFound, Refused, StorageFailed
from agent_mailbox.identity import machine_keys
from agent_mailbox.mailbox import elsewhere
from agent_mailbox.mailbox import space as spaces
from agent_mailbox.mailbox.exchanged_files import ExchangedFiles
from agent_mailbox.mailbox.facade import Mailbox
from agent_mailbox.mailbox.space import Space
from agent_mailbox.store import creation, paths, system
from agent_mailbox.store.order import MESSAGES
from agent_mailbox.upkeep import steward
from tests.simulation.hooks import Watched
from tests.simulation.machines_judge import MAYBE, READ
from tests.simulation.stage import LASTING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from agent_mailbox.mailbox.replica import Replica
    from tests.simulation.machines import Machine, Machines
    from tests.simulation.machines_judge import Judge, Session
    from tests.simulation.process import Process

RETRIES = 3


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

    def desk(self, machine: Machine, proof: str | None, wait: float | None = None) -> Mailbox:
        """The mailbox of a machine as one of its processes opens it."""
        return Mailbox(box_of(machine), prove=lambda _: proof, wait=wait)


def box_of(machine: Machine) -> str:
    """The path of a machine's mailbox."""
    return f"/{machine.name}/m"


def space_of(machine: Machine) -> Space:
    """The space, as a machine is in it."""
    return Space("nats://engine", "team", machine.name)


# -- commands ---------------------------------------------------------------------------------------------------------


def found(stage: Stage, process: Process, machine: Machine) -> None:
    """Make a machine's mailbox, and join."""
    made(machine)
    joining_space.join(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    machine.joined = True


def made(machine: Machine) -> None:
    """Make a machine's mailbox."""
    system.make_directory(f"/{machine.name}")
    system.make_directory(f"/{machine.name}/home")
    creation.create(box_of(machine), system.environment())


def key_of(stage: Stage, process: Process, machine: Machine) -> None:
    """A machine's person looks at the fingerprint of its key."""
    copy = spaces.opened(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    assert copy.judge is not None
    assert copy.judge.key is not None
    stage.keys[machine.name] = machine_keys.fingerprint(copy.judge.key.public)


def confide(stage: Stage, process: Process, machine: Machine) -> None:
    """The person says that the other machines may speak for their sessions, and, where that is so, as the person."""
    joining_space.join(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine), _words(stage, machine))


def _words(stage: Stage, machine: Machine) -> list[RightsChange]:
    """The word of a machine's person on the others."""
    others = {name: key for name, key in stage.keys.items() if name != machine.name}
    stage.judge.trusting.update((machine.name, name) for name in others)
    return [RightsChange(name, key, stage.trusted == "user", ("all",)) for name, key in others.items()]


def trust(stage: Stage, process: Process, me: Session) -> None:
    """The person of a machine confides in the others late."""
    stage.judge.is_late = True
    confide(stage, process, me.machine)


def register(stage: Stage, process: Process, me: Session) -> None:
    """Register a session."""
    request = Registration(session_id=me.id, roles=me.roles, name=f"n-{me.id}")
    _mine(stage, me).register(request, me.id)
    me.registered = True


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
        _post(stage, process, "user", me.id, me)
    look(stage, process, me)
    run_steward(stage, process, me)


def rename(stage: Stage, process: Process, me: Session) -> None:
    """A session takes another name."""
    stage.count += 1
    _mine(stage, me).register(Registration(session_id=me.id, roles=me.roles, name=f"n-{me.id}-{stage.count}"), me.id)


def order(stage: Stage, process: Process, me: Session) -> None:
    """A session writes to the others what may order."""
    others = tuple(other.id for other in stage.judge.sessions if other is not me and other.registered)
    if others:
        stage.count += 1
        _mine(stage, me).send(Draft(sender=me.id, to=others, content=f"order {stage.count}", type="control"))


def forbid(stage: Stage, process: Process, me: Session) -> None:
    """The person of a machine forbids a session of another one something."""
    others = [other for other in stage.judge.sessions if other.machine is not me.machine and other.registered]
    if others:
        stage.count += 1
        other, rule = others[int(process.chance.random() * len(others))], f"Bash(number{stage.count})"
        desk = stage.desk(me.machine, proofs.TERMINAL)
        desk.control.set_policy(USER, [other.id], deny=(rule,))
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


def newcomer(stage: Stage, process: Process, me: Session) -> None:
    """One more machine joins."""
    machine = next((machine for machine in stage.world.machines if not machine.joined), None)
    if machine is not None:
        stage.world.place[process] = machine
        made(machine)
        changes = _words(stage, machine) if stage.trusted else []
        joining_space.join(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine), changes)
        machine.joined = True


def look_elsewhere(stage: Stage, process: Process, me: Session) -> None:
    """Somebody asks when the others last acted."""
    directory = spaces.record_of(stage.desk(me.machine, None).logs).path(spaces.PLACE)
    for one in elsewhere.load(directory):
        for who, at in one.seen.items():
            if at > one.heard:
                stage.judge.breach(f"{who} on {one.machine} acted after {me.machine.name} heard of it")


def _mine(stage: Stage, me: Session, wait: float | None = None) -> Mailbox:
    return stage.desk(me.machine, proofs.of_session(me.id), wait)


def send(stage: Stage, process: Process, me: Session) -> None:
    """Send a message; after a failure try again under the same id, as the hint says."""
    others = [other.id for other in stage.judge.sessions if other is not me]
    words = ("all", "role:ops", "role:dev", *others)
    _send(stage, process, me, words[int(process.chance.random() ** 1.5 * len(words))])


def call(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to a role that sessions on all machines have."""
    _send(stage, process, me, "role:dev")


def post(stage: Stage, process: Process, me: Session) -> None:
    """The person sends a message to a role that sessions on all machines have."""
    _post(stage, process, "user", "role:dev", me)


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


def send_to(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to a session of another machine."""
    others = [other.id for other in stage.judge.sessions if other.machine is not me.machine]
    _send(stage, process, me, others[int(process.chance.random() * len(others))])


def foreign(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows none of our locks appends mail."""
    letter = stage.judge.letter(process, me.machine, "cron", me.id)
    stage.judge.is_scattered = True
    draft = Draft(sender="cron", to=(me.id,), content=letter.text, ttl_hours=LASTING, id=letter.id)
    line = compose.stored_line(compose.message(draft, (me.id,), letter.id, system.time_ns() // 1_000_000))
    fd = system.open(f"{box_of(me.machine)}/{paths.MESSAGES}", system.O_WRONLY | system.O_APPEND)
    try:
        system.write(fd, line)
    finally:
        system.close(fd)


def _send(stage: Stage, process: Process, me: Session, to: str) -> None:
    _post(stage, process, me.id, to, me)


def _post(stage: Stage, process: Process, sender: str, to: str, me: Session) -> None:
    chance = process.chance
    stage.count += 1
    letter = stage.judge.letter(process, me.machine, sender, to)
    stage.judge.is_scattered = stage.judge.is_scattered or not me.machine.joined
    draft = Draft(
        sender=sender, to=(to,), content=letter.text, ack=chance.random() < 0.3, ttl_hours=LASTING, id=letter.id
    )
    for attempt in range(RETRIES):
        try:
            sent = _mine(stage, me).send(draft)
        except (Busy, StorageFailed):
            if attempt == RETRIES - 1:
                raise
            continue
        letter.acknowledged, letter.queued = True, sent.queued
        stage.judge.acknowledged += 1
        is_there = (MESSAGES, letter.id) in stage.world.space.ids
        if not sent.queued and not is_there and me.machine.joined:
            stage.judge.breach(f"{letter.id} is acknowledged, and not in the order")
        if chance.random() < 0.9:
            return


def check(stage: Stage, process: Process, me: Session) -> None:
    """Show a session its mail, or a part of it."""
    room = int(process.chance.random() * 4) + 1 if process.chance.random() < 0.3 else 1000
    look(stage, process, me, room)


def look(stage: Stage, process: Process, me: Session, room: int = 1000) -> int:
    """Show a session so much of its mail; how much that was."""

    def show(items: list[Item]) -> Sequence[Item]:
        stage.judge.show(me, items[:room], process)
        return items[:room]

    count = _mine(stage, me).deliver(me.id, show, choose=lambda items: items[:room])
    stage.judge.recorded(me, process)
    return count


def hook(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook, in Python."""
    event = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")[int(process.chance.random() * 4)]
    desk = Watched(box_of(me.machine), wait=hook_events.LOCK_WAIT, prove=lambda _: proofs.of_session(me.id))
    desk.seen = lambda items: stage.judge.show(me, items, process)
    desk.recorded = lambda: stage.judge.recorded(me, process)
    call = hook_events.Call(event=event, session_id=me.id, cwd="/work", source="startup", told=True)
    hook_events.answer(
        hook_events.Hook(call=call, desk=desk, environ={}, program="agent-mailbox", write=lambda _: None)
    )


def _read(stage: Stage, process: Process, me: Session) -> str | None:
    read = [i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == READ]
    return read[int(process.chance.random() * len(read))] if read else None


def ack(stage: Stage, process: Process, me: Session) -> None:
    """Deal with a message."""
    if (message_id := _read(stage, process, me)) is not None:
        _mine(stage, me).ack(message_id, me.id)


def release(stage: Stage, process: Process, me: Session) -> None:
    """Give a message back: from then on anybody may be shown it."""
    if (message_id := _read(stage, process, me)) is not None:
        _give_back(stage, me, message_id)


def _give_back(stage: Stage, me: Session, message_id: str) -> None:
    letter, is_read = stage.judge.letters[message_id], stage.judge.given[me.id, message_id][0] == READ
    letter.released, before = True, letter.showings
    stage.judge.given[me.id, message_id] = MAYBE, None  # nobody else is to give it back, too
    _mine(stage, me).release(message_id, me.id)
    if is_read:
        letter.owed = before + 1


def give_back(stage: Stage, process: Process, me: Session) -> None:
    """A session gives the last mail back, perhaps before the read is recorded, which then counts."""
    seen = [i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state != MAYBE]
    if seen:
        _give_back(stage, me, seen[-1])


def freeze(stage: Stage, process: Process, me: Session) -> None:
    """End a session for now."""
    _mine(stage, me).end(me.id, "freeze", me.id)


def run_steward(stage: Stage, process: Process, me: Session) -> None:
    """The steward of a machine, from cron."""
    steward.run(stage.desk(me.machine, proofs.STEWARD), stage.max_live)


def replicate(stage: Stage, process: Process, me: Session) -> None:
    """The replicator of a machine runs for some turns, unless one runs already."""
    turns = 1 + int(process.chance.random() * 6)
    copy = spaces.opened(stage.desk(me.machine, proofs.TERMINAL).logs, space_of(me.machine))
    left = iter(range(turns))
    files = ExchangedFiles(copy.logs, spaces.files_of(spaces.order_in(copy)), copy.directory, lambda _: None)
    replicator.run(copy, files, lambda: next(left, None) is None, lambda _: None, system.sleep)


def settle(stage: Stage, process: Process, machine: Machine) -> None:
    """In the end: the replicator of a machine after its connection broke."""
    copy = _mended(stage, machine)
    if not stage.judge.edited and not stage.judge.is_damaged:
        with copy.held():
            copy.compare()


def _mended(stage: Stage, machine: Machine) -> Replica:
    """What a replicator does as it starts, and as its connection is back."""
    copy = spaces.opened(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    with copy.held():
        try:
            space_trust.apply(copy)
        except Refused:
            if machine not in stage.judge.edited:
                raise
        copy.catch_up()
        if copy.look_closer():
            copy.catch_up()
    return copy


def mend(stage: Stage, process: Process, me: Session) -> None:
    """The replicator of a machine starts, and ends soon."""
    if me.machine.joined:
        _mended(stage, me.machine)


def blind(stage: Stage, process: Process, me: Session) -> None:
    """The same on an installation without the library that verifies."""
    process.is_blind = True
    mend(stage, process, me)


COMMANDS: dict[str, Callable[[Stage, Process, Session], object]] = {
    "send": send, "call": call, "check": check, "hook": hook, "ack": ack, "release": release, "freeze": freeze,
    "replicate": replicate, "run_steward": run_steward, "register": register, "look": look, "mend": mend,
    "blind": blind, "join": join, "alone": alone, "rename": rename, "order": order, "forbid": forbid,
    "mortals": mortals, "retell": run_steward, "newcomer": newcomer, "trust": trust, "send_to": send_to, "post": post,
    "twin": twin, "return": give_back,
    "foreign": foreign, "look_elsewhere": look_elsewhere,
}  # fmt: skip


def expected(error: BaseException, command: str, process: Process, *, edited: bool = False) -> bool:
    """May the command end with this error?"""
    if isinstance(error, Busy):
        return not process.in_peace  # the engine out of reach is one
    if edited and isinstance(error, Refused | BadData):
        return command in ("trust", "run_steward")
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.profile.lockless or process.world.profile.full > 0
    if isinstance(error, Refused | NotFound):
        return command in ("ack", "release", "return", "freeze", "run_steward")
    return isinstance(error, OSError | MailboxError) and process.hurt
