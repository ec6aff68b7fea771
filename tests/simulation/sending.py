"""Sessions send mail: to one, to a role, to all; a batch, a file; and once more under the same id.

Belongs here: the commands that send, and what the judge learns of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Busy, NotFound, StorageFailed
from agent_mailbox.store.attachments import attachment_files
from tests.simulation.letters import FREE
from tests.simulation.places import BOX
from tests.simulation.reading import ack, release
from tests.simulation.stage import LASTING, ROLES, TAGS, pick

if TYPE_CHECKING:
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage


COMMANDS = ("send", "call", "send_many", "resend", "attach", "mortal", "batch", "demand", "give_back", "take")


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


def mortal(stage: Stage, process: Process, me: Session) -> None:
    """Send a message that lives for an hour or two, or as long as its mode has it."""
    others = [who for who, session in stage.judge.sessions.items() if who != me.id and not session.retired]
    draft = _mortal(stage, process, me, str(pick(process, (*others, *ROLES, me.tag, "all"))), (1, 2, None))
    stage.desk(me.id).send(draft)
    stage.judge.sent(stage.judge.letters[str(draft.id)])


def batch(stage: Stage, process: Process, me: Session) -> None:
    """Send two or three messages of one kind in one go, as whoever tells everyone something does."""
    to, hours = str(pick(process, (*ROLES, "all"))), (int(pick(process, (1, 2))),)
    drafts = [_mortal(stage, process, me, to, hours) for _ in range(2 + int(process.chance.random() * 2))]
    stage.desk(me.id).send_all(drafts)
    for draft in drafts:
        stage.judge.sent(stage.judge.letters[str(draft.id)])


def _mortal(stage: Stage, process: Process, me: Session, to: str, hours: tuple[int | None, ...]) -> Draft:
    letter = stage.letter(me.id, to, process)
    letter.lasting = False
    letter.content = letter.content[:60]
    draft = Draft(sender=me.id, to=(to,), content=letter.content, ttl_hours=pick(process, hours), id=letter.id)
    stage.drafts[letter.id] = draft
    return draft


def demand(stage: Stage, process: Process, me: Session) -> None:
    """Send a message that asks for an ack."""
    others = [who for who, session in stage.judge.sessions.items() if who != me.id and not session.retired]
    letter = stage.letter(me.id, str(pick(process, (*others, *ROLES, me.tag, "all"))), process)
    letter.ack = True
    draft = Draft(sender=me.id, to=(letter.to,), content=letter.content, ack=True, ttl_hours=LASTING, id=letter.id)
    stage.drafts[letter.id] = draft
    stage.desk(me.id).send(draft)
    stage.judge.sent(letter)


def give_back(stage: Stage, process: Process, me: Session) -> None:
    """Give back what somebody read last: whoever has read something."""
    release(stage, process, _reader(stage, me))


def take(stage: Stage, process: Process, me: Session) -> None:
    """Deal with what somebody read last."""
    ack(stage, process, _reader(stage, me))


def _reader(stage: Stage, me: Session) -> Session:
    for (who, _), (state, _) in reversed(stage.judge.given.items()):
        if state not in (FREE, "shown") and not stage.judge.sessions[who].may_be_dead:
            return stage.judge.sessions[who]
    return me
