"""Mail between several machines: sent, appended by strangers, shown, acked, given back.

Belongs here: these commands, and what the judge learns of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.core import compose, proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Busy, StorageFailed
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.space.order.order import MESSAGES
from agent_mailbox.store.files import paths, system
from tests.simulation.hooks import Watched
from tests.simulation.machines_days import shows_all
from tests.simulation.machines_judge import MAYBE, READ
from tests.simulation.machines_stage import box_of, desk_of
from tests.simulation.machines_tasks import looks
from tests.simulation.stage import LASTING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process

RETRIES, ALL = 3, 1000


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
    post_as(stage, process, "user", "role:dev", me)


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
    post_as(stage, process, me.id, to, me)


def post_as(stage: Stage, process: Process, sender: str, to: str, me: Session) -> None:
    """Send a message. The person writes at a terminal of their own."""
    chance = process.chance
    stage.count += 1
    letter = stage.judge.letter(process, me.machine, sender, to)
    proof = proofs.TERMINAL if sender == "user" else proofs.of_session(me.id)
    stage.judge.is_scattered = stage.judge.is_scattered or not me.machine.joined
    draft = Draft(
        sender=sender, to=(to,), content=letter.text, ack=chance.random() < 0.3, ttl_hours=LASTING, id=letter.id
    )
    for attempt in range(RETRIES):
        try:
            sent = stage.desk(me.machine, proof).send(draft)
        except (Busy, StorageFailed):
            if attempt == RETRIES - 1:
                raise
            continue
        letter.acknowledged, letter.queued = True, bool(sent.queued)
        stage.judge.acknowledged += 1
        is_there = (MESSAGES, letter.id) in stage.world.space.ids
        if not sent.queued and not is_there and me.machine.joined:
            stage.judge.breach(f"{letter.id} is acknowledged, and not in the order")
        if chance.random() < 0.9:
            return


def check(stage: Stage, process: Process, me: Session) -> None:
    """Show a session its mail, or a part of it."""
    room = int(process.chance.random() * 4) + 1 if process.chance.random() < 0.3 else ALL
    look(stage, process, me, room)


def look(stage: Stage, process: Process, me: Session, room: int = ALL) -> int:
    """Show a session so much of its mail; how much that was."""

    def show(items: list[Item]) -> Sequence[Item]:
        if room == ALL:
            ids = [item.message.id for item in items]
            shows_all(stage, process, me, ids)
            looks(stage, process, me, ids)
        stage.judge.show(me, items[:room], process)
        return items[:room]

    count = desk_of(stage, me).deliver(me.id, show, choose=lambda items: items[:room])
    stage.judge.recorded(me, process)
    return count


def hook(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook, in Python."""
    event = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")[int(process.chance.random() * 4)]
    desk = Watched(
        OpenMailbox(box_of(me.machine), wait=client_input.LOCK_WAIT, prove=lambda _: proofs.of_session(me.id))
    )
    desk.seen = lambda items: stage.judge.show(me, items, process)
    desk.recorded = lambda: stage.judge.recorded(me, process)
    call = client_input.ClientInput(event=event, session_id=me.id, cwd="/work", source="startup", told=True)
    hook_events.answer_event(
        hook_events.Hook(call=call, delivery=desk, environ={}, program="agent-mailbox", write=lambda _: None)
    )


def _read(stage: Stage, process: Process, me: Session) -> str | None:
    read = [i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == READ]
    return read[int(process.chance.random() * len(read))] if read else None


def ack(stage: Stage, process: Process, me: Session) -> None:
    """Deal with a message."""
    if (message_id := _read(stage, process, me)) is not None:
        desk_of(stage, me).ack(message_id, me.id)


def release(stage: Stage, process: Process, me: Session) -> None:
    """Give a message back: from then on anybody may be shown it."""
    if (message_id := _read(stage, process, me)) is not None:
        return_of(stage, me, message_id)


def return_of(stage: Stage, me: Session, message_id: str) -> None:
    """Give a message back that the session was shown."""
    letter, is_read = stage.judge.letters[message_id], stage.judge.given[me.id, message_id][0] == READ
    letter.released, before = True, letter.showings
    stage.judge.given[me.id, message_id] = MAYBE, None  # nobody else is to give it back, too
    desk_of(stage, me).release(message_id, me.id)
    if is_read:
        letter.owed = before + 1


def give_back(stage: Stage, process: Process, me: Session) -> None:
    """A session gives the last mail back, perhaps before the read is recorded, which then counts."""
    seen = [i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state != MAYBE]
    if seen:
        return_of(stage, me, seen[-1])
