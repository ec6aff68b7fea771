"""All agents as rows of a table, in an order of choice.

Belongs here: the content of a row, and the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ..core.frame import GONE, shown_reason, shown_state
from ..core.instant import HOUR
from ..core.records import USER
from ..core.roster import ALIVE, DEAD, FROZEN, Agent
from . import presenters
from .desk import Looking
from .survey import Survey

MOST = 400
"""Rows of the table; the rest is only counted."""
FILTERS = ("tag", "lead", "name")
"""The parameters by which the fleet's pages are narrowed."""
SILENT = "silent"
"""The state of a living agent that has not been seen for ``SILENT_AFTER`` ms."""
SILENT_AFTER = HOUR
SIGNS = {ALIVE: "●", SILENT: "◔", FROZEN: "◐", DEAD: "○", GONE: "◌"}
SORTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda one: one["name"].casefold(),
    "seen": lambda one: -one["seen_at"],
    "unread": lambda one: -one["unread"],
    "owes": lambda one: -one["owes"],
    "requests": lambda one: -one["open"],
}
"""The orders of the agents, by their parameter; without one, the living first, by name."""


def list_agents(now: Looking, survey: Survey, params: Mapping[str, str]) -> dict[str, Any]:
    """Return all agents, living ones first, dead ones on request."""
    roster, gone = now.roster, now.gone_agents()
    order = {ALIVE: 0, FROZEN: 1, DEAD: 2}
    called = {session_id: presenters.party_name(session_id, roster).casefold() for session_id in roster.agents}
    everyone = sorted(roster.agents.values(), key=lambda a: (order[a.state], called[a.session_id]))
    dead = [agent for agent in everyone if agent.state == DEAD]
    living = [agent for agent in everyone if agent.state != DEAD]
    listed = [agent for agent in (everyone if params.get("dead") else living) if is_wanted(agent, now, params)]
    by = params.get("by", "")
    open_of: dict[str, int] = {}
    for request in now.open_requests():
        for who in (request.asker, *request.list_deciders(now.roster)):
            open_of[who] = open_of.get(who, 0) + 1
    return {
        **list_filters(now, living, params),
        "title": "Agents",
        "agents": sorted(
            [agent_row(survey, a.session_id, now, gone, open_of) for a in listed[:MOST]],
            key=SORTED.get(by, lambda _: 0),
        ),
        "by": by if by in SORTED else "",
        "more": max(len(listed) - MOST, 0),
        "dead": len(dead),
        "shows_dead": bool(params.get("dead")),
    }


def is_wanted(agent: Agent, now: Looking, params: Mapping[str, str]) -> bool:
    """Return whether an agent meets the filters of a page."""
    tag, lead, name = (params.get(key, "").strip() for key in FILTERS)
    called = presenters.party_name(agent.session_id, now.roster).casefold()
    return (not tag or tag in agent.tags) and (not lead or lead == (agent.lead or USER)) and name.casefold() in called


def list_filters(now: Looking, living: Iterable[Agent], params: Mapping[str, str]) -> dict[str, Any]:
    """Return what can be chosen by the filters, and what is chosen."""
    agents = list(living)
    tags, leads = {tag for agent in agents for tag in agent.tags}, {agent.lead or USER for agent in agents}
    return {
        "tags": sorted((presenters.channel_label(tag), tag) for tag in tags),
        "leads": sorted((presenters.party_name(lead, now.roster), lead) for lead in leads),
        "chosen_filters": {key: params[key] for key in FILTERS if params.get(key)},
    }


def state_of(agent: Agent, survey: Survey, gone: Collection[str], now: int) -> str:
    """Return an agent's state as a page shows it: alive is only who was seen of late."""
    state, line = shown_state(agent, gone), survey.lines.get(agent.session_id)
    seen = max(agent.registered, line.seen if line is not None else 0)
    return SILENT if state == ALIVE and now - seen >= SILENT_AFTER else state


def agent_row(
    survey: Survey, session_id: str, now: Looking, gone: Collection[str], open_of: Mapping[str, int]
) -> dict[str, Any]:
    """Return an agent as a row: its state, its addresses, its figures."""
    roster, clock = now.roster, now.mailbox.now()
    agent = roster.find(session_id)
    state = state_of(agent, survey, gone, clock)
    line = survey.lines.get(agent.session_id)
    seen = line.seen if line is not None else agent.registered
    return {
        "id": agent.session_id,
        "name": presenters.party_name(agent.session_id, roster),
        "state": state,
        "sign": SIGNS[state],
        "roles": [(presenters.channel_label(tag), presenters.page_link("/channel", to=tag)) for tag in agent.roles],
        "tags": [
            (presenters.channel_label(tag), presenters.page_link("/channel", to=tag))
            for tag in agent.tags
            if tag not in agent.roles
        ],
        "seen": presenters.elapsed_time(seen, clock),
        "seen_at": seen,
        "seen_iso": presenters.iso_instant(seen),
        "unread": line.unread if line is not None else 0,
        "owes": len(line.owed) if line is not None else 0,
        "open": open_of.get(agent.session_id, 0),
        "lead": presenters.party_name(agent.lead, roster) if agent.lead else "",
        "client": agent.client or "",
        "reason": presenters.one_line(shown_reason(agent, gone)),
    }
