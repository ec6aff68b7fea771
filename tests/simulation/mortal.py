"""Mail that nobody may live to read: it expires within hours, or its recipient is frozen or gone.

Belongs here: commands for sweeps of dead letters and of mail that asks for an ack, whose rows in the
projection must answer as the logs do (``questions``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core.compose import Draft
from tests.simulation.letters import FREE
from tests.simulation.reading import ack, release
from tests.simulation.stage import LASTING, ROLES, pick

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("mortal", "batch", "demand", "give_back", "take")


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
