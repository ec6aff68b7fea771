"""What an agent is under: its mode, its policy, its lead; and if that keeps it from anything.

Belongs here: the fold's answers for one agent, together. How they come about is ``core.control.standing_orders``.
"""

from __future__ import annotations

from ..core.control import authority
from ..core.records import Record
from ..core.roster import DEAD
from ..permissions import policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.control.standing_orders import StandingOrders
    from ..core.control.state import Plane
    from ..core.roster import Agent


class Standing(Record):
    """What an agent is under: its mode, its policy, whether it waits for a plan's approval, whether it agreed to end;
    who decides for it."""

    session_id: str
    mode: str
    policy: StandingOrders
    waits_for_plan: bool
    is_shut_down: bool
    lead: str


def of(now: Plane, session_id: str) -> Standing:
    """What the agent is under, by the fold."""
    return Standing(
        session_id,
        now.mode(session_id),
        now.policy(session_id),
        now.waits_for_plan(session_id),
        now.is_shut_down(session_id),
        authority.lead_of(session_id, now.roster),
    )


def binds(standing: Standing, agent: Agent | None) -> bool:
    """Is there anything that may keep the agent from using a tool?"""
    led = agent is not None and agent.lead is not None
    return led or is_over(standing, agent) or policy_of(standing).binds


def withholds(standing: Standing) -> bool:
    """Is there anything in it that keeps the agent from something?"""
    mode = "default" if standing.mode == "acceptEdits" else standing.mode
    return policy_of(standing).replace(mode=mode, allow=()).binds


def is_over(standing: Standing, agent: Agent | None) -> bool:
    """Did the agent agree to end, and was not begun anew since?"""
    return standing.is_shut_down and agent is not None and agent.state == DEAD


def policy_of(standing: Standing) -> policy.Policy:
    """All that the agent's calls are judged by."""
    given = standing.policy
    return policy.Policy(
        mode=standing.mode,
        allow=given.allow,
        deny=given.deny,
        hosts=given.hosts or None,
        plan_required=standing.waits_for_plan,
    )
