"""Joining: what the master answers to a request, decided from the ledger's knowledge alone.

Belongs here: the one decision. It is taken and written down under the ledger's lock, so that two who come with the same
``max_uses: 1`` token at the same instant are one who came first and one who came second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from ...core import instant
from ...core.records import Record
from ...core.text import neutral
from . import tokens, wire
from .envelope import AgentId, Endpoint, Instant, Model, PublicKey, read
from .membership import Event, Knowledge, Member, Swarm, Use
from .refusal import Refusal


class Joiner(Model):
    """Who asks to join: the key given here is pinned as long as it is a member."""

    agent_id: AgentId
    endpoint: Endpoint
    public_key: PublicKey


class Listed(Joiner):
    """A member in the answer; since when is ours to say (the founding text's has three members)."""

    joined_at: Instant | None = None


class JoinRequest(Model):
    """The body of a POST to ``/swarm/join`` (unsigned, as the founding text has it)."""

    type: Literal["system"]
    action: Literal["join_request"]
    invite_token: Annotated[str, StringConstraints(min_length=1, max_length=tokens.MAX_TOKEN)]
    sender: Joiner


class Admission(Record):
    """What is answered, and the events to write down before it is (none: a re-join, which changes nothing)."""

    swarm: Swarm
    accepted: bool
    new: Member | None = None
    events: tuple[Event, ...] = ()


def parse(data: bytes) -> JoinRequest:
    """The request in a body; raises ``Refusal`` (400)."""
    return read(JoinRequest, wire.parse_json(data), "the request")


def decide(request: JoinRequest, known: Knowledge, now: int) -> Admission:
    """Admit, have it wait, or raise ``Refusal``."""
    swarm, claims = _verified(request.invite_token, known)
    asking, token = request.sender, tokens.fingerprint(request.invite_token)
    new = Member(asking.agent_id, wire.check_endpoint(asking.endpoint), asking.public_key, instant.text(now))
    member = swarm.members.get(asking.agent_id)
    if member is not None:
        # whoever is in is told who else is, by a token however old; but nobody is re-keyed by asking again
        if member.public_key != new.public_key:
            raise Refusal("KEY_MISMATCH", f"{new.agent_id} is a member with another key")
        return Admission(swarm, True)
    if not wire.is_admissible(new.agent_id):
        raise Refusal("INVALID_FORMAT", "an id must not be reserved nor end in message, system or notification")
    use = swarm.uses.get(token, Use())
    _check_token(claims, use, new, now)
    waiting = swarm.waiting.get(new.agent_id)
    if waiting is not None and waiting[0].public_key != new.public_key:
        raise Refusal("KEY_MISMATCH", f"{new.agent_id} waits for approval with another key")
    if new.agent_id in swarm.denied and new.agent_id in use.agents:
        raise Refusal("JOIN_DENIED", "the master did not approve it, or kicked it since: it takes a new invitation")
    if swarm.settings.get("require_approval"):
        event = {"event": "requested", "swarm_id": swarm.swarm_id, "member": new.object, "token": token}
        at = instant.text(now)
        return Admission(swarm, False, new, () if waiting is not None else ({**event, "at": at},))
    return Admission(swarm, True, new, (admitted(swarm, new, token, now),))


def admitted(swarm: Swarm, new: Member, token: str | None, now: int) -> dict[str, Any]:
    """The event by which somebody is in."""
    at = instant.text(now)
    member = new.replace(joined_at=at).object
    return {"event": "joined", "swarm_id": swarm.swarm_id, "member": member, "token": token, "at": at}


def _verified(token: str, known: Knowledge) -> tuple[Swarm, tokens.Claims]:
    """The swarm a token is for, and its claims, verified; the master is we, or nobody is let in here."""
    claims = tokens.claimed(token)
    swarm = known.active(claims.swarm_id)
    if swarm is None:
        raise Refusal("SWARM_NOT_FOUND", "no such swarm here")
    if swarm.master != known.agent_id:
        raise Refusal("NOT_MASTER", f"this agent is not its master; {swarm.master} is")
    issuer = claims.issuer or known.agent_id
    if issuer != known.agent_id and not swarm.settings.get("allow_member_invite"):
        raise Refusal("NOT_AUTHORIZED", "members of this swarm do not invite")
    if issuer not in swarm.members:
        raise Refusal("INVALID_SIGNATURE", "whoever made this token is no member")
    claims = tokens.verified(token, swarm.members[issuer].public_key)
    if claims.endpoint.rstrip("/") != known.endpoint or claims.master not in (known.agent_id, *swarm.members):
        raise Refusal("INVALID_TOKEN", "the invite token names another master")
    return swarm, claims


def _check_token(claims: tokens.Claims, use: Use, new: Member, now: int) -> None:
    if use.revoked:
        raise Refusal("TOKEN_REVOKED", "the invite token was revoked")
    if claims.expired(now):
        raise Refusal("TOKEN_EXPIRED", f"the invite token expired at {claims.expires_at}")
    used = (new.agent_id, new.public_key) in use.by
    if claims.max_uses is not None and not used and len(use.by) >= claims.max_uses:
        raise Refusal("TOKEN_EXHAUSTED", "the invite token has been used up")


def accepted_reply(swarm: Swarm) -> dict[str, Any]:
    """The answer to a member. ``name`` and ``swarm_name``: the founding schema's word and the reference's."""
    both = {"swarm_name": swarm.name, "name": swarm.name, "master": swarm.master, "settings": dict(swarm.settings)}
    members = [m.object for m in swarm.members.values()]
    return {"status": "accepted", "swarm_id": swarm.swarm_id, **both, "members": members}


def pending_reply(swarm: Swarm) -> dict[str, Any]:
    """The answer to who waits for approval, and repeats its request until it is given."""
    said = "the master has to approve; repeat this request"
    return {"status": "pending", "swarm_id": swarm.swarm_id, "message": said}


def entered(reply: Mapping[str, Any], claims: tokens.Claims, me: Member, token: str, now: int) -> dict[str, Any]:
    """The event that follows from an accepted join: the reply is believed in what it must be (it came by TLS from the
    endpoint of the invitation), and only if the key it gives for the master signed the token.

    Raises ``Refusal`` for a reply that cannot be used.
    """
    if reply.get("swarm_id") != claims.swarm_id:
        raise Refusal("INVALID_FORMAT", "the answer is about another swarm")
    members: dict[str, dict[str, Any]] = {}
    at = instant.text(now)
    given, master = reply.get("members"), reply.get("master", claims.master)
    if not isinstance(given, list) or not isinstance(master, str):
        raise Refusal("INVALID_FORMAT", "the answer lists no members")
    for value in given:
        try:
            found = read(Listed, value, "a member")
        except Refusal:
            continue  # an id we could confuse, or no key: its mail would be refused anyway
        if wire.is_admissible(found.agent_id):
            members[found.agent_id] = {**found.model_dump(), "joined_at": found.joined_at or at}
    signer = members.get(claims.issuer or claims.master)
    if signer is None or master not in members:
        raise Refusal("INVALID_FORMAT", "the answer names no master, or without a key")
    tokens.verified(token, signer["public_key"])
    mine = members.setdefault(me.agent_id, {**me.object, "joined_at": at})
    if mine["public_key"] != me.public_key:
        raise Refusal("KEY_MISMATCH", "the swarm knows this agent under another key")
    told = reply.get("settings")
    settings = {k: v for k, v in told.items() if isinstance(v, bool)} if isinstance(told, dict) else {}
    name = reply.get("name") or reply.get("swarm_name")
    return {
        "event": "entered",
        "swarm_id": claims.swarm_id,
        "name": neutral(name)[:256] if isinstance(name, str) else claims.swarm_id,
        "master": master,
        "members": list(members.values()),
        "settings": {key: settings.get(key, False) for key in ("allow_member_invite", "require_approval")},
        "at": at,
    }
