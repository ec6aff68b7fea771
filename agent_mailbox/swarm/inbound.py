"""Verified mail into the mailbox: one durable append, each message once.

Belongs here: how a message of the wire becomes one of ours, and the index that knows which were taken already. The
index is derived: it is read from the mailbox's own logs when the gateway starts, so that there is one truth.
A message is known by swarm, sender and id together: a member who uses another's id must not make that one a duplicate.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from hashlib import sha256
from itertools import chain
from typing import Any

from ..core import codec, instant
from ..core.compose import stored_line
from ..core.ids import uuid_of
from ..core.records import MAX_TTL_HOURS, Message, Record
from ..core.roster import DEAD, Roster
from ..errors import BadData
from ..mailbox.facade import Mailbox
from .protocol import acceptance, wire
from .protocol.acceptance import Accepted
from .protocol.outgoing import REMEMBERED, Outgoing, claimed

MAX_SUBJECT = 300
DERIVED = "8"
"""The version (RFC 9562) of the UUIDs that follow from something."""


class Incoming(Record):
    """A message to be taken in: verified, with what its lifecycle content led to (``told``), for whom."""

    accepted: Accepted
    told: str = ""


def key_of(swarm_id: str, sender: str, message_id: str) -> bytes:
    """What a message is known by."""
    return sha256(f"{swarm_id} {sender} {message_id}".encode()).digest()[:16]


class InboundIndex:
    """The messages taken in, and the ids they stand under: each in 16 bytes, for as long as anybody may send again."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._ids: dict[bytes, int] = {}
        self._moved: dict[bytes, str] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __contains__(self, key: bytes) -> bool:
        return key in self._seen

    def add(self, message: Message) -> None:
        """Note a message that stands in the mailbox, if it came from a swarm."""
        about = (message.extra or {}).get("swarm")
        if isinstance(about, dict) and message.sender.startswith("swarm:"):
            words = [about.get(name) for name in ("swarm_id", "agent_id", "message_id")]
            if all(isinstance(word, str) for word in words):
                self._seen[key_of(*map(str, words))] = message.timestamp
                self._ids[_packed(message.id)] = message.timestamp
                if message.id != words[2]:
                    self._moved.setdefault(_packed(str(words[2])), message.id)

    def has_id(self, message_id: str) -> bool:
        """Does one of ours stand under that id?"""
        return _packed(message_id) in self._ids

    def place(self, message_id: str) -> str | None:
        """The id of ours by which a message of the wire's id stands here."""
        return message_id if self.has_id(message_id) else self._moved.get(_packed(message_id))

    def forget(self, before: int) -> None:
        """Drop what is older than ``before`` (ms); both are in the order of their coming."""
        for known in (self._seen, self._ids):
            for old in [key for key, at in known.items() if at < before]:
                del known[old]
        for old in [key for key, place in self._moved.items() if not self.has_id(place)]:
            del self._moved[old]


def _packed(message_id: str) -> bytes:
    return sha256(message_id.encode()).digest()[:16]


def load(mailbox: Mailbox, now: int) -> InboundIndex:
    """The index, from the live log and the archive."""
    index = InboundIndex()
    mark = b'"sender":"swarm:'
    live = (text for _, text in mailbox.logs.messages.lines())
    for text in chain(live, mailbox.archive.lines()):  # in this order: mail moves from there to here meanwhile
        message = codec.message(text) if mark in text else None
        if isinstance(message, Message) and message.timestamp >= now - REMEMBERED:
            index.add(message)
    return index


def derived_id(key: bytes) -> str:
    """A UUID (version 8, RFC 9562) that follows from what a message is known by."""
    return uuid_of(key.hex(), DERIVED, variant="8")


