"""Sessions look at their mail, and deal with it: ack it, give it back, answer it.

Belongs here: the commands that show mail or need mail that was read, and what the judge learns of each. If nobody
disturbs a session that looks, it is shown all that waits (``Waits``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Refused
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.files import system
from tests.simulation.letters import FREE, READ
from tests.simulation.stage import LASTING, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("check", "peek", "glimpse", "wait", "ack", "release", "reply")
WIDE = 1000
"""Room for all mail."""


def check(stage: Stage, process: Process, me: Session) -> None:
    """Show a session its mail, or a part of it."""
    room = int(process.chance.random() * 4) + 1 if process.chance.random() < 0.3 else WIDE
    deliver(stage, process, me, room)


def deliver(stage: Stage, process: Process, me: Session, room: int = WIDE, pause: float = 0) -> int:
    shown: list[str] = []
    waiting = Waits(stage, process, me)

    def show(items: list[Item]) -> Sequence[Item]:
        given = items[:room]
        shown.extend(seen(stage, process, me, given))
        if pause:
            system.sleep(pause)
        return given

    try:
        count = stage.desk(me.id).deliver(me.id, show, choose=lambda items: items[:room])
    except Refused:
        if not (me.is_leaving or stage.world.now - me.seen > 23 * 3600 * 10**9):
            raise
        me.may_be_dead = True
        return 0
    if me.registered is None:
        me.registered = stage.world.calls
    me.seen = stage.world.now
    stage.judge.recorded(me.id, shown)
    if room == WIDE:
        waiting.are_shown(shown)
    return count


class Waits:
    """What waits for a session that looks: if nobody disturbs it, it is shown all of that."""

    def __init__(self, stage: Stage, process: Process, me: Session) -> None:
        self.stage, self.process, self.me = stage, process, me
        self.others = stage.world.calls - process.calls
        is_alone = not any(other.calls for other in stage.world.living() if other is not process)
        is_alone = is_alone and not stage.world.disk.spoiled  # who is gone cannot be told then
        letters = stage.judge.letters.values() if is_alone and not me.is_leaving and not me.may_be_dead else ()
        self.there = [letter.id for letter in letters if stage.judge.waits(me, letter)]

    def are_shown(self, shown: Sequence[str]) -> None:
        """It looked, and had room for everything."""
        world, process = self.stage.world, self.process
        if self.others != world.calls - process.calls or process.hurt or world.befell("jump") or process.is_late:
            return
        for message_id in self.there:
            if message_id not in shown:
                self.stage.judge.breach(f"{self.me.id} looks for mail, and is not shown {message_id}")


def seen(stage: Stage, process: Process, me: Session, items: Sequence[Item]) -> list[str]:
    """Tell the judge what a session is shown; its ids, but for control messages, which the judge knows otherwise."""
    mail = [item.message for item in items if item.message.type == "message"]
    if mail:
        stage.judge.show(me.id, [(message.id, message.content) for message in mail], process)
    system.time_ns()  # a call, at which the process may be killed: shown, and not recorded
    return [message.id for message in mail]


def peek(stage: Stage, process: Process, me: Session) -> None:
    """Look without a trace: nothing that was read is there."""
    _looked(stage, me, stage.desk(me.id).peek)


def glimpse(stage: Stage, process: Process, me: Session) -> None:
    """Look whether any mail is there, as a doorbell does: what was read is not."""
    _looked(stage, me, stage.desk(me.id).part(Delivery).look)


def _looked(stage: Stage, me: Session, look: Callable[[str], list[Item]]) -> None:
    before = {i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == READ}
    try:
        items = look(me.id)
    except Refused:
        return
    for item in items:
        letter = stage.judge.letters.get(item.message.id)
        if item.message.type != "message":
            continue
        if letter is None or letter.content != item.message.content:
            stage.judge.breach(f"{me.id} peeks at {item.message.id}, which nobody sent so")
        elif letter.id in before and stage.judge.given[me.id, letter.id][0] == READ:
            stage.judge.breach(f"{me.id} peeks at {letter.id}, which it had read")


def wait(stage: Stage, process: Process, me: Session) -> None:
    """Wait for mail, and look."""

    try:
        MailQueries(stage.desk(me.id)).wait(me.id, 30)
    except Refused:
        return


def _mine(stage: Stage, process: Process, me: Session) -> str | None:
    letters = stage.judge.letters  # a letter whose sender was not told that it is sent may vanish
    mine = [
        i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == "read" and letters[i].acked
    ]
    found: str | None = pick(process, mine[-int(pick(process, (1, 2, 8))) :]) if mine else None
    return found


def ack(stage: Stage, process: Process, me: Session) -> None:
    """Deal with a message."""
    message_id = _mine(stage, process, me)
    if message_id is not None:
        try:
            with stage.judge.settling(me.id, message_id):
                stage.desk(me.id).ack(message_id, me.id)
        except Refused:
            letter = stage.judge.letters[message_id]
            is_read = stage.judge.given.get((me.id, message_id), (FREE, None))[0] == "read"
            if is_read and not letter.was_released and not me.may_be_dead:
                raise
            return
        stage.judge.recorded_by(me, message_id, "ack")


def release(stage: Stage, process: Process, me: Session) -> None:
    """Give a message back."""
    message_id = _mine(stage, process, me)
    if message_id is None:
        return
    stage.judge.releasing(me.id, message_id)
    try:
        stage.desk(me.id).release(message_id, me.id)
    except Refused:
        return
    stage.judge.recorded_by(me, message_id, "release")
    stage.judge.released(me.id, message_id)


def reply(stage: Stage, process: Process, me: Session) -> None:
    """Answer a message."""
    message_id = _mine(stage, process, me)
    if message_id is None:
        return
    parent = stage.judge.letters[message_id]
    if parent.foreign:
        return
    to = parent.to if parent.sender in me.line else parent.sender  # its own goes to those whom it was for
    letter = stage.letter(me.id, to, process)
    draft = Draft(sender=me.id, to=(), content=letter.content, id=letter.id, ttl_hours=LASTING)
    try:
        with stage.judge.settling(me.id, message_id):
            stage.desk(me.id).reply(message_id, draft)
    except Refused:
        return  # its sender is gone
    stage.judge.sent(letter)
