"""Open ends of mail: its readers' debts, its senders' open requests.

Belongs here: obligations, requests without an answer, mail that a death gives back. Everything is a function of one
``InboxState`` and ``now``; ``dead_letters`` has the mail that no agent ever read.
"""

from __future__ import annotations

from . import message_reads, proofs
from .roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from .inbox import InboxState
    from .records import Message


def repliers(state: InboxState) -> dict[str, set[str]]:
    """Return the senders of the replies to each message. If the person provably asked, the provable ones count, and
    those of a swarm that was asked."""
    found: dict[str, set[str]] = {}
    for message in state.messages.values():
        if message.thread is not None and _settles(message, state.messages.get(message.thread)):
            found.setdefault(message.thread, set()).add(message.sender)
    return found


def _settles(reply: Message, parent: Message | None) -> bool:
    if proofs.is_bare_word(reply.proof):
        return False
    if parent is None or not proofs.is_person(parent.proof) or proofs.proves(reply.proof):
        return True
    sender = reply.sender
    return proofs.is_carried(reply.proof) and not {sender, sender.partition("/")[0]}.isdisjoint(parent.recipients)


def obligations(session_id: str, state: InboxState) -> list[Message]:
    """Return the mail that the session (or one it continues) read, must ack, and has neither acked nor answered."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and state.reads.by(m.id, lineage)]
    if not asked:
        return []
    replies = repliers(state)
    return [m for m in asked if is_owed(m, lineage, state, replies.get(m.id, ()))]


def is_owed(message: Message, lineage: Sequence[str], state: InboxState, repliers: Collection[str]) -> bool:
    """Return whether none of these sessions has acked or answered the message."""
    return not state.reads.acked(message, lineage) and not any(one in repliers for one in lineage)


def unanswered(session_id: str, state: InboxState) -> list[Message]:
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
        if not state.reads.acked(m, message_reads.readers(m, state.reads))
        and replies.get(m.id, frozenset()) <= frozenset(lineage)
    ]


def staleness(message: Message, state: InboxState, now: int) -> str:
    """Return why dealing with the message may be pointless by now; empty if nothing speaks against it.

    The reasons: ``sender gone``, ``superseded`` (its sender wrote again below it), ``expired``.
    """
    roster = state.roster
    if roster.state(message.sender) == DEAD and not roster.heirs(message.sender):
        return "sender gone"
    if any(m.thread == message.id and m.sender == message.sender for m in state.messages.values()):
        return "superseded"
    return "expired" if state.expired(message, now) else ""


def owed_on_death(sessions: Iterable[str], state: InboxState) -> Iterator[tuple[str, str]]:
    """Yield the mail that dead agents give back: the agent and the message's id, an agent's own in log order.

    These are:

    - role mail that it claimed, had to ack and neither acked nor answered; a living agent that continues it owes the
      ack instead
    - mail that was offered to it and never seen
    - mail that asks for an ack, if it saw the title alone
    """
    asked: dict[str, dict[str, Message]] = {}
    missed: dict[str, dict[str, Message]] = {}
    for message in state.messages.values():
        for read in state.reads.of(message.id) if message.ack else ():
            asked.setdefault(read.session_id, {})[message.id] = message
        for read in state.reads.missed(message):
            missed.setdefault(read.session_id, {})[message.id] = message
    replies, places = repliers(state), {message_id: place for place, message_id in enumerate(state.messages)}
    for session_id in dict.fromkeys(sessions):
        if session_id not in asked and session_id not in missed:
            continue  # as most of hundreds that had one name: to look for each one's successors takes long
        lineage, line = state.roster.lineage(session_id), [agent.session_id for agent in state.roster.line(session_id)]
        held = [
            m
            for m in (() if state.roster.heirs(session_id) else asked.get(session_id, {}).values())
            if message_reads.is_holder(session_id, m, state.reads, state.roster)
            and is_owed(m, lineage, state, replies.get(m.id, ()))
            and not state.reads.acked(m, line)
        ]
        owed = {
            m.id for m in (*held, *missed.get(session_id, {}).values()) if replies.get(m.id, set()).isdisjoint(line)
        }
        yield from ((session_id, message_id) for message_id in sorted(owed, key=places.__getitem__))
