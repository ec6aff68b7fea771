"""Control messages and requests in words: a line for a message, the command that answers it, a request's state.

Belongs here: the words. A message's content is other people's text, and goes through ``text`` like all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import codec, frame, instant
from ..text import clipped, neutral, typed
from . import lease_paths, message_text, watches
from . import messages as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..roster import Roster
    from .control_requests import ControlRequest

WIDTH = 600
"""Characters of a message that are shown beside others; ``show`` has the rest."""
PROGRAM = "agent-mailbox"
QUESTIONS = "AskUserQuestion"
"""The tool by which Claude Code's model asks its person."""
_QUESTION: dict[str, type] = {"question": str, "header": str, "multiSelect": bool, "options": list}


def describe_request(
    request: ControlRequest, roster: Roster, style: Callable[[str, str], str], *, already: bool = False
) -> str:
    """Return the state of a request, in a line or two; ``already``: it had it before this command."""
    by = f" by {frame.name_of(request.by, roster)}{request.doubt}" if request.by else ""
    at = f", {frame.when(request.decided)}: nothing changed" if already and request.decided is not None else ""
    state = f"{'already ' if already else ''}{request.state.replace('_', ' ')}"
    lines = [f"{style(neutral(request.id), 'id')}  {state}{by}{at}"]
    if request.answer is not None:
        lines.append(frame.BAR + line(request.answer))
    return "\n".join(lines) + "\n"


def line(payload: m.Payload | m.Unknown) -> str:
    """Return a message's content in one line, or its beginning."""
    return clipped(whole(payload), WIDTH)


def whole(payload: m.Payload | m.Unknown) -> str:
    """Return all of a message's content in one line."""
    if isinstance(payload, m.Unknown):
        return neutral(f"not understood ({payload.reason}): {payload.raw}")
    said = [*filter(None, _said(payload))] or [_ALONE.get(type(payload), "without a text")]
    return neutral(f"{payload.kind} {payload.request_id}".rstrip() + f": {'; '.join(said)}")


_ALONE: dict[type[m.Payload], str] = {
    m.PolicyUpdate: "removes all rules and hosts",
    m.IdleNotification: "its turn ended",
    m.TaskCompleted: "done",
    m.TaskClaim: "claimed",
    m.TaskDropped: "given back",
    m.TaskCancelled: "cancelled",
    m.ShutdownRequest: "asks to end the work",
    m.ShutdownApproved: "agrees to end the work",
    m.ShutdownRejected: "goes on working",
    m.LeaseRelease: "the lease is over",
    m.WatchEnd: "the watch is over",
}
"""Texts of messages that carry none."""


def _said(p: m.Payload) -> tuple[str, ...]:
    if isinstance(p, m.PermissionRequest):
        asked = _questions(p.input) if p.tool == QUESTIONS else ""
        what = asked or (codec.dumps(p.input) if p.input is not None else p.arguments)
        return f"{p.tool} {what}".rstrip(), p.reason
    if isinstance(p, m.PlanRequest):
        steps = " / ".join(p.steps)
        return p.goal, p.content, steps, _listed("risks", p.risks), _listed("tools", p.tooling), p.file
    if isinstance(p, m.SandboxRequest):
        return f"{p.capability} {', '.join(p.hosts)}".strip(), p.reason
    if isinstance(p, m.Answer):
        return _answer(p)
    if isinstance(p, m.TaskAssignment):
        plan, lists = "plan required" if p.plan_required else "", (_listed("after", p.after), _listed("with", p.hands))
        return p.title, p.instructions, p.context, plan, *lists
    if isinstance(p, m.TaskClaim):
        return (f"claimed for {p.holder}" if p.holder else "",)
    if isinstance(p, m.TaskProgress):
        return p.phase, p.message
    if isinstance(p, m.TaskCompleted):
        return p.title, p.status, p.summary, _listed("artifacts", p.artifacts), _listed("errors", p.errors)
    if isinstance(p, m.IdleNotification):
        return p.reason, p.summary, f"{p.task} {p.task_status}".strip(), p.failure
    if isinstance(p, m.CallChanged):
        ran = f"{p.tool} ran {p.ran!r} in the place of {p.arguments!r}"
        return f"{ran}: the hook {p.hook!r} changed it after the rules judged it", p.reason
    if isinstance(p, m.PolicyUpdate):
        rules = _listed("allow", p.allow), _listed("deny", p.deny), _listed("hosts", p.hosts)
        return *rules, "beside the earlier rules" if p.adds else ""
    if isinstance(p, m.ModeSet):
        return (p.mode,)
    if isinstance(p, m.LeasePaths):
        return lease_paths.shown(p.project, p.paths), _until(p.expires), p.note
    if isinstance(p, m.WatchAgent):
        return f"{p.name or p.agent} {'/'.join(p.until)} {p.task}".rstrip(), _until(p.expires)
    if isinstance(p, m.WatchReport):
        return f"{p.name or p.agent} {watches.SAID.get(p.event, p.event)} {p.task}".rstrip(), p.reason
    if isinstance(p, m.ShutdownRejected):
        return "timed out" if p.cause else "", p.reason
    return (getattr(p, "reason", ""),)


