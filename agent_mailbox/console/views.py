"""The content of each page; reading it changes nothing.

Belongs here: from a path and its parameters to a template's context. Every page works without script; the parameter
``open`` of any page names the message whose details it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control_plane.standing import find_standing
from ..core import instant
from ..core.control.messages import MODES
from ..core.records import USER
from ..core.roster import DEAD, Agent
from ..core.text import visible
from ..errors import MailboxError, NotFound
from . import (
    activity,
    cards,
    channel_page,
    charts,
    decided_requests,
    fleet_page,
    inbox_page,
    mail_lists,
    note_board,
    presenters,
    rail,
    task_board,
    topics,
    unread_mail,
)
from .desk import Looking, Params

View = Callable[[Looking, Params], dict[str, Any]]

MOST = 200
"""Entries of a list without pages; the rest is only counted."""
HOURS = (6, 24, 72, 168)
MOST_TIMED = 500
"""The newest messages whose delivery times and costs a timeline shows: a tenth of a second of work."""


# -- each page --------------------------------------------------------------------------------------------------------


def view_agent(now: Looking, params: Params) -> dict[str, Any]:
    """Return one agent: its state, requests, obligations and mail."""
    roster = now.roster
    agent = roster.find(params.get("id", ""))
    session_id = agent.session_id
    if session_id == USER:
        return {"title": "You", "who": None, **mail_lists.list_mail(now, "/agent", {**params, "id": USER})}
    one = fleet_page.agent_row(now, agent)
    standing = find_standing(now.mailbox, session_id)
    requests = [r for r in now.open_requests() if session_id in (r.asker, *r.list_deciders(now.roster))]
    return {
        "title": one["name"],
        "who": one,
        "doing": activity.present_step(now, session_id),
        "standing": standing,
        "modes": MODES,
        "lead": presenters.party_name(standing.lead, roster),
        "cards": [cards.make_card(now, request) for request in requests],
        "owed": [(m.id, presenters.title_of(m)) for m in now.survey.line_of(agent).owed],
        **mail_lists.list_mail(now, "/agent", {**params, "id": session_id}),
    }


def channel_list(now: Looking, *_: object) -> dict[str, Any]:
    """Return the channels, those with new mail before others: the new mail in each, and its last message. The rest
    of many are named alone."""
    channels, clock = rail.choose_channels(now, MOST)[0], now.mailbox.now()
    addresses = [channel.address for channel in channels]
    new, last = now.unread.count_new(addresses), now.queries.latest(addresses, clock, topics.EACH, 1)
    listed = []
    for channel in channels:
        newest = next(iter(last.get(channel.address, ())), None)
        said = None
        if newest is not None:
            moment = presenters.local_moment(newest.timestamp, clock)
            who = presenters.party_name(newest.sender, now.roster)
            said = {"at": newest.timestamp, "moment": moment, "who": who, "topic": presenters.one_line(newest.topic)}
        listed.append((channel, new.get(channel.address, 0), said))
    shown = {*addresses}
    others = [one for one in presenters.list_channels(now.roster) if one.address not in shown]
    return {"title": "Channels", "channels": listed, "others": others}


def view_channel(now: Looking, params: Params) -> dict[str, Any]:
    """Return the mail of an address, its columns, and a form to write there."""
    columns, rows = channel_page.describe_columns(now, params), mail_lists.list_mail(now, "/channel", params)
    topic = columns["topic"]
    return {
        "title": columns["label"],
        "subject": topic.title if topic is not None and params.get("topic") != "-" else "",
        "begins": bool(params.get("new")),
        "writes_to": columns["address"],
        **columns,
        **rows,
        "first_new": next((row["id"] for row in rows["rows"] if row["id"] in columns["new_ids"]), None),
    }


def view_direct(now: Looking, params: Params) -> dict[str, Any]:
    """Return the person's direct mail with an agent."""
    roster = now.roster
    who = roster.find(params.get("with", ""))
    rows = mail_lists.list_mail(now, "/direct", {**params, "with": who.session_id})
    asked = next((row for row in reversed(rows["rows"]) if row["asks"] and not row["is_person"]), None)
    state = fleet_page.state_of(now, who)
    letters = unread_mail.direct_letters(now.unread_letters())
    unread = [m.id for m in letters if who.session_id in roster.heirs(m.sender)]
    return {
        **rows,
        **rail.marks_of(now, f"@{who.session_id}"),
        "title": presenters.party_name(who.session_id, roster),
        "who": who,
        "state": state,
        "sign": fleet_page.SIGNS[state],
        "question": asked,
        "unread": unread,
        "first_new": next((row["id"] for row in rows["rows"] if row["id"] in unread), None),
        "writes_to": None if who.state == DEAD and not roster.heirs(who.session_id) else who.session_id,
    }