def message_of(
    incoming: Incoming, index: InboundIndex, outgoing: Outgoing, roster: Roster, now: int, beside: Container[str] = ()
) -> Message:
    """The record a message becomes: its sender is an address no agent here can bear, its type never ``control``; it
    asks for nothing, and goes to who joined the swarm. ``beside``: the ids written in one batch with it."""
    envelope, swarm = incoming.accepted.envelope, incoming.accepted.swarm
    sender = incoming.accepted.sender.agent_id
    known_as = key_of(envelope.swarm_id, sender, envelope.message_id)
    # ids that are derived are ours to give: the sender's could be that of a notice which is yet to be written
    taken = (
        envelope.message_id[14] == DERIVED
        or index.has_id(envelope.message_id)
        or envelope.message_id in outgoing.senders
        or envelope.message_id in beside
    )
    expires = acceptance.expiry(envelope)
    metadata = dict(envelope.metadata or {})
    subject = incoming.told or metadata.pop("subject", None)
    about: dict[str, Any] = {
        "swarm_id": envelope.swarm_id,
        "agent_id": sender,
        "message_id": envelope.message_id,
        "recipient": envelope.recipient,
        "timestamp": envelope.timestamp,
        **({"thread_id": envelope.thread_id} if envelope.thread_id else {}),
        **({"expires_at": envelope.expires_at} if envelope.expires_at else {}),
        **({"event": True} if incoming.told else {}),
    }
    references = [one.model_dump(exclude_none=True) for one in envelope.references or ()]
    conflicts = _conflicts(references, outgoing, roster)
    return Message(
        id=derived_id(known_as) if taken else envelope.message_id,
        sender=f"swarm:{swarm.alias}/{sender}",
        recipients=_recipients(incoming, outgoing, roster),
        timestamp=now,
        content=envelope.content,
        subject=subject[:MAX_SUBJECT] if isinstance(subject, str) and subject.strip() else None,
        thread=_parent(envelope.in_reply_to, index, outgoing),
        ttl_hours=None if expires is None else _hours(expires - now),
        type=envelope.type,
        priority=envelope.priority or "normal",
        references=references or None,
        attachments=[one.model_dump() for one in envelope.attachments] if envelope.attachments else None,
        metadata=metadata or None,
        extra={"swarm": {**about, **({"conflicts": conflicts} if conflicts else {})}},
    )


def _hours(left: int) -> int:
    """The time to live of mail whose sender gives it ``left`` ms: whole hours, which records have, rounded up."""
    return min(MAX_TTL_HOURS, max(1, -(-left // instant.HOUR)))


def _parent(message_id: str | None, index: InboundIndex, outgoing: Outgoing) -> str | None:
    """What it answers, if that came from a swarm or went to one: nobody elsewhere answers what is said among us."""
    if message_id is None or message_id in outgoing.senders:
        return message_id
    return index.place(message_id)


def check(message: Message) -> None:
    """Raise ``BadData`` where the message is one that could not be stored, before others are written with it."""
    stored_line(message)


def is_storable(message: Message) -> bool:
    """Could it be stored? What could not holds up nothing that is written with it."""
    try:
        check(message)
    except BadData:
        return False
    return True


def _recipients(incoming: Incoming, outgoing: Outgoing, roster: Roster) -> tuple[str, ...]:
    """Who joined the swarm; an answer to one of them alone goes to that one (what it answers is a hint nobody signed,
    so it can do no more than choose among those who would have been shown it anyway)."""
    envelope, tag = incoming.accepted.envelope, f"swarm:{incoming.accepted.swarm.alias}"
    asker = outgoing.senders.get(envelope.in_reply_to or "")
    if envelope.recipient != wire.BROADCAST and asker:
        agent = roster.get(asker)
        if agent is not None and agent.state != DEAD and tag in agent.tags:
            return (asker,)
    return (tag,)


def _conflicts(references: list[dict[str, Any]], outgoing: Outgoing, roster: Roster) -> list[str]:
    """Issues that the message claims and somebody here holds."""
    found = []
    for repo, number, action in claimed(references):
        holder = outgoing.claims.get((repo, number))
        if action == "claimed" and holder is not None:
            agent = roster.get(holder)
            found.append(f"{(agent.name if agent and agent.name else holder) or 'this agent'} holds {repo}#{number}")
    return found


def notice(swarm_tag: str, message_id: str, subject: str, content: str, about: dict[str, Any], now: int) -> Message:
    """A notification of our own for who joined the swarm: what happened in it (founding text, "Lifecycle events")."""
    return Message(
        id=message_id,
        sender=f"{swarm_tag}/{about['agent_id']}",
        recipients=(swarm_tag,),
        timestamp=now,
        content=content,
        subject=subject,
        type="system",
        priority="low",
        extra={"swarm": {**about, "message_id": message_id, "event": True}},
    )


def remote_mail(messages: Iterable[Message]) -> list[Message]:
    """What came from swarms."""
    return [m for m in messages if m.sender.startswith("swarm:") and isinstance((m.extra or {}).get("swarm"), dict)]
