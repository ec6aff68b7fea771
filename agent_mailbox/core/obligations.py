"""The remains of mail: its readers' debts, its senders' open requests, and mail that no agent ever read.

Belongs here: obligations, requests without an answer, mail that a death gives back, dead letters. Everything is a
function of one ``MailState`` and ``now``.
"""

from __future__ import annotations

from . import claims, proofs
from .address import DIRECT, route
from .records import USER
from .roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .inbox import MailState
    from .records import Message
    from .roster import Roster


def repliers(state: MailState) -> dict[str, set[str]]:
    """Return the senders of the replies to each message; only provable ones if the person provably asked."""
    found: dict[str, set[str]] = {}
    for message in state.messages.values():
        if message.thread is not None and _settles(message, state.messages.get(message.thread)):
            found.setdefault(message.thread, set()).add(message.sender)
    return found


def _settles(reply: Message, parent: Message | None) -> bool:
    return parent is None or not proofs.is_person(parent.proof) or proofs.proves(reply.proof)


def obligations(session_id: str, state: MailState) -> list[Message]:
    """Return the mail that the session (or one it continues) read, must ack, and has neither acked nor answered."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and state.reads.by(m.id, lineage)]
    if not asked:
        return []
    replies = repliers(state)
    return [
        m for m in asked if not state.reads.acked(m, lineage) and replies.get(m.id, frozenset()).isdisjoint(lineage)
    ]


def unanswered(session_id: str, state: MailState) -> list[Message]:
    """Return the mail that the session (or one it continues) sent with a request for an ack, still without ack or
    answer."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and m.sender in lineage]
    if not asked:
        return []
    replies = repliers(state)
    return [
        m
        for m in asked
        if not state.reads.acked(m, claims.readers(m, state.reads))
        and replies.get(m.id, frozenset()) <= frozenset(lineage)
    ]


def staleness(message: Message, state: MailState, now: int) -> str:
    """Return why dealing with the message may be pointless by now; empty if nothing speaks against it.

    The reasons: ``sender gone``, ``superseded`` (its sender wrote again below it), ``expired``.
    """
    roster = state.roster
    if message.sender != USER and roster.state(message.sender) == DEAD and not roster.heirs(message.sender):
        return "sender gone"
    if any(m.thread == message.id and m.sender == message.sender for m in state.messages.values()):
        return "superseded"
    return "expired" if state.expired(message, now) else ""


def owed_on_death(session_id: str, state: MailState) -> list[str]:
    """Return the ids of mail that a dead agent gives back; none while a living agent continues it and so owes the mail.

    These are role mail that it claimed, had to ack and neither acked nor answered; and mail that was offered to it and
    never seen.
    """
    line = tuple(agent.session_id for agent in state.roster.line(session_id))
    if state.roster.heirs(session_id):
        return []
    owed = {
        m.id
        for m in obligations(session_id, state)
        if claims.holder(m, state.reads, state.roster) == session_id and not state.reads.acked(m, line)
    }
    owed.update(i for i in state.messages if any(r.session_id == session_id for r in state.reads.unseen(i)))
    replies = repliers(state)
    return [i for i in state.messages if i in owed and replies.get(i, frozenset()).isdisjoint(line)]


EXPIRED, RECIPIENT_DEAD = "expired", "recipient_dead"


def dead_reason(message: Message, state: MailState, now: int) -> str | None:
    """Return why the message is a dead letter (``EXPIRED`` or ``RECIPIENT_DEAD``), or None if it is not.

    Reading it ends the question; so does a living successor of a dead recipient.
    """
    if claims.readers(message, state.reads):
        return None
    if state.expired(message, now):
        return EXPIRED
    roster = state.roster
    gone = all(roster.mode(a) == DIRECT and not _living_recipient(a, roster) for a in message.recipients)
    return RECIPIENT_DEAD if gone else None


def _living_recipient(word: str, roster: Roster) -> bool:
    agent = roster.meant(word)
    return agent is None or bool(roster.heirs(agent.session_id))


def dead_letters(state: MailState, now: int, session_id: str | None = None) -> list[tuple[Message, str]]:
    """Return dead letters with their reason: those the session sent or was to get, or everyone's."""
    reader = state.roster.reader(session_id) if session_id is not None else None
    found = []
    for message in state.messages.values():
        if reader and message.sender not in reader.lineage and route(message.recipients, reader) is None:
            continue
        reason = dead_reason(message, state, now)
        if reason is not None:
            found.append((message, reason))
    return found
