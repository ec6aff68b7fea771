"""An agent's standing: its mode, its policy, its lead; and whether that keeps it from anything.

Belongs here: the fold's answers for one agent, together. ``core.control.standing_orders`` derives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.control import authority
from ..core.records import Record
from ..core.roster import DEAD
from ..permissions import policy
from . import control_log

if TYPE_CHECKING:
    from ..core.control.standing_orders import StandingOrders
    from ..core.control.state import ControlState
    from ..core.roster import Agent
    from ..mailbox.open_mailbox import OpenMailbox


class Standing(Record):
    """An agent's mode and policy, whether it waits for a plan's approval or agreed to end, and who decides for it."""

    session_id: str
    mode: str
    policy: StandingOrders
    waits_for_plan: bool
    is_shut_down: bool
    lead: str


def of(now: ControlState, session_id: str) -> Standing:
    """Return the agent's standing by the fold."""
    return Standing(
        session_id,
        now.mode(session_id),
        now.policy(session_id),
        now.waits_for_plan(session_id),
        now.is_shut_down(session_id),
        authority.lead_of(session_id, now.roster),
    )


def find_standing(desk: OpenMailbox, session_id: str) -> Standing:
    """Return the agent's standing at this moment."""
    return of(control_log.of_agents(desk, [session_id]), session_id)


def binds(standing: Standing, agent: Agent | None) -> bool:
    """Return whether anything may keep the agent from using a tool."""
    led = agent is not None and agent.lead is not None
    return led or is_over(standing, agent) or policy_of(standing).binds


def withholds(standing: Standing) -> bool:
    """Return whether the standing keeps the agent from anything."""
    mode = "default" if standing.mode == "acceptEdits" else standing.mode
    return policy_of(standing).replace(mode=mode, allow=()).binds


def is_over(standing: Standing, agent: Agent | None) -> bool:
    """Return whether the agent agreed to end and did not begin again since."""
    return standing.is_shut_down and agent is not None and agent.state == DEAD


def policy_of(standing: Standing) -> policy.Policy:
    """Return the policy by which the agent's calls are judged."""
    given = standing.policy
    return policy.Policy(
        mode=standing.mode,
        allow=given.allow,
        deny=given.deny,
        hosts=given.hosts or None,
        plan_required=standing.waits_for_plan,
    )
