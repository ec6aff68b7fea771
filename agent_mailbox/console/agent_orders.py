"""The person's orders to one agent: its mode, its rules, its end, its name. Each is the call that its command makes.

Belongs here: the forms of an agent's page as those calls, and their results as sentences. The facade decides what is
allowed.
"""

from __future__ import annotations

from ..control.orders import Orders
from ..control.task_views import TaskViews
from ..control.tasking import Tasking
from ..control_plane import control_log, standing
from ..control_plane.standing import Standing
from ..core.compose import Draft
from ..core.control import messages
from ..core.control.transitions import SHUTDOWN
from ..core.records import USER
from ..core.roster import ALIVE, DEAD, FROZEN, Agent
from ..core.roster_changes import Registration
from ..errors import Malformed, NotFound, Refused
from . import presenters
from .desk import Looking, Params
from .presenters import Unchanged
from .task_board import id_of_form

ENDS = {
    "freeze": (FROZEN, "is frozen: its direct mail waits"),
    "thaw": (ALIVE, "is alive again"),
    "retire": (DEAD, "is dead"),
}
"""Each change of an agent's state: the state that follows, and what is told of it."""


def _agent_of_form(now: Looking, fields: Params) -> Agent:
    """Return the form's agent by its whole id: a name may have another holder since the page was shown."""
    agent = now.roster.get(fields.get("agent", ""))
    if agent is None or agent.session_id == USER:
        raise NotFound(f"no agent {fields.get('agent', '')!r}", "reload the page")
    return agent


def _standing(now: Looking, agent: Agent) -> Standing:
    return standing.find_standing(now.mailbox, agent.session_id)


def set_mode(now: Looking, fields: Params) -> str:
    """Have an agent work in a mode. One in which it works is not ordered again."""
    agent = _agent_of_form(now, fields)
    name, before = presenters.party_name(agent.session_id, now.roster), _standing(now, agent).mode
    if fields.get("mode", "") == before:
        return Unchanged(f"{name} works in the mode {before} already.")
    Orders(now.mailbox).set_mode(USER, [agent.session_id], fields.get("mode", ""))
    return f"{name} works in the mode {_standing(now, agent).mode}."


def revoke_grant(now: Looking, fields: Params) -> str:
    """Take one rule or host from an agent; the others stay."""
    agent, kind, rule = _agent_of_form(now, fields), fields.get("kind", ""), fields.get("rule", "")
    policy = _standing(now, agent).policy
    held = {"allow": policy.allow, "deny": policy.deny, "hosts": policy.hosts}
    if rule not in held.get(kind, ()):
        raise NotFound(f"no such rule: {rule!r}", "reload the page: it may be gone already")
    held[kind] = tuple(other for other in held[kind] if other != rule)

    def check() -> None:
        if _standing(now, agent).policy != policy:  # what replaces all rules would undo this change
            raise Refused("the agent's rules changed at this moment", "nothing was revoked; press the button once more")

    Orders(now.mailbox).set_policy(
        USER, [agent.session_id], allow=held["allow"], deny=held["deny"], hosts=held["hosts"], check=check
    )
    return f"{presenters.one_line(rule)} is revoked for {presenters.party_name(agent.session_id, now.roster)}."


def shut_down(now: Looking, fields: Params) -> str:
    """Ask an agent to end its work; it may refuse. A form that is sent twice asks once."""
    agent = _agent_of_form(now, fields)
    payload = messages.ShutdownRequest(
        request_id=id_of_form("shutdown", fields), reason=fields.get("reason", "").strip()
    )
    known, name = control_log.of(now.mailbox).requests, presenters.party_name(agent.session_id, now.roster)
    if payload.request_id not in known:
        if any(one.is_open and one.flow == SHUTDOWN and one.answerer == agent.session_id for one in known.values()):
            return Unchanged(f"{name} was asked already, and has not answered yet.")
        now.requests.request(USER, payload, to=agent.session_id)
    return f"{name} is asked to end its work. It may refuse."


def change_state(now: Looking, fields: Params) -> str:
    """Freeze, thaw or retire an agent; retiring, which gives its mail away, must be said twice."""
    agent, event = _agent_of_form(now, fields), fields.get("event", "")
    if event not in ENDS:
        raise Malformed(f"unknown change: {event!r}", "use the buttons of the page")
    if event == "retire" and not fields.get("sure"):
        raise Malformed("retiring is not confirmed", "tick the box beside the button")
    state, told = ENDS[event]
    now.mailbox.end(agent.session_id, event, USER)
    name = presenters.party_name(agent.session_id, now.roster)
    return Unchanged(f"{name} is {state} already.") if agent.state == state else f"{name} {told}."


def wake_agent(now: Looking, fields: Params) -> str:
    """Write mail of high priority to an agent, which wakes its session where anything can."""
    agent = _agent_of_form(now, fields)
    draft = Draft(
        sender=USER,
        to=(agent.session_id,),
        content="Please look at your mail and your tasks, and go on.",
        priority="high",
        id=fields.get("message_id") or None,
    )
    return presenters.describe_sent(now.mailbox.send(draft, strict=True), now.mailbox, now.roster)


def hand_over_tasks(now: Looking, fields: Params) -> str:
    """Give all tasks that an agent holds to another one."""
    agent, word = _agent_of_form(now, fields), fields.get("to", "").strip()
    if not word:
        raise Malformed("nobody is named who takes over", "name an agent beside the button")
    taker = now.roster.find(word)
    held = [view for view in TaskViews(now.mailbox).tasks() if view.holder == agent.session_id]
    name, other = (presenters.party_name(one, now.roster) for one in (agent.session_id, taker.session_id))
    if not held:
        raise NotFound(f"{name} holds no task", "its page shows what it does")
    done, failed = [], []
    for view in held:
        title = f"“{presenters.one_line(view.task.title)}”"
        try:
            Tasking(now.mailbox).claim_task(USER, view.task.id, taker.session_id, seen=agent.session_id)
            done.append(title)
        except Refused as error:
            failed.append(presenters.end_sentence(f"{title} stays: {error.what}"))
    if not done:
        raise Refused(" ".join(failed), "the board shows what each task waits for")
    return " ".join([f"{other} has what {name} held: {', '.join(done)}.", *failed])


def rename_agent(now: Looking, fields: Params) -> str:
    agent, name = _agent_of_form(now, fields), fields.get("name", "").strip()
    if not name:
        raise Malformed("the name is missing", "write the agent's new name")
    named, decision = now.mailbox.register(
        Registration(session_id=agent.session_id, event="update", name=name), USER, even_away=True
    )
    called = presenters.party_name(named.session_id, now.roster)
    if not decision.events:
        return Unchanged(f"{agent.session_id} is called {called} already.")
    warnings = (presenters.end_sentence(presenters.one_line(one)) for one in decision.warnings)
    return " ".join([f"{agent.session_id} is called {called}.", *warnings])
