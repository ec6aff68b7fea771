"""Sessions send mail: to one, to a role, to all; a batch, a file; and once more under the same id.

Belongs here: the commands that send, and what the judge learns of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Busy, NotFound, StorageFailed
from agent_mailbox.store.attachments import attachment_files
from tests.simulation.places import BOX
from tests.simulation.stage import LASTING, ROLES, TAGS, pick

if TYPE_CHECKING:
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("send", "call", "send_many", "resend", "attach")


def send(stage: Stage, process: Process, me: Session) -> None:
    """Send a message; after a failure try again under the same id, as the hint says."""
    post(stage, process, me, address(stage, process, me))


def call(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to one of those who hold a role, which others hold rather than oneself."""
    post(stage, process, me, ROLES[(ROLES.index(me.role) + (process.chance.random() < 0.7)) % len(ROLES)])


def post(stage: Stage, process: Process, me: Session, to: str) -> None:
    letter = stage.letter(me.id, to, process)
    draft = stage.drafts[letter.id] = _draft(letter, process)
    for attempt in range(3):
        try:
            stage.desk(me.id).send(draft)
        except (Busy, StorageFailed):
            if attempt == 2:
                raise
            continue
        stage.judge.sent(letter)
        if process.chance.random() < 0.9:
            return


def resend(stage: Stage, process: Process, me: Session) -> None:
    """Send a message once more under its id, as whoever was not told repeats it, and however late."""
    mine = [i for i in stage.drafts if stage.judge.letters[i].sender == me.id] or list(stage.drafts)
    if mine:
        message_id = str(pick(process, mine[-int(pick(process, (1, 1, 2, 8))) :]))
        stage.desk(stage.judge.letters[message_id].sender).send(stage.drafts[message_id])
        stage.judge.sent(stage.judge.letters[message_id])


def send_many(stage: Stage, process: Process, me: Session) -> None:
    """Send a batch."""
    letters = [stage.letter(me.id, address(stage, process, me), process) for _ in range(3)]
    for letter in letters:
        letter.begun = stage.world.calls
    stage.desk(me.id).send_all([_draft(letter, process) for letter in letters])
    for letter in letters:
        stage.judge.sent(letter)


def attach(stage: Stage, process: Process, me: Session) -> None:
    """Keep a file, and send a message that names it. If that comes late, the steward may have removed the file."""
    letter = stage.letter(me.id, address(stage, process, me), process)
    begun, content = stage.world.now, letter.content.encode()
    try:
        file = attachment_files.put(BOX, f"{letter.number}.txt", [content])
        letter.attachments = [file.entry()]
        stage.desk(me.id).send(_draft(letter, process))
    except (NotFound, StorageFailed) as error:
        if stage.world.now - begun < (attachment_files.GRACE - 1000) * 1_000_000 and not stage.world.befell("jump"):
            if "no such attachment" in str(error):
                stage.judge.breach(f"{me.id} sends a file of this minute, and the mailbox does not have it")
            raise
        return
    letter.stored = attachment_files.place(BOX, file.stored)
    stage.judge.sent(letter)


def _draft(letter: Letter, process: Process) -> Draft:
    letter.ack = process.chance.random() < 0.3
    if process.chance.random() < 0.15:
        letter.class_ = 0
    letter.lasting = process.chance.random() < 0.85
    return Draft(
        sender=letter.sender,
        to=(letter.to,),
        content=letter.content,
        ack=letter.ack,
        priority="high" if letter.class_ == 0 else "normal",
        ttl_hours=LASTING if letter.lasting else pick(process, (2, None)),
        id=letter.id,
        attachments=letter.attachments,
    )


def address(stage: Stage, process: Process, me: Session) -> str:
    drawn = process.chance.random()
    others = [other.id for other in stage.registered() if other is not me and other.holds]
    if drawn < 0.5 and others:
        found: str = pick(process, others)
        return found
    return str(pick(process, (*ROLES, *TAGS, "all")))
