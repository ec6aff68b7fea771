"""The pane beside every page: the opened message, its thread, its receipts.

Belongs here: its content. ``views`` has the pages, ``rail`` the pane at the left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import conversations, message_reads, replies
from ..core.dead_letters import RECIPIENT_DEAD
from ..core.records import USER, Message
from ..core.roster import Roster
from ..errors import Refused
from ..mailbox.open_mailbox import UNSENT
from . import cards, forwarding, presenters, request_context, topics
from .desk import Looking

MOST_BEFORE, MOST_AFTER = 12, 24
"""Messages of a thread that stand whole beside the opened one: some screens."""


def view_message(now: Looking, message_id: str) -> dict[str, Any]:
    """Return a message, its receipts, its thread, and the possible actions."""
    found = now.queries.found(message_id)
    message, roster, clock = found.message, now.roster, now.mailbox.now()
    chain, reads = now.queries.thread(message.id)
    lineage = roster.lineage(USER)
    asked = next((r for r in now.open_requests() if r.message_id == message.id), None)
    unsent = now.mailbox.unsent()
    alone = unsent.get(message.id, "")
    given_up = {m.id: why for m, why in now.survey.dead or ()}.get(message.id, "")
    return {
        "problem": None,
        "row": presenters.message_row(message, reads, roster, whole=True),
        "unsent": f"{alone}: {UNSENT[alone]}.".capitalize() if alone else "",
        "archived": found.archived,
        "receipts": presenters.receipt_rows(message, found.receipts, reads, roster, clock, alone),
        "is_shown": bool(found.receipts),
        **_thread_rows(message, chain, reads, roster, clock, unsent),
        "answers": _answer_targets(message, roster),
        "readers": _releasing_readers(message, reads, roster) if not found.archived else [],
        "to_person": USER in message.recipients or message_reads.read_by(message, found.reads, lineage, roster),
        "is_acked": found.reads.acked(message, lineage),
        "dead": {RECIPIENT_DEAD: "its recipient died"}.get(given_up, given_up),
        "resend_to": ", ".join(forwarding.new_recipients(message, roster)),
        "card": None if asked is None else cards.make_card(now, asked),
        "facts": [] if asked is None else request_context.list_facts(now, asked),
        "is_unread": message.type != "control" and message.id in {item.message.id for item in now.unread_letters()},
        "place": _place_of(message, chain, roster),
    }


def _thread_rows(
    message: Message,
    chain: list[Message],
    reads: message_reads.Reads,
    roster: Roster,
    clock: int,
    unsent: Mapping[str, str],
) -> dict[str, Any]:
    """Return the messages of the thread before and after the opened one, as rows; ``hidden``: those further away.

    ``unsent``: see ``OpenMailbox.unsent``."""
    ids = [m.id for m in chain]
    at = ids.index(message.id) if message.id in ids else 0
    before, after = chain[max(at - MOST_BEFORE, 0) : at], chain[at + 1 : at + 1 + MOST_AFTER]

    def rows_of(messages: list[Message]) -> list[dict[str, Any]]:
        return [presenters.message_row(m, reads, roster, now=clock, unsent=unsent.get(m.id, "")) for m in messages]

    return {
        "earlier": rows_of(before),
        "later": rows_of(after),
        "count": len(chain),
        "hidden": len(chain) - len(before) - len(after) - 1,
        "topic": presenters.one_line(conversations.topic(message, {m.id: m for m in chain}.get)),
    }


def _place_of(message: Message, chain: list[Message], roster: Roster) -> tuple[str, str] | None:
    """Return the name and the page of the topic, or of the direct talk, that a thread belongs to."""
    channel = next(filter(presenters.is_channel, message.recipients), None)
    if channel is not None:
        topic = conversations.topic(message, {m.id: m for m in chain}.get)
        named = f"{presenters.channel_label(channel)} › {presenters.one_line(topic) or topics.PLAIN}"
        return named, topics.topic_href(channel, conversations.folded(topic))
    other = next((who for who in (message.sender, *message.recipients) if who != USER and roster.get(who)), None)
    if other is None or USER not in (message.sender, *message.recipients):
        return None
    return f"your talk with {presenters.party_name(other, roster)}", presenters.page_link("/direct", **{"with": other})


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


def _releasing_readers(message: Message, reads: message_reads.Reads, roster: Roster) -> list[tuple[str, str, bool]]:
    """Return the readers who may give the message back: (id, name, whether it holds the message)."""
    return [
        (who, presenters.party_name(who, roster), message_reads.is_holder(who, message, reads, roster))
        for who in (read.session_id for read in reads.of(message.id))
    ]
