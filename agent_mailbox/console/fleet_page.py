"""The fleet: what each agent waits for, whom, or what it works on; as columns, as a tree by lead, and as a table.

Belongs here: the column of an agent, and why; the content of a row, and the orders; the filters of all three.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..control.task_views import TaskView, TaskViews
from ..core.frame import GONE, shown_reason, shown_state
from ..core.instant import HOUR, MINUTE
from ..core.records import USER, Record
from ..core.roster import ALIVE, DEAD, FROZEN, Agent
from . import activity, cards, inbox_page, presenters
from .desk import Looking, Params

YOU, ANOTHER, WORKS, RESTS = "you", "another", "works", "rests"
TITLES = {YOU: "Waits for you", ANOTHER: "Waits for another", WORKS: "Works", RESTS: "Idle, silent, gone"}
BUSY = 10 * MINUTE
"""Milliseconds since it was seen in which an agent counts as working."""
MOST = 200
"""Agents of the page; the rest is only counted."""
PATIENCE = 0.02
"""Seconds in which conversations are read for a page; who comes later is shown without its step."""
MOST_ROWS = 400
"""Rows of the table; the rest is only counted."""
FILTERS = ("tag", "lead", "name")
"""The parameters by which the fleet's pages are narrowed."""
SILENT = "silent"
"""The state of a living agent that has not been seen for ``SILENT_AFTER`` ms."""
SILENT_AFTER = HOUR
SIGNS = {ALIVE: "●", SILENT: "◔", FROZEN: "◐", DEAD: "○", GONE: "◌"}


class Reason(Record):
    """Why an agent waits: its column, in words, since when (ms), and the page that ends it."""

    column: str
    what: str
    detail: str
    href: str = ""
    is_urgent: bool = False


def view_fleet(now: Looking, params: Params) -> dict[str, Any]:
    """Return all agents that are not dead, each in its column."""
    living = presenters.living_agents(now.roster)
    chosen = choose_agents(now, living, params)
    found = list_cards(now, chosen, MOST)
    return {
        **list_filters(now, living, params),
        "title": "Fleet",
        "columns": [(key, title, [one for one in found if one["column"] == key]) for key, title in TITLES.items()],
        "tree": arrange_tree(found) if params.get("as") == "tree" else None,
        "more": max(len(chosen) - MOST, 0),
        "words": presenters.agent_words(living),
    }


def list_cards(now: Looking, agents: Iterable[Agent], most: int) -> list[dict[str, Any]]:
    """Return agents as cards, by name; those whose deadline is near come first. Beyond ``most``, those who wait for
    nobody are left out first."""
    tasks = TaskViews(now.mailbox).tasks()
    reasons = find_reasons(now, tasks)
    held = {view.holder: presenters.one_line(view.task.title) for view in tasks if view.holder}
    end = time.monotonic() + PATIENCE
    shown = sorted(agents, key=lambda agent: agent.session_id not in reasons)[:most]
    made = [_make_card(now, agent, reasons.get(agent.session_id), held, end) for agent in shown]
    return sorted(made, key=lambda one: (not one["is_urgent"], one["name"].casefold()))


def _make_card(
    now: Looking, agent: Agent, reason: Reason | None, held: Mapping[str, str], end: float
) -> dict[str, Any]:
    """Return an agent as a card: its column, what it waits for or does, since when, and a page that says more."""
    me, line, state = agent.session_id, now.survey.line_of(agent), state_of(now, agent)
    found = reason or _tell_work(now, agent, state, line.seen, held.get(me, ""), time.monotonic() < end)
    name = presenters.party_name(me, now.roster)
    return {
        "id": me,
        "name": name,
        "face": presenters.face_of(me, name),
        "roles": ", ".join(role.removeprefix("role:") for role in agent.roles[:2]),
        "state": state,
        "sign": SIGNS[state],
        "column": found.column,
        "what": found.what,
        "href": found.href,
        "detail": found.detail if state == ALIVE or found.column == RESTS else f"{found.detail} · {state}",
        "is_urgent": found.is_urgent,
        "unread": line.unread,
        "owes": len(line.owed),
        "lead": agent.lead or "",
        "is_frozen": agent.state != ALIVE,
    }


def _tell_work(now: Looking, agent: Agent, state: str, seen: int, task: str, may_read: bool) -> Reason:
    ago = f"seen {presenters.elapsed_time(seen, now.mailbox.now())} ago"
    if state != ALIVE:
        return Reason(RESTS, state, f"{task} · {ago}" if task else ago)
    step = activity.present_step(now, agent.session_id) if may_read else None
    said = step["said"] if step is not None else ""
    if task or now.mailbox.now() - seen < BUSY:
        href = presenters.page_link("/transcript", id=agent.session_id) if step is not None else ""
        return Reason(WORKS, said or task or "works", task if said and task else ago, href)
    return Reason(RESTS, "idle", ago)


