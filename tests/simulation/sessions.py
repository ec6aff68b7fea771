"""Sessions come and go: they register, come back, freeze, and end for good.

Belongs here: the commands that change the roster, and what the judge learns of each. Who continues another is
``succession``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import NotFound, Refused

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("register", "freeze", "retire")


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
