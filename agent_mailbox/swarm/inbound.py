"""Verified mail into the mailbox: one durable append, each message once.

Belongs here: the translation of a wire message into a record, and the index of messages already taken. A starting
gateway rebuilds the index from the mailbox's logs, the only truth. Its key is swarm, sender and id together: a member
who reuses another's id must not make that message a duplicate.

The bytes within a message become files of the mailbox, as those that are attached here. Name, type, digest and bytes
are the peer's, or a relay's; the size is counted here. A file is durable before the line that names it. Without such a
line the steward removes it.
"""

from __future__ import annotations

from collections.abc import Container
from hashlib import sha256
from itertools import chain
from mimetypes import guess_extension
from typing import Any

from ..core import attachments, codec
from ..core.address import uuid_of
from ..core.compose import stored_line
from ..core.line_forms import may_have
from ..core.records import USER, Message
from ..core.roster import DEAD, Roster
from ..errors import BadData, Refused
from ..mailbox.mailbox import Mailbox
from ..store.attachments import attachment_files
from .protocol import acceptance, wire
from .protocol.acceptance import Accepted
from .protocol.outgoing import REMEMBERED, Outgoing, claimed_issues

MANY = f"a message brings at most {attachments.MOST} files"
DAMAGED = "its bytes do not match its digest"
UNREADABLE = "its content is no base64"
LARGE = f"it is over {attachments.size_of(attachment_files.MOST_BYTES)}"
FULL = "the mailbox has no room for files from elsewhere"
MAX_SUBJECT = 300
DERIVED = "8"
"""The version digit (RFC 9562) of derived UUIDs."""


def key_of(swarm_id: str, sender: str, message_id: str) -> bytes:
    """Return the 16 bytes by which a message is known."""
    return sha256(f"{swarm_id} {sender} {message_id}".encode()).digest()[:16]


