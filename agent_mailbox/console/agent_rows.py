"""All agents as rows of a table, in an order of choice.

Belongs here: the content of a row, and the orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..core.frame import GONE, shown_reason, shown_state
from ..core.instant import HOUR
from ..core.records import USER
from ..core.roster import ALIVE, DEAD, FROZEN, Agent
from . import presenters
from .desk import Looking, Params

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


def list_agents(now: Looking, params: Params) -> dict[str, Any]:
    """Return all agents, living ones first, dead ones on request."""
    roster = now.roster
    order = {ALIVE: 0, FROZEN: 1, DEAD: 2}
    called = {session_id: presenters.party_name(session_id, roster).casefold() for session_id in roster.agents}
    everyone = sorted(roster.agents.values(), key=lambda a: (order[a.state], called[a.session_id]))
    dead = [agent for agent in everyone if agent.state == DEAD]
    living = [agent for agent in everyone if agent.state != DEAD]
    listed = [agent for agent in (everyone if params.get("dead") else living) if is_wanted(agent, now, params)]
    by = params.get("by", "")
    requests = now.open_requests()
    open_of = Counter(who for one in requests for who in (one.asker, *one.list_deciders(roster)))
    return {
        **list_filters(now, living, params),
        "title": "Agents",
        "agents": sorted(
            [{**agent_row(now, a), "open": open_of[a.session_id]} for a in listed[:MOST]],
            key=SORTED.get(by, lambda _: 0),
        ),
        "by": by if by in SORTED else "",
        "more": max(len(listed) - MOST, 0),
        "dead": len(dead),
        "shows_dead": bool(params.get("dead")),
    }


def is_wanted(agent: Agent, now: Looking, params: Params) -> bool:
    """Return whether an agent meets the filters of a page."""
    tag, lead, name = (params.get(key, "").strip() for key in FILTERS)
    called = presenters.party_name(agent.session_id, now.roster).casefold()
    return (not tag or tag in agent.tags) and (not lead or lead == (agent.lead or USER)) and name.casefold() in called


def list_filters(now: Looking, living: Iterable[Agent], params: Params) -> dict[str, Any]:
    """Return what can be chosen by the filters, and what is chosen."""
    agents = list(living)
    tags, leads = {tag for agent in agents for tag in agent.tags}, {agent.lead or USER for agent in agents}
    return {
        "tags": sorted((presenters.channel_label(tag), tag) for tag in tags),
        "leads": sorted((presenters.party_name(lead, now.roster), lead) for lead in leads),
        "chosen_filters": {key: params[key] for key in FILTERS if params.get(key)},
    }


def state_of(now: Looking, agent: Agent) -> str:
    """Return an agent's state as a page shows it: alive is only who was seen of late."""
    state, seen = shown_state(agent, now.gone_agents()), max(agent.registered, now.survey.line_of(agent).seen)
    return SILENT if state == ALIVE and now.mailbox.now() - seen >= SILENT_AFTER else state


def agent_row(now: Looking, agent: Agent) -> dict[str, Any]:
    """Return an agent as a row: its state, its addresses, its figures."""
    roster, state, line = now.roster, state_of(now, agent), now.survey.line_of(agent)
    channels = [(tag, (presenters.channel_label(tag), presenters.page_link("/channel", to=tag))) for tag in agent.tags]
    return {
        "id": agent.session_id,
        "name": presenters.party_name(agent.session_id, roster),
        "state": state,
        "sign": SIGNS[state],
        "roles": [channel for tag, channel in channels if tag in agent.roles],
        "tags": [channel for tag, channel in channels if tag not in agent.roles],
        "seen": presenters.elapsed_time(line.seen, now.mailbox.now()),
        "seen_at": line.seen,
        "unread": line.unread,
        "owes": len(line.owed),
        "lead": presenters.party_name(agent.lead, roster) if agent.lead else "",
        "client": agent.client or "",
        "reason": presenters.one_line(shown_reason(agent, now.gone_agents())),
    }
