"""The rights that a control message of the person's adds, in words: a rule, a host, a looser mode, an approval.

Belongs here: comparing a command's order with what holds now. ``cli.widening`` asks about it. In doubt it adds some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control.orders import find_workers, list_led
from ..control_plane.standing import find_standing
from ..core.address import ALL
from ..core.control import message_text, messages, summary
from ..core.records import USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..cli.options import App
    from ..control_plane.standing import Standing
    from ..core.control.control_requests import ControlRequest
    from ..core.control.messages import Payload
    from ..mailbox.open_mailbox import OpenMailbox


def of_answer(request: ControlRequest, approved: bool, said: Mapping[str, Any], now: int) -> str:
    """Return what an answer to a request widens."""
    mode, decision = said["mode"] or "", "approve" if approved else "deny"
    if (not approved and not mode) or not request.is_open or request.has_timed_out(now):
        return ""  # of one that is decided the command says so, and changes nothing
    always = ", and allow such calls always" if said.get("updates") else ""
    return f"{decision} {summary.whole(request.payload)} (of {request.asker}{mode and f', in mode {mode}'}{always})"


def of_order(app: App, order: Payload, to: Sequence[str]) -> str:
    """Return what a mode or rules widen; raise ``NotFound`` for a word that means no agent."""
    return _describe_widened(app.mailbox, order, find_workers(app.mailbox, to))


def of_text(app: App, content: str, to: Sequence[str]) -> str:
    """Return what a control message widens that somebody wrote."""
    return _describe_widened(app.mailbox, message_text.parse(content), to)


def _describe_widened(desk: OpenMailbox, payload: Payload | messages.Unknown, to: Sequence[str]) -> str:
    roster = desk.logs.read_roster()
    agents: list[str] = []
    for word in to:
        agent = roster.meant(word)
        agents += list_led(USER, roster) if word == ALL else [agent.session_id if agent is not None else word]
    told = (one for agent in agents for one in _of_one(payload, find_standing(desk, agent), agent))
    return "; ".join(dict.fromkeys(told))


def _of_one(payload: Payload | messages.Unknown, now: Standing, agent: str) -> Iterator[str]:
    if isinstance(payload, messages.ModeSet) and _is_looser(payload.mode, now.mode):
        yield f"mode {payload.mode} for {agent}, now {now.mode}"
    elif isinstance(payload, messages.PolicyUpdate):
        yield from (f"allow {rule} for {agent}" for rule in payload.allow if rule not in now.policy.allow)
        yield from (f"host {host} for {agent}" for host in payload.hosts if host not in now.policy.hosts)
        if not payload.adds:
            yield from (f"no longer deny {rule} for {agent}" for rule in now.policy.deny if rule not in payload.deny)
            yield from (f"any host for {agent}" for _ in now.policy.hosts[:1] if not payload.hosts)
    elif isinstance(payload, messages.Answer) and (payload.approved or getattr(payload, "mode", "") != ""):
        yield f"{summary.whole(payload)} (to {agent})"


def _is_looser(mode: str, now: str) -> bool:
    order = messages.STRICTNESS
    return mode != now and not (mode in order and now in order and order.index(mode) > order.index(now))