def view_new(now: Looking, params: Params) -> dict[str, Any]:
    """Return a form to write to anyone, with the addresses there are."""
    roster = now.roster
    living = presenters.living_agents(roster)
    agents = [(_address_word(a), presenters.party_name(a.session_id, roster)) for a in living]
    channels = [(c.address, f"{c.label}, {c.members} {c.kind}") for c in presenters.list_channels(roster)]
    return {
        "title": "New message",
        "to": params.get("to", ""),
        "addresses": [*sorted(agents, key=lambda pair: pair[1].casefold())[:MOST], *channels[:MOST]],
    }


def _address_word(agent: Agent) -> str:
    """Return the word by which one writes to an agent in a list with commas."""
    return agent.session_id if agent.name is None or "," in agent.name else agent.name


def view_archive(now: Looking, params: Params) -> dict[str, Any]:
    """Return all mail, archived mail included."""
    hides = params.get("control") == "off"
    other = presenters.page_link("/archive", control="" if hides else "off")
    return {
        "title": "All mail",
        "hides_control": hides,
        "other": other,
        **mail_lists.list_mail(now, "/archive", params),
    }


def view_raw(now: Looking, params: Params) -> dict[str, Any]:
    """Return the line of a message as it is in its log."""
    message = now.queries.found(params.get("id", "")).message
    line = now.queries.stored_line(message.id).decode("utf-8", "replace")
    back = presenters.page_link("/archive", open=message.id)
    return {"title": "The line of a message", "line": visible(line), "size": len(line), "back": back}


def view_search(now: Looking, params: Params) -> dict[str, Any]:
    """Return mail by words, address and time."""
    asked = any(params.get(name, "").strip() for name in ("q", "with", "since", "until"))
    found, problem = {}, None
    try:
        found = mail_lists.list_mail(now, "/search", params) if asked else {}
    except MailboxError as error:
        problem = error
    sought = " ".join(mail_lists.parse_query(params.get("q", "")).query.split()) if not problem else ""
    return {"title": "Search", "asked": asked, "problem": problem, "sought": sought, **found}


def view_timeline(now: Looking, params: Params) -> dict[str, Any]:
    """Return the charts of the last hours."""
    hours = {str(hours): hours for hours in HOURS}.get(params.get("hours", ""), 24)
    clock = now.mailbox.now()
    since = clock - hours * instant.HOUR
    tally = now.tallies.take_tally(since, clock, now.roster)
    return {
        "title": "Timeline",
        "hours": hours,
        "choices": HOURS,
        **now.spending.describe_spending(now.roster),
        **charts.chart_shapes(tally, now.queries.stretch(since, MOST_TIMED), now.roster, since, clock),
    }


def refuse_unknown(*_: object) -> dict[str, Any]:
    """Raise ``NotFound``: there is no such page."""
    raise NotFound("the console has no such page", "the inbox and all others are in the list beside this")


UNKNOWN: tuple[str, View] = ("problem.html", refuse_unknown)
"""The page of any other address."""
PAGES: dict[str, tuple[str, View]] = {
    "/": ("inbox.html", inbox_page.view_inbox),
    "/fleet": ("fleet.html", fleet_page.view_fleet),
    "/agents": ("agents.html", fleet_page.list_agents),
    "/agent": ("agent.html", view_agent),
    "/transcript": ("transcript.html", activity.view_activity),
    "/conversations": ("conversations.html", topics.view_talks),
    "/channels": ("channels.html", channel_list),
    "/channel": ("channel.html", view_channel),
    "/direct": ("direct.html", view_direct),
    "/new": ("new.html", view_new),
    "/decided": ("decided.html", decided_requests.view_decided),
    "/tasks": ("tasks.html", task_board.view_board),
    "/notes": ("notes.html", note_board.view_notes),
    "/dead": ("dead.html", unread_mail.view_dead),
    "/archive": ("archive.html", view_archive),
    "/search": ("search.html", view_search),
    "/timeline": ("timeline.html", view_timeline),
    "/raw": ("raw.html", view_raw),
    "/sessions": ("sessions.html", lambda *_: {"title": "Signed-in browsers"}),  # the application adds them
}
"""Every page: its template, and the function that fills it."""
