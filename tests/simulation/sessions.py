"""Sessions come and go: they register, come back, freeze, and end for good. They ask their lead, or the person.

Belongs here: the commands that change the roster, or ask who decides, and what the judge learns of each. Who continues
another is ``succession``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_mailbox.control.requests import Requests
from agent_mailbox.control.steps import find_request
from agent_mailbox.core import proofs
from agent_mailbox.core.control import messages
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import NotFound, Refused
from tests.simulation.hooks import permit
from tests.simulation.stage import LEAD, pick

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage


COMMANDS = ("register", "freeze", "retire", "ask", "decide", "lead")


def register(stage: Stage, process: Process, me: Session) -> None:
    """Register, or revive, a session."""
    request = Registration(session_id=me.id, roles=(me.role.removeprefix("role:"),), tags=(me.tag,), name=me.name)
    me.may_hold = True
    begun = stage.world.calls
    stage.desk(me.id).register(request, me.id)
    me.holds = True
    if me.registered is None:
        me.registered = stage.world.calls
    if me.may_be_dead:
        stage.judge.dying(me)
    if me.retiring < begun and not (me.retirer is not None and not me.retirer.ended):
        me.retired = me.may_be_dead = False
    me.seen = stage.world.now
    stage.judge.acknowledge(("agent", me.id))


def freeze(stage: Stage, process: Process, me: Session) -> None:
    """End a session for now."""
    if me.registered is not None and not me.may_be_dead and me.id not in stage.clients:
        me.may_be_frozen = True
        try:
            stage.desk(me.id).end(me.id, "freeze", me.id)
        except (Refused, NotFound):
            return


def retire(stage: Stage, process: Process, me: Session) -> None:
    """End a session for good."""
    if me.registered is not None and len(stage.registered()) > 2:
        me.retired = True
        stage.judge.dying(me)
        begun = stage.world.calls
        me.retirer, me.retiring = process, begun
        try:
            stage.desk(me.id).end(me.id, "retire", me.id)
            stage.told.ended[me.id] = begun
        except NotFound:
            return
        finally:
            me.retired = True
            stage.judge.dying(me)
            me.retiring = stage.world.calls


def ask(stage: Stage, process: Process, me: Session) -> None:
    """Ask one's lead, and wait for a while."""
    if not me.led:
        return
    control = Requests(stage.desk(me.id))
    asked = control.request(me.id, messages.PlanRequest(goal=f"plan {stage.count}"))
    stage.requests.append(asked.id)
    stage.judge.acknowledge(("message", asked.message_id))
    if process.chance.random() < 0.5:
        _told(stage, control.wait(me.id, asked.id, 5))


def decide(stage: Stage, process: Process, me: Session) -> None:
    """The lead or the person answers a request."""
    if not stage.requests:
        return
    word, as_user = str(pick(process, stage.requests[-4:])), process.chance.random() < 0.5
    leader = stage.present.get(LEAD, LEAD)
    control = Requests(stage.desk(leader, proof=proofs.TERMINAL if as_user else None))
    try:
        _told(stage, control.answer("user" if as_user else leader, word, process.chance.random() < 0.5))
    except Refused:
        pass  # decided already, or not its to decide
    _told(stage, find_request(control.box, word))


def _told(stage: Stage, request: Any) -> None:
    if not request.is_open:
        stage.judge.decided(request.id, request.state, request.by)


def lead(stage: Stage, process: Process, me: Session) -> None:
    """The person puts a session under a lead, while its client asks about tools."""
    leader = stage.present.get(LEAD, LEAD)
    if me.id != leader and me.registered is not None and not me.may_be_dead:
        if not me.led:
            permit(stage, process, me)
        request = Registration(session_id=me.id, event="update", lead=leader)
        stage.desk(proof=proofs.TERMINAL).register(request, "user")
        me.led = True
        permit(stage, process, me)
