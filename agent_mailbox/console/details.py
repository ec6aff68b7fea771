"""The pane beside every page: the opened message, its thread and receipts, and what one wants to know beside a request.

Belongs here: its content. The facts beside a request are in a line each: they are told and decide nothing. ``views``
has the pages, ``rail`` the pane at the left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..control.leasing import Leasing
from ..control.past_requests import instant_of
from ..control.task_views import TaskViews
from ..control_plane import control_log
from ..core import conversations, message_reads, replies
from ..core.control import lease_paths, transitions
from ..core.control.control_requests import ControlRequest
from ..core.control.leases import Lease
from ..core.dead_letters import RECIPIENT_DEAD
from ..core.records import USER, Message, Record
from ..core.roster import Roster
from ..errors import Refused
from ..mailbox.open_mailbox import UNSENT
from . import actions, activity, cards, presenters, topics
from .desk import Looking

MOST_BEFORE, MOST_AFTER = 12, 24
"""Messages of a thread that stand whole beside the opened one: some screens."""
DECIDED = {transitions.APPROVED: "approved", transitions.DENIED: "denied"}


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
        "resend_to": ", ".join(actions.new_recipients(message, roster)),
        "card": None if asked is None else cards.make_card(now, asked),
        "facts": [] if asked is None else list_facts(now, asked),
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


class Fact(Record):
    """A fact: its label, its words, and the page that says more."""

    label: str
    text: str
    href: str = ""
    more: str = ""


def list_facts(now: Looking, request: ControlRequest) -> list[Fact]:
    """Return what is known beside an open request."""
    return [*_tell_work(now, request.asker), *_tell_leases(now, request), *_tell_past(now, request)]


def _tell_work(now: Looking, asker: str) -> list[Fact]:
    held = [view.task.title for view in TaskViews(now.mailbox).tasks(asker) if view.holder == asker]
    found = [Fact("Task", presenters.one_line(" · ".join(held[:3])))] if held else []
    step = activity.present_step(now, asker)
    if step is not None:
        said = f"{step['said']}, {step['since']} ago" if step["said"] else "no step yet"
        found.append(Fact("Last step", said, presenters.page_link("/transcript", id=asker), "transcript"))
    return found


def _tell_leases(now: Looking, request: ControlRequest) -> list[Fact]:
    given = getattr(request.payload, "input", None)
    path = cards.path_of_call(given) if isinstance(given, dict) else ""
    if not path:
        return []
    held = [one for one in Leasing(now.mailbox).leases() if _covers(one, path)]
    if not held:
        return [Fact("Leased by", "nobody")]
    roster, clock = now.roster, now.mailbox.now()
    told = [
        f"{presenters.party_name(one.owner, roster)}{'' if one.proven else ' (unverified)'} "
        f"until {presenters.local_moment(one.ends, clock)}"
        for one in held[:3]
    ]
    return [Fact("Leased by", ", ".join(told))]


def _covers(lease: Lease, path: str) -> bool:
    """Return whether a lease is for a file. A relative path counts in any project: rather one warning too many."""
    project = lease.project.rstrip("/") + "/"
    if path.startswith("/") and not path.startswith(project):
        return False
    inside = path.removeprefix(project).removeprefix("./")
    return any(lease_paths.covers(pattern, inside) for pattern in lease.paths)


def _tell_past(now: Looking, request: ControlRequest) -> list[Fact]:
    """Tell what the person decided of this agent's like calls: of the same file, or that begin with the same word."""
    mine, like = {*now.roster.lineage(request.asker)}, _likeness(request)
    found = [
        one
        for one in control_log.of(now.mailbox).requests.values()
        if one.by == USER
        and one.answer_proven
        and one.state in DECIDED
        and one.asker in mine
        and _likeness(one) == like
    ]
    if not found:
        return [Fact("Before", "you decided nothing like it")]
    last = max(found, key=instant_of)
    counts = [
        f"{words} {count}" for state, words in DECIDED.items() if (count := sum(one.state == state for one in found))
    ]
    ago = presenters.elapsed_time(instant_of(last), now.mailbox.now())
    name = presenters.party_name(request.asker, now.roster)
    return [
        Fact("Before", f"of its like you {' and '.join(counts)}; {DECIDED[last.state]} the last {ago} ago",
             presenters.page_link("/decided", agent=name, tool=getattr(request.payload, "tool", "")), "all"),
    ]  # fmt: skip


def _likeness(request: ControlRequest) -> tuple[str, str, str]:
    payload = request.payload
    given = getattr(payload, "input", None)
    fields = given if isinstance(given, dict) else {}
    command = fields.get("command")
    words = command.split()[:1] if isinstance(command, str) else []
    return request.flow, getattr(payload, "tool", ""), cards.path_of_call(fields) or "".join(words)
