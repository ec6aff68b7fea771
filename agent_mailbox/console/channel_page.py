"""The columns beside a channel: its topics, its members with what they do, its notes and tasks; and whom mail reaches.

Belongs here: all that a channel's page has beside its mail, which ``views`` lists; and the names of agents in a text.
``@Ada`` has her told, too. A word that is no agent's name is only a word.
"""

from __future__ import annotations

import re
from typing import Any

from ..control.task_views import TaskViews
from ..core import reach
from ..core.address import ALL
from ..core.records import USER, Message
from ..core.roster import Agent, Roster
from ..core.text import visible
from ..mailbox.mail_pages import LOOK
from . import fleet_page, presenters, rail, task_board, topics
from .desk import Looking, Params

MOST_MEMBERS = 60
"""Members that a column lists; the rest is only counted."""
MOST_LISTED = 8
"""Notes and tasks of a column; the rest is a link away."""
MOST_NAMES = 200
"""Names that are completed while one writes."""
NEWEST_TOPICS = 14
"""Topics that are listed at once; older ones are folded."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9][\w.@+-]*)", re.ASCII)
MOST_NAMED = 20
"""Agents that one text may name."""


def describe_columns(now: Looking, params: Params) -> dict[str, Any]:
    """Return the topics, members, notes and tasks of an address, and whom a message to it reaches."""
    address, roster = params.get("to", ""), now.roster
    chosen = topics.topic_of_param(params.get("topic"))
    newest = now.queries.newest(address)
    new = now.unread.new_ids(address, newest)
    listed = topics.list_topics(address, newest, new, chosen)
    shown = next((one for one in listed if one.is_chosen), None)
    members = [a for a in presenters.living_agents(roster) if address in (ALL, *a.tags)]
    named = list_mentionable(roster)[:MOST_NAMES]
    notes, tasks = _list_notes(now, address), _list_tasks(now, address, roster)
    return {
        "address": address,
        "label": presenters.channel_label(address),
        "whole": presenters.page_link("/channel", to=address),
        "topics": listed[:NEWEST_TOPICS],
        "older_topics": listed[NEWEST_TOPICS:],
        "topic": shown,
        "answers": next((one.id for one in newest if shown is not None and one.id in shown.ids), ""),
        "new": len(new),
        "new_ids": new,
        "count": len(newest),
        "is_part": len(newest) >= LOOK,
        "members": fleet_page.list_cards(now, members, MOST_MEMBERS),
        "member_count": len(members),
        "notes": notes[:MOST_LISTED],
        "note_count": len(notes),
        "tasks": tasks[:MOST_LISTED],
        "task_count": len(tasks),
        "reach": tell_reach(now, address),
        **rail.marks_of(now, address),
        "names": [(visible(mention_word(a)), presenters.party_name(a.session_id, roster)) for a in named],
    }


def tell_reach(now: Looking, address: str) -> str:
    """Return whom a message of the person to this address would reach now: ``reaches 3 sessions: Ada, Bo, Cleo``."""
    roster, sent = now.roster, Message("", USER, (address,), now.mailbox.now(), "")
    found = reach.find_reach(sent, roster, now.gone_agents())
    named = dict(reach.list_reach(found, lambda one: presenters.name_address(one, roster)))
    count = f"{len(found.agents)} {'session' if len(found.agents) == 1 else 'sessions'}"
    reaches = f"{'one of ' if found.one_of else ''}{count}: {named['reaches']}" if found.agents else "nobody now"
    waits = f"; waits for {named['waits for']}" if found.waiting_for else ""
    return f"reaches {reaches}{waits}"


def _list_notes(now: Looking, address: str) -> list[tuple[str, str]]:
    """Return the current notes to a tag, newest first: each one's title and page."""
    found = [one.message for one in now.notes.list_current(now.roster) if address in (ALL, *one.message.recipients)]
    return [(presenters.title_of(one), presenters.page_link("/notes", on=address, open=one.id)) for one in found[::-1]]


def _list_tasks(now: Looking, address: str, roster: Roster) -> list[dict[str, str]]:
    """Return the tasks of a tag that are not over: those to it, and those of its members."""
    return [
        {
            "title": presenters.one_line(view.task.title) or view.task.id,
            "state": task_board.column_state(view),
            "who": presenters.party_name(view.holder, roster) if view.holder else "",
            "href": presenters.page_link("/tasks", tag="" if address == ALL else address),
        }
        for view in TaskViews(now.mailbox).tasks()
        if address in (ALL, *task_board.tags_of_worker(view, roster))
    ]


def list_mentionable(roster: Roster) -> list[Agent]:
    """Return the agents that a text may name: those not dead, by their names."""
    return sorted(presenters.living_agents(roster), key=lambda agent: mention_word(agent).casefold())


def mention_word(agent: Agent) -> str:
    """Return the word by which a text names an agent."""
    return agent.name or agent.session_id


def find_mentioned(text: str, roster: Roster) -> list[str]:
    """Return the sessions that a text names by ``@Name``, outside of code, in any case if that is one agent."""
    by_word: dict[str, list[Agent]] = {}
    for agent in list_mentionable(roster):
        for word in {mention_word(agent).casefold(), agent.session_id.casefold()}:
            by_word.setdefault(word, []).append(agent)
    found: dict[str, None] = {}
    for word in _MENTION.findall(_CODE.sub(" ", text)):
        named = _find_named(word, by_word)
        if named is not None:
            found[named.session_id] = None
    return [*found][:MOST_NAMED]


def _find_named(word: str, by_word: dict[str, list[Agent]]) -> Agent | None:
    """Return the agent of a word, which punctuation may follow."""
    named = by_word.get(word.casefold()) or by_word.get(word.rstrip(".@+-").casefold(), [])
    exact = [agent for agent in named if word.rstrip(".@+-") in (agent.name, agent.session_id)]
    return exact[0] if exact else named[0] if len(named) == 1 else None
