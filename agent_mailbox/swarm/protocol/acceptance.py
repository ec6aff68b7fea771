"""An incoming message: is it authentic, in a swarm of ours, for us, fresh? The order is the security.

Belongs here: shape, then swarm, member, recipient, signature, freshness. Cheap checks come first; nothing before the
signature costs or leaves a trace. ``gateway`` checks limits, mutes and duplicates afterwards, of proven senders.
"""

from __future__ import annotations

from ...core import instant
from ...core.records import Record
from . import signing, wire
from .envelope import Envelope, parse_envelope
from .membership import Member, Memberships, Swarm
from .refusal import Refusal

KEYLESS = 5
"""Seconds after which a member whose key is missing here may retry."""
MAX_CONTENT = 64 * 1024


class Accepted(Record):
    """A verified message, its swarm and its sender."""

    envelope: Envelope
    swarm: Swarm
    sender: Member


def examine_message(data: bytes, known: Memberships, now: int, max_content: int = MAX_CONTENT) -> Accepted:
    """Return the message in a body, verified at ``now`` (ms); raise ``Refusal``."""
    value = wire.parse_json(data)
    envelope = parse_envelope(value)
    if not envelope.content.strip() or len(envelope.content.encode("utf-8")) > max_content:
        raise Refusal("INVALID_FORMAT", f"content is empty, or more than {max_content} bytes")
    swarm = known.active_swarm(envelope.swarm_id)
    if swarm is None:
        raise Refusal("SWARM_NOT_FOUND", "no such swarm here")
    sender = swarm.members.get(envelope.sender.agent_id)
    if sender is None:
        raise Refusal("NOT_MEMBER", "the sender is no member of this swarm")
    if sender.agent_id == known.agent_id:
        raise Refusal("NOT_AUTHORIZED", "this agent sends itself no mail")
    if envelope.recipient not in (wire.BROADCAST, known.agent_id):
        raise Refusal("WRONG_RECIPIENT", "the message is for another agent")
    if not sender.public_key:  # its master named it without one: the carrier asks for it, and the mail may be genuine
        raise Refusal("UNAVAILABLE", "the sender's key is not known here yet", wait=KEYLESS)
    if not signing.is_signed_by(envelope, envelope.signature, sender.public_key):
        raise Refusal("INVALID_SIGNATURE", "the signature is not the sender's over this message")
    if envelope.seal is None and sender.public_key in known.sealing:
        raise Refusal("INVALID_SIGNATURE", "the sender seals its messages, and this one has no seal")
    if envelope.seal is not None and not signing.seal_holds(signing.MESSAGE, value, sender.public_key):
        raise Refusal("INVALID_SIGNATURE", "the seal is not the sender's over this message")
    if abs(instant.parse(envelope.timestamp) - now) > wire.FRESH:
        raise Refusal("STALE_TIMESTAMP", "the timestamp is too far from this agent's clock")
    ends = expiry_of(envelope)
    if ends is None and envelope.expires_at is not None:
        raise Refusal("INVALID_FORMAT", "expires_at is no instant")
    if ends is not None and now >= ends:
        raise Refusal("MESSAGE_EXPIRED", "the message expired before it came")
    return Accepted(envelope, swarm, sender)


def expiry_of(envelope: Envelope) -> int | None:
    """Return when the message expires (ms); None: never, or unreadable."""
    if envelope.expires_at is None:
        return None
    try:
        return instant.parse(envelope.expires_at)
    except ValueError:
        return None
