"""Requests as cards, with everything they ask.

Belongs here: the fields of each kind of request, and their labels. The card cuts nothing, because the person decides
by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from ..core.control import authority, lasting, transitions
from ..core.control import messages as m
from ..core.control.control_requests import ControlRequest
from ..core.records import USER
from ..core.roster import Roster
from . import call_words, calls, markup, presenters
from .call_words import CallWords
from .desk import Looking


def make_card(now: Looking, request: ControlRequest) -> dict[str, Any]:
    """Return an open request as a card.

    ``mine``: the person may decide it. ``given``: the tool's input as JSON; ``call``: the same as one reviews it.
    ``expires``: the instant (ms) after which no answer counts, or None. ``always``: the rules that an approval may add.
    ``proven``: its writer is; else it can only be denied."""
    payload, roster, clock = request.payload, now.roster, now.mailbox.now()
    expires = payload.expires if isinstance(payload, m.Ask) else None
    given = getattr(payload, "input", None)
    return {
        "id": request.id,
        "flow": request.flow,
        "asker": presenters.party_name(request.asker, roster) + ("" if request.proven else " (unverified)"),
        "asker_id": request.asker,
        "deciders": ", ".join(presenters.party_name(who, roster) for who in request.list_deciders(roster)),
        "mine": may_decide(request, clock, roster),
        "asked": request.asked,
        "waits": presenters.elapsed_time(request.asked, clock),
        "until": "" if expires is None else presenters.local_moment(expires, clock),
        "expires": expires,
        "saying": describe_request(request, roster),
        "given": "" if given is None else calls.pretty_json(given),
        "call": calls.parts_of_call(getattr(payload, "tool", ""), given) if isinstance(given, dict) else (),
        "parts": [(name, what) for name, what in _payload_fields(payload).items() if what],
        "reason": presenters.one_line(getattr(payload, "reason", "")),
        "always": [*map(presenters.one_line, lasting.offered(payload))],
        "proven": request.proven,
    }


def may_decide(request: ControlRequest, now: int, roster: Roster) -> bool:
    """Return whether the person may decide a request; a shutdown is its worker's alone."""
    decides = request.flow in (transitions.PLAN, transitions.PERMISSION, transitions.SANDBOX)
    return decides and authority.commands(USER, request.asker, now, roster)


def describe_request(request: ControlRequest, roster: Roster) -> CallWords:
    """Return what a request asks in a few words, as the end of a sentence about its asker."""
    answerer = presenters.party_name(request.answerer, roster) if request.answerer else ""
    return call_words.describe_payload(request.payload, answerer)


def tell_request(request: ControlRequest, roster: Roster) -> str:
    """Return who asks what, in a few words: ``Cleo edits limits.py +3 −3``."""
    return f"{presenters.party_name(request.asker, roster)} {describe_request(request, roster).text}"


def _payload_fields(payload: m.Payload) -> Mapping[str, Markup | str]:
    """Return a request's other fields by their labels, without the tool's input."""
    if isinstance(payload, m.PlanRequest):
        return {
            "Goal": markup.html_of(payload.goal),
            "Plan": markup.html_of(payload.content),
            "Steps": markup.html_of(
                "\n".join(f"{n}. {presenters.one_line(step)}" for n, step in enumerate(payload.steps, 1))
            ),
            "Risks": markup.html_of("\n".join(f"- {presenters.one_line(risk)}" for risk in payload.risks)),
            "Tools": presenters.one_line(", ".join(payload.tooling)),
            "File": presenters.one_line(payload.file),
        }
    if isinstance(payload, m.SandboxRequest):
        return {"Hosts": presenters.one_line(", ".join(payload.hosts))}
    if isinstance(payload, m.PermissionRequest) and payload.input is None:
        return {"Call": presenters.one_line(payload.arguments)}
    return {}
