"""The two panes beside every page: the rail with its figures, and the opened message.

Belongs here: their content. ``views`` has the pages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..core import claims, conversations, replies
from ..core.dead_letters import RECIPIENT_DEAD
from ..core.records import USER
from ..core.roster import ALIVE, DEAD, shown_state
from ..errors import Refused
from . import forwarding, presenters
from .agent_rows import SIGNS

if TYPE_CHECKING:
    from ..core.records import Message
    from ..core.roster import Roster
    from .desk import Looking
    from .survey import Survey

MOST_BEFORE, MOST_AFTER = 12, 24
"""Messages of a thread that stand whole beside the opened one: some screens."""


def view_message(now: Looking, survey: Survey, message_id: str) -> dict[str, Any]:
    """Return a message, its receipts, its thread, and the possible actions."""
    found = now.library.found(message_id)
    message, roster, clock = found.message, now.roster, now.mailbox.now()
    chain, reads = now.library.thread(message.id)
    lineage = roster.lineage(USER)
    given_up = {m.id: why for m, why in survey.dead or ()}.get(message.id, "")
    return {
        "problem": None,
        "row": presenters.message_row(message, reads, roster, whole=True),
        "archived": found.archived,
        "receipts": presenters.receipt_history(message, list(found.receipts), roster, clock),
        **_thread_rows(message, chain, reads, roster, clock),
        "answers": _answer_targets(message, roster),
        "readers": _releasing_readers(message, reads, roster) if not found.archived else [],
        "to_person": USER in message.recipients or claims.read_by(message, found.reads, lineage, roster),
        "is_acked": found.reads.acked(message, lineage),
        "dead": {RECIPIENT_DEAD: "its recipient died"}.get(given_up, given_up),
        "resend_to": ", ".join(forwarding.new_recipients(message, roster)),
        "request": next((r.id for r in now.open_requests() if r.message_id == message.id), ""),
    }


def _thread_rows(
    message: Message, chain: list[Message], reads: claims.Reads, roster: Roster, clock: int
) -> dict[str, Any]:
    """Return the messages of the thread before and after the opened one, as rows; ``hidden``: those further away."""
    ids = [m.id for m in chain]
    at = ids.index(message.id) if message.id in ids else 0
    before, after = chain[max(at - MOST_BEFORE, 0) : at], chain[at + 1 : at + 1 + MOST_AFTER]

    def rows_of(messages: list[Message]) -> list[presenters.Row]:
        return [presenters.message_row(m, reads, roster, now=clock) for m in messages]

    return {
        "earlier": rows_of(before),
        "later": rows_of(after),
        "count": len(chain),
        "hidden": len(chain) - len(before) - len(after) - 1,
        "topic": presenters.one_line(conversations.topic(message, {m.id: m for m in chain}.get)),
    }


def _answer_targets(message: Message, roster: Roster) -> dict[str, str]:
    """Return the ways to answer a message, each with the names it reaches: ``everyone`` it was for, its ``sender``."""
    try:
        everyone, _ = replies.recipients(message, USER, roster)
    except Refused:  # the person's own message to nobody else
        return {}
    found = {"everyone": presenters.name_addresses(everyone, roster)}
    if everyone != [message.sender] and message.sender not in roster.lineage(USER):
        found["sender"] = presenters.name_addresses([message.sender], roster)
    return found


def _releasing_readers(message: Message, reads: claims.Reads, roster: Roster) -> list[tuple[str, str, bool]]:
    """Return the readers who may give the message back: (id, name, whether it holds the message)."""
    return [
        (who, presenters.party_name(who, roster), claims.is_holder(who, message, reads, roster))
        for who in (read.session_id for read in reads.of(message.id))
    ]


def rail_content(now: Looking, survey: Survey) -> dict[str, Any]:
    """Return the content of the rail."""
    roster = now.roster
    living = [a for a in roster.agents.values() if a.state != DEAD]
    gone = now.gone_agents()
    states = {a.session_id: shown_state(a, gone) for a in living}
    living.sort(key=lambda a: (states[a.session_id] != ALIVE, presenters.party_name(a.session_id, roster).casefold()))
    listed = presenters.list_channels(roster)[:60]
    fresh = now.unread.count_new(channel.address for channel in listed)
    letters = now.unread_letters()
    by_agent = Counter(heir for item in letters for heir in roster.heirs(item.message.sender))
    return {
        "counts": rail_counts(now, survey, len(letters)),
        "joined": [(channel, fresh.get(channel.address, 0)) for channel in listed],
        "direct": [
            (
                a.session_id,
                presenters.party_name(a.session_id, roster),
                states[a.session_id],
                SIGNS[states[a.session_id]],
                by_agent[a.session_id],
            )
            for a in living[:60]
        ],
        "directory": presenters.one_line(now.mailbox.directory),
    }


def rail_counts(now: Looking, survey: Survey, letters: int) -> dict[str, int | None]:
    """Return the figures of the rail; None if not counted."""
    requests = [request for request in now.open_requests() if request.proven]
    mine = sum(USER in now.control.deciders(request) for request in requests)
    gone = now.gone_agents()
    states = [shown_state(line.agent, gone) for line in survey.lines.values()]
    return {
        "decisions": mine,
        "mail": letters + len(survey.owed),
        "pending": len(requests) + len(survey.unread) if survey.unread is not None else None,
        "dead": len(survey.dead) if survey.dead is not None else None,
        "agents": states.count(ALIVE),
    }