def find_reasons(now: Looking, tasks: Sequence[TaskView]) -> dict[str, Reason]:
    """Return why each agent waits, for the first that counts: a decision before an answer, the person before others."""
    roster, clock = now.roster, now.mailbox.now()
    found: dict[str, Reason] = {}
    asked = [(request, request.list_deciders(now.roster)) for request in now.open_requests() if request.proven]
    for request, who in sorted(inbox_page.by_deadline(asked), key=lambda one: USER not in one[1]):
        expires = inbox_page.expires_at(request)
        left = f"{presenters.time_left(expires - clock)} left" if expires is not None else "no limit"
        since = presenters.elapsed_time(request.asked, clock)
        names, mine = ", ".join(presenters.party_name(one, roster) for one in who), USER in who
        told = "" if mine else tell_states(now, who)
        found.setdefault(request.asker, Reason(
            YOU if mine else ANOTHER, cards.describe_request(request, roster).text,
            left if mine else f"{names} decides, since {since}{told}",
            presenters.page_link("/", open=request.message_id),
            bool(told) or (expires is not None and expires - clock < inbox_page.SOON),
        ))  # fmt: skip
    letters = [item.message for item in now.unread_letters() if item.message.ack]
    for message in (*letters, *now.survey.owed):
        since = presenters.elapsed_time(message.timestamp, clock)
        reason = Reason(YOU, f"asks: {presenters.title_of(message)}", f"since {since}",
                        presenters.page_link("/", open=message.id))  # fmt: skip
        found.setdefault(message.sender, reason)
    for owing, line in now.survey.lines.items():
        for message in line.owed[:20]:
            name, since = presenters.party_name(owing, roster), presenters.elapsed_time(message.timestamp, clock)
            told = tell_states(now, [owing])
            reason = Reason(ANOTHER, f"asked {name}: {presenters.title_of(message)}", f"no answer since {since}{told}",
                            presenters.page_link("/archive", open=message.id), bool(told))  # fmt: skip
            if message.sender != USER and message.sender != owing:
                found.setdefault(message.sender, reason)
    return {**_find_blocked(now, tasks), **found}


def tell_states(now: Looking, waited_for: Iterable[str]) -> str:
    """Return which of those whom one waits for are not alive, as the end of a sentence: ``; Ada is silent``."""
    known = [agent for agent in map(now.roster.get, waited_for) if agent is not None and agent.session_id != USER]
    names = [
        f"{presenters.party_name(agent.session_id, now.roster)} is {state}"
        for agent in known
        if (state := state_of(now, agent)) != ALIVE
    ]
    return f"; {', '.join(names)}" if names else ""


def _find_blocked(now: Looking, tasks: Sequence[TaskView]) -> dict[str, Reason]:
    """Return the agents whose task waits for another one, or is blocked."""
    views = {view.task.id: view for view in tasks}
    found = {}
    for view in views.values():
        if not view.holder or not (view.waits_for or view.task.phase == "blocked"):
            continue
        first = views.get(view.waits_for[0]) if view.waits_for else None
        whom = presenters.party_name(first.holder, now.roster) if first is not None and first.holder else ""
        since = presenters.elapsed_time(view.task.asked, now.mailbox.now())
        other = whom or (first.task.title if first is not None else "")
        detail = f"waits for {other}, since {since}" if other else f"since {since}"
        found[view.holder] = Reason(ANOTHER, f"blocked: {presenters.one_line(view.task.title)}",
                                    presenters.one_line(detail), "/tasks")  # fmt: skip
    return found


def arrange_tree(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cards below their leads, each with its ``depth``: how many leads are above it. A circle of leads
    begins at its first member."""
    by_lead: dict[str, list[dict[str, Any]]] = {}
    known = {one["id"]: one for one in found}
    for one in known.values():
        by_lead.setdefault(one["lead"] if one["lead"] in known else "", []).append(one)
    placed: dict[str, dict[str, Any]] = {}

    def place(one: dict[str, Any], depth: int) -> None:
        if one["id"] not in placed:
            placed[one["id"]] = {**one, "depth": min(depth, 6)}
            for below in by_lead.get(one["id"], ()):
                place(below, depth + 1)

    for one in (*by_lead.get("", ()), *known.values()):
        place(one, 0)
    return [*placed.values()]


def list_agents(now: Looking, params: Params) -> dict[str, Any]:
    """Return all agents, living ones first, by name; dead ones on request. ``by`` names another order."""
    roster = now.roster
    order = {ALIVE: 0, FROZEN: 1, DEAD: 2}
    everyone = list(roster.agents.values())
    living = [agent for agent in everyone if agent.state != DEAD]
    listed = choose_agents(now, everyone if params.get("dead") else living, params)
    called = {agent.session_id: presenters.party_name(agent.session_id, roster).casefold() for agent in listed}
    listed.sort(key=lambda agent: (order[agent.state], called[agent.session_id]))
    proven = (one for one in now.open_requests() if one.proven)
    open_of = Counter(who for one in proven for who in (one.asker, *one.list_deciders(roster)))
    by, line_of = params.get("by", ""), now.survey.line_of
    orders: dict[str, Callable[[Agent], Any]] = {
        "name": lambda agent: called[agent.session_id],
        "seen": lambda agent: -line_of(agent).seen,
        "unread": lambda agent: -line_of(agent).unread,
        "owes": lambda agent: -len(line_of(agent).owed),
        "requests": lambda agent: -open_of[agent.session_id],
    }
    if by in orders:
        listed.sort(key=orders[by])
    return {
        **list_filters(now, living, params),
        "title": "Agents",
        "agents": [{**agent_row(now, a), "open": open_of[a.session_id]} for a in listed[:MOST_ROWS]],
        "by": by if by in orders else "",
        "more": max(len(listed) - MOST_ROWS, 0),
        "dead": len(everyone) - len(living),
        "shows_dead": bool(params.get("dead")),
    }


def choose_agents(now: Looking, agents: Iterable[Agent], params: Params) -> list[Agent]:
    """Return the agents that meet the filters of a page."""
    tag, lead, name = (params.get(key, "").strip() for key in FILTERS)
    roster, part = now.roster, name.casefold()
    return [
        agent
        for agent in agents
        if (not tag or tag in agent.tags)
        and (not lead or lead == (agent.lead or USER))
        and (not part or part in presenters.party_name(agent.session_id, roster).casefold())
    ]


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
