"""Builders: records of the three logs in one line each, with hours since ``T0`` for instants."""

from __future__ import annotations

from typing import Any

from agent_mailbox.core import proofs
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.instant import HOUR
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import USER, Message, Read, RosterEvent
from agent_mailbox.core.roster import Roster

T0 = 1_773_662_400_000
"""2026-03-16T12:00:00Z."""


def at(hours: float) -> int:
    """The instant so many hours after ``T0``."""
    return T0 + round(hours * HOUR)


def proof_of(who: str) -> str:
    """What is proven where the writer is whom the record names."""
    return proofs.TERMINAL if who == USER else proofs.of_session(who)


def message(
    message_id: str = "m1", to: str | tuple[str, ...] = "bob-1", sender: str = "ann-1", hours: float = 0, **more: Any
) -> Message:
    """A message that ``sender`` sent so many hours after ``T0``."""
    recipients = (to,) if isinstance(to, str) else to
    content = more.pop("content", f"text of {message_id}")
    more.setdefault("proof", proof_of(sender))
    return Message(id=message_id, sender=sender, recipients=recipients, timestamp=at(hours), content=content, **more)


def read(message_id: str, session_id: str, via: str | None = None, event: str = "read", hours: float = 0) -> Read:
    """A line of the reads log."""
    proof = proof_of(session_id)
    return Read(message_id=message_id, session_id=session_id, timestamp=at(hours), event=event, via=via, proof=proof)


def ack(message_id: str, session_id: str) -> Read:
    """The line by which a session says it dealt with a message."""
    return read(message_id, session_id, event="ack")


def release(message_id: str, session_id: str) -> Read:
    """The line by which a session gives a message back."""
    return read(message_id, session_id, event="release")


def event(kind: str, session_id: str, hours: float = 0, **said: Any) -> RosterEvent:
    """A line of the roster log."""
    said.setdefault("proof", proof_of(session_id))
    return RosterEvent(event=kind, session_id=session_id, timestamp=at(hours), **said)


def register(session_id: str, *tags: str, hours: float = 0, **said: Any) -> RosterEvent:
    """A session registers, with these tags."""
    return event("register", session_id, hours, tags=tags, **said)


def roster(*events: RosterEvent) -> Roster:
    """The roster these events fold into."""
    return Roster(events)


def state(
    messages: list[Message] | None = None,
    reads: list[Read] | None = None,
    events: list[RosterEvent] | None = None,
    ttls: dict[str, float | None] | None = None,
) -> InboxState:
    """The folded logs."""
    return InboxState(
        messages={m.id: m for m in messages or []},
        reads=Reads(reads or []),
        roster=Roster(events or []),
        ttls=DEFAULT_TTL if ttls is None else ttls,
    )
