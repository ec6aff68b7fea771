"""What processes do in a world of several machines, and what its judge learns of each.

Belongs here: one function for a command, as in ``commands``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.ids import uuid_of
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.engine import joining_space, replicator
from agent_mailbox.engine.space_trust import RightsChange
from agent_mailbox.errors import Busy, MailboxError, NotFound, Refused, StorageFailed
from agent_mailbox.identity import machine_keys
from agent_mailbox.mailbox import space as spaces
from agent_mailbox.mailbox.facade import Mailbox
from agent_mailbox.mailbox.space import Space
from agent_mailbox.store import creation, system
from agent_mailbox.store.order import MESSAGES
from agent_mailbox.upkeep import steward
from tests.simulation.commands import LASTING, Watched
from tests.simulation.machines_judge import READ, Letter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from agent_mailbox.mailbox.exchanged_files import ExchangedFiles
    from tests.simulation.machines import Machine, Machines
    from tests.simulation.machines_judge import Judge, Session
    from tests.simulation.world import Process

RETRIES = 3


class Stage:
    """A world with its judge, as commands see it."""

    def __init__(self, world: Machines, judge: Judge, max_live: int) -> None:
        self.world = world
        self.judge = judge
        self.max_live = max_live
        self.count = 0

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
    system.make_directory(f"/{machine.name}")
    system.make_directory(f"/{machine.name}/home")
    creation.create(box_of(machine), system.environment())
    joining_space.join(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))


def key_of(stage: Stage, machine: Machine) -> str:
    """The fingerprint of a machine's key, as its person sees it."""
    copy = spaces.opened(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    assert copy.judge is not None
    assert copy.judge.key is not None
    return machine_keys.fingerprint(copy.judge.key.public)


def trust(stage: Stage, process: Process, machine: Machine, keys: dict[str, str]) -> None:
    """The person says that the other machines may speak for their sessions."""
    changes = [RightsChange(name, key, True, ("all",)) for name, key in keys.items() if name != machine.name]
    joining_space.join(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine), changes)


def register(stage: Stage, process: Process, me: Session) -> None:
    """Register a session."""
    request = Registration(session_id=me.id, roles=me.roles, name=f"n-{me.id}")
    _mine(stage, me).register(request, me.id)


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


def _send(stage: Stage, process: Process, me: Session, to: str) -> None:
    chance = process.chance
    stage.count += 1
    letter = Letter(uuid_of(f"{chance.getrandbits(128):032x}", "4"), me.id, to, f"number {stage.count} of {me.id}")
    stage.judge.letters[letter.id] = letter
    draft = Draft(
        sender=me.id, to=(to,), content=letter.text, ack=chance.random() < 0.3, ttl_hours=LASTING, id=letter.id
    )
    for attempt in range(RETRIES):
        try:
            sent = _mine(stage, me).send(draft)
        except (Busy, StorageFailed):
            if attempt == RETRIES - 1:
                raise
            continue
        letter.acknowledged = True
        stage.judge.acknowledged += 1
        is_there = (MESSAGES, letter.id) in stage.world.space.ids
        if not sent.queued and not is_there:
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
        stage.judge.letters[message_id].released = True
        _mine(stage, me).release(message_id, me.id)


def freeze(stage: Stage, process: Process, me: Session) -> None:
    """End a session for now."""
    _mine(stage, me).end(me.id, "freeze", me.id)


def run_steward(stage: Stage, process: Process, me: Session) -> None:
    """The steward of a machine, from cron."""
    steward.run(stage.desk(me.machine, proofs.STEWARD), stage.max_live)


class NoFiles:
    """The exchange of attached files, of which there are none."""

    def make(self) -> None:
        """It is there."""

    def turn(self, now: int) -> None:
        """Nothing is shipped."""


def replicate(stage: Stage, process: Process, me: Session) -> None:
    """The replicator of a machine runs for some turns, unless one runs already."""
    turns = 1 + int(process.chance.random() * 6)
    copy = spaces.opened(stage.desk(me.machine, proofs.TERMINAL).logs, space_of(me.machine))
    left = iter(range(turns))
    files = cast("ExchangedFiles", NoFiles())
    replicator.run(copy, files, lambda: next(left, None) is None, lambda _: None, system.sleep)


def settle(stage: Stage, process: Process, machine: Machine) -> None:
    """In the end: the replicator of a machine after its connection broke."""
    copy = spaces.opened(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine))
    with copy.held():
        copy.catch_up()
        if copy.look_closer():
            copy.catch_up()
        copy.compare()


COMMANDS: dict[str, Callable[[Stage, Process, Session], object]] = {
    "send": send, "call": call, "check": check, "hook": hook, "ack": ack, "release": release, "freeze": freeze,
    "replicate": replicate, "run_steward": run_steward, "register": register, "look": look,
}  # fmt: skip


def expected(error: BaseException, command: str, process: Process) -> bool:
    """May the command end with this error?"""
    if isinstance(error, Busy):
        return True  # the engine out of reach is one
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.profile.lockless or process.world.profile.full > 0
    if isinstance(error, Refused | NotFound):
        return command in ("ack", "release", "freeze", "run_steward")
    return isinstance(error, OSError | MailboxError) and process.hurt