class InboundIndex:
    """The messages taken in and their ids here, of all mailboxes: 16 bytes each, kept while a sender may retry."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._ids: dict[bytes, int] = {}
        self._moved: dict[bytes, str] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._seen

    def add_message(self, message: Message) -> None:
        """Note a message of the mailbox, if it came from a swarm."""
        about = (message.extra or {}).get("swarm")
        if isinstance(about, dict) and message.sender.startswith("swarm:"):
            words = [about.get(name) for name in ("swarm_id", "agent_id", "message_id")]
            if all(isinstance(word, str) for word in words):
                self._seen[key_of(*map(str, words))] = message.timestamp
                self._ids[_pack_id(message.id)] = message.timestamp
                if message.id != words[2]:
                    self._moved.setdefault(_pack_id(str(words[2])), message.id)

    def take_mailbox(self, mailbox: Mailbox, now: int) -> None:
        """Note what a mailbox holds already at ``now``, in the live log and the archive."""
        live = (text for _, text in mailbox.logs.messages.lines())
        for text in chain(live, mailbox.archive.lines()):  # live first: mail moves to the archive meanwhile
            message = codec.message(text) if may_have(text, b"swarm:") else None
            if isinstance(message, Message) and message.timestamp >= now - REMEMBERED:
                self.add_message(message)

    def has_id(self, message_id: str) -> bool:
        return _pack_id(message_id) in self._ids

    def local_id_of(self, message_id: str) -> str | None:
        """Return the id here of the message with that wire id; None if unknown."""
        return message_id if self.has_id(message_id) else self._moved.get(_pack_id(message_id))

    def forget_before(self, before: int) -> None:
        """Drop the entries older than ``before`` (ms)."""
        for known in (self._seen, self._ids):  # copies: a reload may add some in another thread
            for old in [key for key, at in known.copy().items() if at < before]:
                del known[old]
        for old in [key for key, place in self._moved.copy().items() if not self.has_id(place)]:
            del self._moved[old]


def _pack_id(message_id: str) -> bytes:
    return sha256(message_id.encode()).digest()[:16]


def derived_id(key: bytes) -> str:
    """Return the UUID (version 8, RFC 9562) that follows from a message's key.

    >>> derived_id(bytes(16))
    '00000000-0000-8000-8000-000000000000'
    """
    return uuid_of(key.hex(), DERIVED, variant="8")


def message_of(
    accepted: Accepted,
    told: str,
    index: InboundIndex,
    outgoing: Outgoing,
    roster: Roster,
    now: int,
    beside: Container[str],
) -> Message:
    """Return the record that a verified message becomes.

    Its sender is an address that no agent here can have. Its type is never ``control``, and it asks for no ack. It goes
    to those who joined the swarm. ``told``: the subject of its lifecycle event; empty for mail. ``beside``: the ids of
    its batch.
    """
    envelope, swarm, sender = accepted.envelope, accepted.swarm, accepted.sender.agent_id
    known_as = key_of(envelope.swarm_id, sender, envelope.message_id)
    # derived ids are ours to give: a sender could take that of a notice not yet written
    taken = (
        envelope.message_id[14] == DERIVED
        or index.has_id(envelope.message_id)
        or envelope.message_id in outgoing.senders
        or envelope.message_id in beside
    )
    metadata = dict(envelope.metadata or {})
    subject = told or metadata.pop("subject", None)
    about: dict[str, Any] = {
        "swarm_id": envelope.swarm_id,
        "agent_id": sender,
        "message_id": envelope.message_id,
        "recipient": envelope.recipient,
        "timestamp": envelope.timestamp,
        **({"thread_id": envelope.thread_id} if envelope.thread_id else {}),
        **({"expires_at": envelope.expires_at} if envelope.expires_at else {}),
        **({"event": True} if told else {}),
    }
    references = [one.model_dump(exclude_none=True) for one in envelope.references or ()]
    conflicts = _claim_conflicts(references, outgoing, roster)
    return Message(
        id=derived_id(known_as) if taken else envelope.message_id,
        sender=f"swarm:{swarm.alias}/{sender}",
        recipients=_local_recipients(accepted, outgoing, roster),
        timestamp=now,
        content=envelope.content,
        subject=subject[:MAX_SUBJECT] if isinstance(subject, str) and subject.strip() else None,
        thread=_parent_id(envelope.in_reply_to, index, outgoing),
        expires_at=acceptance.expiry_of(envelope),
        type=envelope.type,
        priority=envelope.priority or "normal",
        references=references or None,
        attachments=[one.model_dump(exclude_none=True) for one in envelope.attachments or ()] or None,
        metadata=metadata or None,
        extra={"swarm": {**about, **({"conflicts": conflicts} if conflicts else {})}},
    )


def _parent_id(message_id: str | None, index: InboundIndex, outgoing: Outgoing) -> str | None:
    """Return the id here of the message it answers, if that came from or went to a swarm: outsiders answer no local
    mail."""
    if message_id is None or message_id in outgoing.senders:
        return message_id
    return index.local_id_of(message_id)


def is_storable(message: Message) -> bool:
    """Return whether the message can be stored: an unstorable one must not block its batch."""
    try:
        stored_line(message)
    except BadData:
        return False
    return True


def _local_recipients(accepted: Accepted, outgoing: Outgoing, roster: Roster) -> tuple[str, ...]:
    """Return those who joined the swarm; for an answer to one of them, or to the person, only that one. The person
    reads what comes while nobody here has joined.

    ``in_reply_to`` is an unsigned hint: it may only choose among those who would see the message anyway. The person
    sees all mail, and joins no swarm.
    """
    envelope, tag = accepted.envelope, f"swarm:{accepted.swarm.alias}"
    asker = outgoing.senders.get(envelope.in_reply_to or "")
    if envelope.recipient != wire.BROADCAST and asker:
        agent = roster.get(asker)
        if asker == USER:
            return (USER,)
        if agent is not None and agent.state != DEAD and tag in agent.tags:
            return (asker,)
    return (tag,) if roster.carriers(tag) else (tag, USER)


def _claim_conflicts(references: list[dict[str, Any]], outgoing: Outgoing, roster: Roster) -> list[str]:
    """Return a sentence for each issue that the message claims and an agent here holds."""
    found = []
    for repo, number, action in claimed_issues(references):
        holder = outgoing.claims.get((repo, number))
        if action == "claimed" and holder is not None:
            agent = roster.get(holder)
            found.append(f"{(agent.name if agent and agent.name else holder) or 'this agent'} holds {repo}#{number}")
    return found


def keep_attachments(directory: str, message: Message) -> Message:
    """Return a verified message with its bytes kept as files; raise ``StorageFailed``.

    A file that cannot be kept stays a name with the reason: it must not hold up the text.
    """
    given = message.attachments or []
    if not any(entry["type"] == "inline" for entry in given):
        return message
    left = attachment_files.room(directory, attachment_files.MOST_FOREIGN)
    entries: list[dict[str, Any]] = []
    files = 0
    for entry in given:
        if entry["type"] == "inline":
            files += 1
            entry = _keep_attachment(directory, entry, left) if files <= attachments.MOST else _not_kept(entry, MANY)
            left -= max(entry.get("size", 0), attachment_files.LEAST_COUNTED)
        entries.append(entry)
    return message.replace(attachments=entries)


def _keep_attachment(directory: str, entry: dict[str, Any], left: int) -> dict[str, Any]:
    try:
        data = wire.decode_base64(entry["content"])
    except ValueError:
        return _not_kept(entry, UNREADABLE)
    if entry.get("sha256") not in (None, sha256(data).hexdigest()):
        return _not_kept(entry, DAMAGED)
    try:
        return attachment_files.put(directory, _file_name_of(entry), [data], left).entry()
    except BadData:
        return _not_kept(entry, LARGE)
    except Refused:
        return _not_kept(entry, FULL)


def _not_kept(entry: dict[str, Any], why: str) -> dict[str, Any]:
    return attachments.not_kept(_file_name_of(entry), entry["mime_type"], why)


def _file_name_of(entry: dict[str, Any]) -> str:
    """Return the peer's name for a file, or one by its type."""
    return entry.get("name") or f"attachment{guess_extension(entry['mime_type']) or ''}"
