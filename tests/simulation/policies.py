"""Hooks that guard a tool by a policy, and a lead's answer to a client's question.

Belongs here: the person forbids a session a tool, and takes that back; its client asks before the tool, and asks its
lead. The guard before a tool is the shell's (``guard``), and Python behind it. The judge holds:

- What was forbidden, and confirmed, is refused; what was allowed again is not.
- The client is told "yes" only if its request was approved, and "no" only if it was not, or something forbids the tool.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from agent_mailbox.clients import client_input
from agent_mailbox.clients.permission.cancelling import Cancelling
from agent_mailbox.clients.permission.permit import Permit
from agent_mailbox.control.orders import Orders
from agent_mailbox.control.requests import Requests
from agent_mailbox.control.steps import find_request
from agent_mailbox.core import proofs
from agent_mailbox.core.control import transitions
from agent_mailbox.errors import MailboxError, NotFound, Refused
from agent_mailbox.known_clients.known_client import PERMISSION, PERMIT
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.simulation import guard
from tests.simulation.places import BOX, STATE
from tests.simulation.scene import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

T = TypeVar("T")

COMMANDS = ("forbid", "relent", "deploy", "wish")
TOOL = "mcp__ops__deploy"
SWEEPS = {
    "a tool that is forbidden": Sweep(
        1,
        "forbid@1? deploy@1? / "
        "deploy@1|deploy@1|forbid@1|relent@1 forbid@1|relent@1|check@1|run_steward / "
        "deploy@1 check@1 deploy@1",
        ("held", "held", "held before a lock", "is killed", "fails"),
        outages=0.2,
        agents=3,
    ),
    "a tool that is forbidden behind a stranger": Sweep(
        1, "relent@1? deploy@1 foreign / forbid@1 / deploy@1 relent@1", ("fails to look",), rounds=6, agents=3
    ),
    "a tool that is forbidden before a power failure": Sweep(
        0.5,
        "deploy@1 relent@1 deploy@1 check@1 / forbid@1 / ",
        ("in peace",),
        outages=0.9,
        rounds=8,
        agents=3,
        loose=0.9,
    ),
    "a lead that is asked": Sweep(
        1,
        "lead@1 forbid@1? relent@1? / wish@1 decide decide? / wish@1? decide deploy@1",
        ("held", "both held", "is killed", "held before a lock"),
        outages=0.1,
        rounds=8,
        agents=3,
    ),
}


class Ruled:
    """What sessions may do, as far as the judge knows."""

    def __init__(self) -> None:
        self.forbidden: dict[str, bool | None] = {}
        """By session; None: a rule about it may have changed."""
        self.changes = 0
        """How often a rule began or ended to change."""
        self.changing = 0
        """How many processes change one."""


class Asking(Requests):
    """The control plane as a client's hook opens it, which tells what it asks."""

    stage: Stage

    def request(self, me: str, payload: Any, *, to: str | None = None) -> Any:
        """Ask, and tell."""
        made = super().request(me, payload, to=to)
        self.stage.requests.append(made.id)
        self.stage.judge.acknowledge(("message", made.message_id))
        return made

    def wait(self, me: str, word: str, timeout: float | None, beside: Any = None) -> Any:
        """Wait for some seconds: the world's lead answers soon or never."""
        return super().wait(me, word, 5.0, beside)


def forbid(stage: Stage, process: Process, me: Session) -> None:
    """The person forbids a session a tool."""
    _rule(stage, process, me, is_forbidden=True)


def relent(stage: Stage, process: Process, me: Session) -> None:
    """The person forbids it nothing any more."""
    _rule(stage, process, me, is_forbidden=False)


def _rule(stage: Stage, process: Process, me: Session, *, is_forbidden: bool) -> None:
    if me.registered is None or me.may_be_dead:
        return
    rules = stage.ruled
    is_alone = not rules.changing  # of two at once, the log's order decides
    rules.forbidden[me.id], rules.changes, rules.changing = None, rules.changes + 1, rules.changing + 1
    changes = rules.changes
    try:
        desk = stage.desk(proof=proofs.TERMINAL)
        sent = Orders(desk).set_policy("user", [me.id], deny=[TOOL] if is_forbidden else [])
        stage.judge.acknowledge(("message", sent.message.id))
        if is_alone and changes == rules.changes:
            rules.forbidden[me.id] = is_forbidden
    finally:
        rules.changes, rules.changing = rules.changes + 1, rules.changing - 1


def deploy(stage: Stage, process: Process, me: Session) -> None:
    """A client is about to use the tool: the shell guard, and Python where something may bind the session."""
    rules = stage.ruled
    is_forbidden, changes, deaths = rules.forbidden.get(me.id, False), rules.changes, me.deaths
    sure = me.registered is not None and not me.may_be_dead
    said = ""
    if not guard.says_nothing(guard.Ask(PERMIT, me.id, BOX, STATE)):
        said = _answer(stage, me, PERMIT)
    if not sure or process.hurt or changes != rules.changes or deaths != me.deaths:
        return
    if is_forbidden and said != "deny":
        stage.judge.breach(f"{me.id} uses a tool that is forbidden to it")
    if is_forbidden is False and said == "deny":
        stage.judge.breach(f"{me.id} is refused a tool that nothing forbids")


def wish(stage: Stage, process: Process, me: Session) -> None:
    """A client would ask its person about the tool: its lead is asked, and waited for."""
    if me.registered is None or me.may_be_dead or not me.led:
        return
    rules, begun = stage.ruled, len(stage.requests)
    known = {*stage.requests}
    is_forbidden, changes = rules.forbidden.get(me.id, False), rules.changes
    said = _answer(stage, me, PERMISSION)
    mine = [one for one in stage.requests[begun:] if one not in known]
    if process.hurt or changes != rules.changes or is_forbidden is None or me.may_be_dead:
        return
    if is_forbidden and said != "deny":
        stage.judge.breach(f"{me.id} is told {said or 'nothing'} about a tool that is forbidden to it")
    if is_forbidden or not said:
        return
    asked = [find_request(stage.desk(me.id), one) for one in mine]
    states = [one.state for one in asked if one.asker == me.id]
    if (transitions.APPROVED in states) != (said == "allow"):
        stage.judge.breach(f"{me.id} is told {said}, and its requests are {states}")


def _answer(stage: Stage, me: Session, event: str) -> str:
    """What Python answers: ``allow``, ``deny``, ``ask``; nothing if the client goes on by its own rules."""
    call = client_input.ClientInput(
        event=event, session_id=me.id, cwd="/work", told=True, tool=TOOL, given={"place": "staging"}, use_id="use-1"
    )
    control = Asking(OpenMailbox(BOX, prove=lambda _: proofs.of_session(me.id), wait=client_input.LOCK_WAIT))
    control.stage = stage
    written: list[str] = []
    try:
        Permit(call=call, requests=control, environ={}, program="agent-mailbox", write=written.append).answer_question()
    except (Refused, NotFound):
        pass  # its lead is gone
    except MailboxError:
        if not written:  # the client goes on, as without us
            raise
    said = json.loads(written[0])["hookSpecificOutput"] if written else {}
    return str(said.get("permissionDecision") or said.get("decision", {}).get("behavior", ""))


class Unended(Cancelling):
    """The wait for an answer without a signal, of which the simulation has none."""

    def __enter__(self) -> Unended:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run_until_cancelled(self, do: Callable[[], T]) -> T:
        return do()
