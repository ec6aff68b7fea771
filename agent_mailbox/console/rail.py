"""The rail at the left of every page: what waits, the pages, and every place where one writes.

Belongs here: its content and its order. Places with new mail come first, then those that the person pinned. The others
are folded by their kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.address import ALL
from ..core.frame import shown_state
from ..core.inbox import Item
from ..core.marks import MUTED, PINNED
from ..core.records import Record
from ..core.roster import ALIVE
from ..errors import NotFound
from . import cards, presenters, unread_mail
from .desk import Looking, Params
from .fleet_page import SIGNS, state_of

MOST_CALLS = 20
"""The newest things that call the person: of these the page tells which ones are new."""
MOST_PLACES = 60
"""Channels, and agents, that the rail has; the rest is a link away."""
MOST_ASKED = 400
"""Channels that are asked for new mail: each costs a fifth of a millisecond."""
FEW = 14
"""Places of a mailbox that are shown without a fold."""
AGENTS = "agent"
KINDS = {"everyone": "Everyone", "project": "Projects", "role": "Roles", "concern": "Concerns", "domain": "Domains"}


class RailPlace(Record):
    """A channel, or the talk with an agent (``state`` and its ``sign``): its key, its page, how much there is new.

    ``is_current``: the page shows it."""

    key: str
    kind: str
    name: str
    href: str
    new: int
    is_pinned: bool
    is_muted: bool
    is_current: bool = False
    state: str = ""
    sign: str = ""


def rail_content(now: Looking, params: Params) -> dict[str, Any]:
    """Return the content of the rail; a figure is None if it is not counted. ``params``: those of its page."""
    letters, survey, gone = now.unread_letters(), now.survey, now.gone_agents()
    channels, beyond, unasked = choose_channels(now, MOST_PLACES)
    places = [*_list_channels(now, channels, params), *_list_talks(now, letters, params)]
    return {
        "counts": {
            "decisions": len(now.requests_to_decide()),
            "mail": len(letters) + len(survey.owed),
            "dead": None if survey.dead is None else len(survey.dead),
            "agents": sum(shown_state(line.agent, gone) == ALIVE for line in survey.lines.values()),
        },
        "calls": list_calls(now, letters),
        "rail_fresh": [one for one in places if one.new and not one.is_pinned],
        "rail_pinned": [one for one in places if one.is_pinned],  # these stay where one looks for them
        "rail_groups": group_places([one for one in places if not one.new and not one.is_pinned], len(places) <= FEW),
        "rail_beyond": beyond,
        "rail_unasked": unasked,
        "has_agents": any(one.kind == AGENTS for one in places),
        "directory": presenters.one_line(now.mailbox.directory),
    }


def group_places(places: Iterable[RailPlace], are_few: bool) -> list[dict[str, Any]]:
    """Return places by their kind; a group is open if the places are few, or the page shows one of it."""
    found: dict[str, list[RailPlace]] = {}
    for one in places:
        found.setdefault(one.kind, []).append(one)
    order = [*KINDS, *sorted(found.keys() - {*KINDS, AGENTS}), AGENTS]
    return [
        {
            "kind": kind,
            "title": KINDS.get(kind, "Agents" if kind == AGENTS else kind.capitalize()),
            "places": found[kind],
            "is_open": are_few or kind == "everyone" or any(one.is_current for one in found[kind]),
        }
        for kind in order
        if kind in found
    ]


def choose_channels(now: Looking, most: int) -> tuple[list[presenters.Channel], int, int]:
    """Return at most so many channels, how many others may have new mail, and how many more were not asked for it.

    Those that are pinned come before those that may have new mail, and both before the rest."""
    if len(listed := presenters.list_channels(now.roster)) <= most:
        return listed, 0, 0
    marks = now.unread.load_marks()
    counted = [channel for channel in listed if channel.address not in marks.muted]
    counted.sort(key=lambda channel: not channel.members)  # roles of the dead, who may be many, come last
    fresh = now.unread.may_be_new(channel.address for channel in counted[:MOST_ASKED])
    ranked = sorted(listed, key=lambda one: (one.address not in (ALL, *marks.pinned), one.address not in fresh))
    chosen = {channel.address for channel in ranked[:most]}
    unasked = max(len(counted) - MOST_ASKED, 0)
    return [channel for channel in listed if channel.address in chosen], len(fresh - chosen), unasked


def _list_channels(now: Looking, listed: Sequence[presenters.Channel], params: Params) -> list[RailPlace]:
    marks = now.unread.load_marks()
    new = now.unread.count_new(channel.address for channel in listed if channel.address not in marks.muted)
    return [
        RailPlace(
            key=channel.address,
            kind="everyone" if channel.address == ALL else channel.kind,
            name=channel.label,
            href=channel.href,
            new=new.get(channel.address, 0),
            is_pinned=channel.address in marks.pinned,
            is_muted=channel.address in marks.muted,
            is_current=params.get("to") == channel.address,
        )
        for channel in listed
    ]


def _list_talks(now: Looking, letters: Sequence[Item], params: Params) -> list[RailPlace]:
    roster, marks = now.roster, now.unread.load_marks()
    new = unread_mail.count_letters(letters, roster)
    found = []
    for agent in presenters.living_agents(roster):
        me, key = agent.session_id, f"@{agent.session_id}"
        state, is_muted = state_of(now, agent), key in marks.muted
        found.append(RailPlace(
            key, AGENTS, presenters.party_name(me, roster), presenters.page_link("/direct", **{"with": me}),
            0 if is_muted else new[me], key in marks.pinned, is_muted, params.get("with") == me, state, SIGNS[state],
        ))  # fmt: skip
    found.sort(key=lambda one: (not one.new and not one.is_pinned, one.state != ALIVE, one.name.casefold()))
    return found[:MOST_PLACES]


def set_place(now: Looking, fields: Params) -> str:
    """Pin a place to the rail, mute it, or end that."""
    key, kind, is_on = fields.get("place", ""), fields.get("kind", ""), fields.get("on") == "1"
    agent = now.roster.get(key.removeprefix("@")) if key.startswith("@") else None
    if agent is None and key not in {channel.address for channel in presenters.list_channels(now.roster)}:
        raise NotFound(f"no channel and no agent {key!r}", "reload the page")
    if kind not in (PINNED, MUTED):
        raise NotFound(f"unknown list {kind!r}", "use the buttons of a page")
    was_on = key in getattr(now.unread.load_marks(), kind)
    now.unread.set_place(kind, key, is_on)
    name = presenters.channel_label(key) if agent is None else presenters.party_name(agent.session_id, now.roster)
    if was_on == is_on:
        return presenters.Unchanged(f"{name} is already {'' if is_on else 'not '}{kind}.")
    if kind == PINNED:
        return f"{name} is {'pinned to' if is_on else 'no longer pinned to'} the rail."
    return f"{name} is muted: its new mail is not counted." if is_on else f"{name} is muted no more."


def marks_of(now: Looking, key: str) -> dict[str, Any]:
    """Return the person's marks of a place, for the menu of its page."""
    marks = now.unread.load_marks()
    return {"place": key, "is_pinned": key in marks.pinned, "is_muted": key in marks.muted}


def list_calls(now: Looking, letters: Sequence[Item]) -> list[tuple[str, str, str]]:
    """Return what calls the person, newest first: each one's id, words and page.

    These are the requests that they decide, and mail to them that asks for an ack."""
    found = name_requests(now)
    for message in (item.message for item in letters if item.message.ack):
        words = f"{presenters.sender_name(message, now.roster)} asks you by mail"
        found.append((message.timestamp, message.id, words, presenters.page_link("/", open=message.id)))
    return [(key, words, href) for _, key, words, href in sorted(found, reverse=True)[:MOST_CALLS]]


def name_requests(now: Looking) -> list[tuple[int, str, str, str]]:
    """Return the requests that the person decides: when each one came, its id, its words and its page."""
    return [
        (one.asked, one.id, cards.tell_request(one, now.roster), presenters.page_link("/", open=one.message_id))
        for one in now.requests_to_decide()
    ]
