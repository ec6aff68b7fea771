"""The content of each page; reading it changes nothing.

Belongs here: from a path and its parameters to a template's context. Every page works without script; the parameter
``open`` of any page names the message whose details it shows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..control_plane.standing import find_standing
from ..core import instant, words
from ..core.control.messages import MODES
from ..core.frame import shown_state
from ..core.records import PRIORITIES, USER
from ..core.roster import DEAD
from ..errors import MailboxError, Malformed
from ..mailbox.mail_pages import Page, Position
from ..mailbox.selection import Selection, chooses
from . import (
    activity,
    agent_rows,
    cards,
    channel_page,
    charts,
    decided_requests,
    fleet_page,
    inbox_page,
    note_board,
    presenters,
    search_query,
    sessions_page,
    task_board,
    topics,
    unread_mail,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ..core.roster import Agent
    from .desk import Looking
    from .survey import Survey

    Params = Mapping[str, str]
    View = Callable[[Looking, Survey, Params], dict[str, Any]]

PAGE = 50
"""Messages per page: two screens."""
MOST = 200
"""Entries of a list without pages; the rest is only counted."""
HOURS = (6, 24, 72, 168)
ALL_TIME = 10**15 - 1
MOST_TIMED = 500
"""The newest messages whose delivery times and costs a timeline shows: a tenth of a second of work."""


def selection_of_page(path: str, params: Params) -> Selection | None:
    """Return the mail that a page lists, or None; raises ``Malformed``."""
    if path == "/channel":
        return Selection(address=params.get("to", ""))
    if path == "/direct":
        return Selection(address=params.get("with", ""), person=True)
    if path == "/agent":
        return Selection(reader=params.get("id", ""))
    if path == "/archive":
        return Selection(kind="mail" if params.get("control") == "off" else "")
    if path == "/search":
        since, until = (_parse_date(params.get(name, "")) for name in ("since", "until"))
        asked = search_query.parse_query(params.get("q", ""))
        return asked.replace(address=params.get("with", "").strip(), since=since, until=until)
    return None


def _parse_date(given: str) -> int | None:
    """Return a date field's local day or minute in ms; None if empty."""
    if not given:
        return None
    for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return int(time.mktime(time.strptime(given, form)) * 1000)
        except (ValueError, OverflowError):
            continue
    raise Malformed(f"not a date: {given!r}", "write 2026-03-16 or 2026-03-16T14:30")


def list_mail(now: Looking, path: str, params: Params) -> dict[str, Any]:
    """Return the rows of a page that lists mail, and the link to older ones."""
    chosen = selection_of_page(path, params)
    assert chosen is not None
    topic, roster, later = topics.topic_of_param(params.get("topic")), now.roster, None
    if path == "/search":
        named = {name: getattr(chosen, name) for name in ("address", "sender", "recipient")}
        chosen = chosen.replace(**{name: search_query.in_any_case(word, roster) for name, word in named.items()})

    def look_up_page(before: Position | None) -> Page:
        if path == "/channel":
            return now.queries.channel(chosen.address, before, PAGE, topic)
        return now.queries.page(chosen, before, PAGE)

    before = _parse_place(params.get("before", ""))
    if before is None and now.queries.page(Selection(since=dated_later(now)), None, 1).messages:
        # A line of another year would stand below all news, for years.
        if any(m.timestamp >= dated_later(now) for m in look_up_page(None).messages):
            rest = {key: value for key, value in params.items() if key != "open"}
            later = presenters.page_link(path, **rest, before=f"{ALL_TIME}.z")
        page = look_up_page(Position(dated_later(now), ""))
    else:
        page = look_up_page(before)
    if before is None and params.get("open"):
        before = _just_after(now, chosen, params["open"], {m.id for m in page.messages})
        page = look_up_page(before) if before is not None else page
    older = None
    if page.before is not None:
        rest = {key: value for key, value in params.items() if key not in ("before", "open")}
        older = presenters.page_link(path, **rest, before=f"{page.before.timestamp}.{page.before.id}")
    said = unread_mail.describe_parents(now, page.messages)
    sought = words.phrases(chosen.query)
    rows: list[presenters.Row] = []
    for m in page.messages:
        rows.append(
            presenters.message_row(m, page.reads, roster, page.replies.get(m.id, 0), home=chosen.address, said=said,
                      after=rows[-1] if rows else None, sought=sought)
        )  # fmt: skip
    return {
        "rows": rows,
        "older": older,
        "is_newest": before is None,
        "first_new": None,
        "later": later,
    }


def dated_later(now: Looking) -> int:
    """Return the instant (ms) from which a message is dated in the future: clocks differ by minutes."""
    return now.mailbox.now() + 10 * instant.MINUTE


def _just_after(now: Looking, chosen: Selection, message_id: str, listed: Collection[str]) -> Position | None:
    """Return the position behind an opened message that the list has but its newest page has not."""
    found, _ = now.queries.known([message_id] if message_id not in listed else [])
    belongs = chooses(chosen, now.roster)
    return next((Position(m.timestamp + 1, "") for m in found if belongs(m)), None)


def _parse_place(given: str) -> Position | None:
    stamp, _, message_id = given.partition(".")
    return Position(int(stamp), message_id) if stamp.isdecimal() and len(stamp) < 16 and message_id else None


# -- each page --------------------------------------------------------------------------------------------------------