def _questions(given: Any) -> str:
    """Return the questions of a call, each with its choices; empty for an input that has anything else."""
    asked = given.get("questions", []) if _has_only(given, {"questions": list}) else []
    if not all(_has_only(one, _QUESTION) and all(map(_is_choice, one.get("options", ()))) for one in asked):
        return ""
    return "; ".join(map(_question, asked))


def _question(one: dict[str, Any]) -> str:
    words = ": ".join(filter(None, (one.get("header"), one.get("question"))))
    choices = " / ".join(": ".join(choice.values()) for choice in one.get("options", ()))
    which = "any of" if one.get("multiSelect") else "one of"
    return f"{words} ({which}: {choices})" if choices else words


def _is_choice(given: Any) -> bool:
    return _has_only(given, {"label": str, "description": str, "preview": str})


def _has_only(given: Any, fields: dict[str, type]) -> bool:
    """Return whether it is an object of some of these fields, each of its type."""
    return isinstance(given, dict) and all(type(value) is fields.get(key) for key, value in given.items())


def _answer(p: m.Answer) -> tuple[str, ...]:
    said = "timed out" if p.cause == m.TIMEOUT else "approved" if p.approved else "denied"
    mode, changed, hosts = getattr(p, "mode", ""), getattr(p, "updated_input", None), getattr(p, "hosts", ())
    with_input = f"with the input {codec.dumps(changed)}" if changed is not None else ""
    updates = getattr(p, "updates", ())
    rules = _listed("always allows", message_text.added_rules(updates)[0]) if updates else ""
    allowed = _listed("hosts", hosts) if hosts else ""
    scope = getattr(p, "scope", "")
    lasts = f"scope {scope}" if hosts or scope == m.SCOPES[1] else ""
    return said, p.notes, f"mode {mode}" if mode else "", rules, with_input, allowed, lasts


def _until(expires: int | None) -> str:
    return "" if expires is None else f"until {instant.text(expires)[:16]}Z"


def _listed(what: str, items: tuple[str, ...]) -> str:
    return f"{what} {', '.join(items)}" if items else ""


def question(payload: m.Payload | m.Unknown, program: str = PROGRAM, options: str = "", *, proven: bool = True) -> str:
    """Return the command that answers a request, with these options; empty for other messages. One that nothing
    proves (``proven``) can only be denied."""
    if not isinstance(payload, m.Ask):
        return ""
    which = typed(payload.request_id)
    those = which + options
    if not proven:
        return f'{program} deny {those} --reason "…"'
    if isinstance(payload, m.ShutdownRequest):
        return f'{program} control answer {which} approve{options} (or deny{options} --reason "…")'
    return f'{program} approve {those} (or deny {those} --reason "…")'


def unshown(payload: m.Payload | m.Unknown, show: str) -> list[str]:
    """Return the line that says how to read a request whose beginning alone is shown: by the command ``show``. Empty
    for any other message."""
    is_cut = isinstance(payload, m.Ask) and len(whole(payload)) > WIDTH
    return [f"Only its beginning is shown. Read all of it before you decide: {show}"] if is_cut else []