def view_agent(now: Looking, survey: Survey, params: Params) -> dict[str, Any]:
    """Return one agent: its state, requests, obligations and mail."""
    roster, clock = now.roster, now.mailbox.now()
    session_id = roster.find(params.get("id", "")).session_id
    if session_id == USER:
        return {"title": "You", "who": None, "standing": None, "owed": [], **list_mail(now, "/agent", {"id": USER})}
    one = agent_rows.agent_row(survey, session_id, now, now.gone_agents(), {})
    line = survey.lines.get(session_id)
    standing = find_standing(now.mailbox, session_id)
    requests = [r for r in now.open_requests() if session_id in (r.asker, *r.list_deciders(now.roster))]
    return {
        "title": one["name"],
        "who": one,
        "doing": activity.present_step(now, session_id),
        "standing": standing,
        "modes": MODES,
        "lead": presenters.party_name(standing.lead, roster),
        "cards": [cards.make_card(r, r.list_deciders(now.roster), roster, clock) for r in requests],
        "owed": [(m.id, presenters.title_of(m)) for m in (line.owed if line else ())],
        **list_mail(now, "/agent", {**params, "id": session_id}),
    }


def channel_list(now: Looking, *_: object) -> dict[str, Any]:
    """Return all channels: the new mail in each, and its last message."""
    channels, clock = presenters.list_channels(now.roster), now.mailbox.now()
    addresses = [channel.address for channel in channels[:MOST]]
    new, last = now.unread.count_new(addresses), now.queries.newer(dict.fromkeys(addresses, -1), clock, 1)
    listed = []
    for channel in channels[:MOST]:
        newest = next(iter(last.get(channel.address, ())), None)
        said = None
        if newest is not None:
            at, iso = presenters.local_moment(newest.timestamp, clock), presenters.iso_instant(newest.timestamp)
            who = presenters.party_name(newest.sender, now.roster)
            said = {"at": at, "iso": iso, "who": who, "topic": presenters.one_line(newest.topic)}
        listed.append((channel, new.get(channel.address, 0), said))
    return {"title": "Channels", "channels": listed}


def view_channel(now: Looking, survey: Survey, params: Params) -> dict[str, Any]:
    """Return the mail of an address, its columns, and a form to write there."""
    columns, rows = channel_page.describe_columns(now, survey, params), list_mail(now, "/channel", params)
    topic = columns["topic"]
    return {
        "title": columns["label"],
        "subject": topic.title if topic is not None and params.get("topic") != "-" else "",
        "begins": bool(params.get("new")),
        "writes_to": columns["address"],
        "priorities": PRIORITIES,
        **columns,
        **rows,
        "first_new": next((row.id for row in rows["rows"] if row.id in columns["new_ids"]), None),
    }


def view_direct(now: Looking, _: Survey, params: Params) -> dict[str, Any]:
    """Return the person's direct mail with an agent."""
    roster = now.roster
    who = roster.find(params.get("with", ""))
    rows = list_mail(now, "/direct", {**params, "with": who.session_id})
    asked = next((row for row in reversed(rows["rows"]) if row.asks and not row.is_person), None)
    state = shown_state(who, now.queries.gone([who]))
    return {
        "title": presenters.party_name(who.session_id, roster),
        "who": who,
        "state": state,
        "sign": agent_rows.SIGNS[state],
        "question": asked,
        "unread": [
            m.id for m in unread_mail.direct_letters(now.unread_letters()) if who.session_id in roster.heirs(m.sender)
        ],
        "writes_to": None if who.state == DEAD and not roster.heirs(who.session_id) else who.session_id,
        "priorities": PRIORITIES,
        **rows,
    }


def view_new(now: Looking, _: Survey, params: Params) -> dict[str, Any]:
    """Return a form to write to anyone, with the addresses there are."""
    roster = now.roster
    living = [a for a in roster.agents.values() if a.state != DEAD]
    agents = [(_address_word(a), presenters.party_name(a.session_id, roster)) for a in living]
    channels = [(c.address, f"{c.label}, {c.members} {c.kind}") for c in presenters.list_channels(roster)]
    return {
        "title": "New message",
        "to": params.get("to", ""),
        "addresses": [*sorted(agents, key=lambda pair: pair[1].casefold())[:MOST], *channels[:MOST]],
        "priorities": PRIORITIES,
    }


def _address_word(agent: Agent) -> str:
    """Return the word by which one writes to an agent in a list with commas."""
    return agent.session_id if agent.name is None or "," in agent.name else agent.name


def view_archive(now: Looking, _: Survey, params: Params) -> dict[str, Any]:
    """Return all mail, archived mail included."""
    hides = params.get("control") == "off"
    other = presenters.page_link("/archive", control="" if hides else "off")
    return {"title": "All mail", "hides_control": hides, "other": other, **list_mail(now, "/archive", params)}


def view_search(now: Looking, _: Survey, params: Params) -> dict[str, Any]:
    """Return mail by words, address and time."""
    asked = any(params.get(name, "").strip() for name in ("q", "with", "since", "until"))
    found: dict[str, Any] = {"rows": [], "older": None, "is_newest": True}
    problem = None
    try:
        found = list_mail(now, "/search", params) if asked else found
    except MailboxError as error:
        problem = error
    sought = " ".join(search_query.parse_query(params.get("q", "")).query.split()) if not problem else ""
    return {"title": "Search", "asked": asked, "problem": problem, "sought": sought, **found}


def view_timeline(now: Looking, _: Survey, params: Params) -> dict[str, Any]:
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


PAGES: dict[str, tuple[str, View]] = {
    "/": ("inbox.html", inbox_page.view_inbox),
    "/fleet": ("fleet.html", fleet_page.view_fleet),
    "/agents": ("agents.html", agent_rows.list_agents),
    "/agent": ("agent.html", view_agent),
    "/transcript": ("transcript.html", activity.view_activity),
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
    "/sessions": ("sessions.html", sessions_page.view_sessions),
}
"""Every page: its template, and the function that fills it."""
MOVED = {"/pending": "/"}
"""Addresses of old pages, and where they lead."""
