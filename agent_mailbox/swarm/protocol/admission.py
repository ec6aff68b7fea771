"""Joining: the master's answer to a request, decided from nothing but the ledger's knowledge.

Belongs here: that one decision. It is taken and recorded under the ledger's lock: two concurrent requests with one
``max_uses: 1`` token have an order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from ...core import instant
from ...core.records import Record
from ...core.text import neutral
from . import signing, tokens, wire
from .envelope import AgentId, Endpoint, Instant, Model, PublicKey, Uuid, read_model
from .membership import MAX_MEMBERS, Event, Member, Memberships, Swarm, Use, bearer_of, each_by_its_key
from .refusal import Refusal


class Joiner(Model):
    """The agent that asks to join; the key it gives is pinned while it is a member."""

    agent_id: AgentId
    endpoint: Endpoint
    public_key: PublicKey


class Listed(Joiner):
    """A member in the answer; ``joined_at`` is ours (the founding text has three members)."""

    joined_at: Instant | None = None


class JoinRequest(Model):
    """The body of a POST to ``/swarm/join``, unsigned as the founding text has it."""

    type: Literal["system"]
    action: Literal["join_request"]
    invite_token: Annotated[str, StringConstraints(min_length=1, max_length=tokens.MAX_TOKEN)]
    sender: Joiner


class Proven(JoinRequest):
    """The same with an id, an instant and a seal (``signing.JOIN``) by the sender's key, which ``parse_join_request``
    has verified.

    A ``signature``, for which the reference's schema has no rule, is ignored.
    """

    protocol_version: Annotated[str, StringConstraints(max_length=100)]
    message_id: Uuid
    timestamp: Instant
    seal: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Admission(Record):
    """The answer, and the events to record before it. A re-join changes nothing: its only event, if any, is
    ``asked``."""

    swarm: Swarm
    accepted: bool
    events: tuple[Event, ...] = ()


def parse_join_request(data: bytes) -> JoinRequest:
    """Return the request in a body; raise ``Refusal`` (400; 401 if its seal does not hold)."""
    value = wire.parse_json(data)
    if value.get(signing.SEAL) is None:
        return read_model(JoinRequest, value, "the request")
    request = read_model(Proven, value, "the request")
    wire.check_version(request.protocol_version)
    if not signing.seal_holds(signing.JOIN, value, request.sender.public_key):
        raise Refusal("INVALID_SIGNATURE", "the seal is not the sender's over this request")
    return request


def decide_admission(request: JoinRequest, known: Memberships, now: int, proof: bool = False) -> Admission:
    """Admit, let wait, or raise ``Refusal``. ``proof``: refuse unsealed requests."""
    swarm, claims = _verify_token(request.invite_token, known)
    asked = _answered_once(request, swarm, now, proof)
    asking, token = request.sender, tokens.token_fingerprint(request.invite_token)
    new = Member(asking.agent_id, asking.endpoint, asking.public_key, instant.text(now))
    member = swarm.members.get(asking.agent_id)
    if member is not None:
        # a proven member is told the members, by a token however old; that changes nobody's key
        if member.public_key != new.public_key:
            raise Refusal("KEY_MISMATCH", f"{new.agent_id} is a member with another key")
        if not asked:
            _check_unproven(claims, swarm.uses.get(token, Use()), member, now)
        return Admission(swarm, True, _asked_events(swarm, asked, now))
    if not wire.is_admissible(new.agent_id):
        raise Refusal("INVALID_FORMAT", "an id must not be reserved nor end in message, system or notification")
    use, waiting = swarm.uses.get(token, Use()), swarm.waiting.get(new.agent_id)
    # it asked in time, however long the master takes, or whatever its clock says meanwhile
    waits = waiting is not None and (waiting[0].public_key, waiting[1]) == (new.public_key, token)
    _check_token(claims, use, new, now, waits)
    _check_place(swarm, use, new)
    if swarm.settings.get("require_approval"):
        event = {"event": "requested", "swarm_id": swarm.swarm_id, "member": new.object, "token": token}
        at = instant.text(now)
        fresh = ({**event, **asked, "at": at},)
        return Admission(swarm, False, fresh if waiting is None else _asked_events(swarm, asked, now))
    return Admission(swarm, True, ({**joined_event(swarm, new, token, now), **asked},))


def _check_place(swarm: Swarm, use: Use, new: Member) -> None:
    """Raise ``Refusal`` if the swarm is closed to ``new``, however good its token is."""
    waiting = swarm.waiting.get(new.agent_id)
    if waiting is not None and waiting[0].public_key != new.public_key:
        raise Refusal("KEY_MISMATCH", f"{new.agent_id} waits for approval with another key")
    if new.agent_id in swarm.denied and new.agent_id in dict(use.by):
        raise Refusal("JOIN_DENIED", "the master did not approve it, or kicked it since: it takes a new invitation")
    if bearer := bearer_of(new.public_key, swarm, new.agent_id):
        raise Refusal("KEY_MISMATCH", f"its key is that of {bearer}: one key is one agent")
    if waiting is None and len(swarm.members) + len(swarm.waiting) >= MAX_MEMBERS:
        raise Refusal("JOIN_DENIED", f"the swarm is full: it has {MAX_MEMBERS} members")


def _answered_once(request: JoinRequest, swarm: Swarm, now: int, proof: bool) -> dict[str, str]:
    """Return the part of a sealed request to record, so that it is answered once; empty if unsealed."""
    if not isinstance(request, Proven):
        if proof:
            raise Refusal("INVALID_SIGNATURE", "requests to join are to be sealed here")
        return {}
    if abs(instant.parse(request.timestamp) - now) > wire.FRESH:
        raise Refusal("STALE_TIMESTAMP", "the timestamp is too far from this agent's clock")
    if request.message_id in swarm.asked:
        raise Refusal("INVALID_SIGNATURE", "this request was answered before; seal another")
    return {"request": request.message_id}


def _asked_events(swarm: Swarm, asked: dict[str, str], now: int) -> tuple[Event, ...]:
    return ({"event": "asked", "swarm_id": swarm.swarm_id, **asked, "at": instant.text(now)},) if asked else ()


def _check_unproven(claims: tokens.TokenClaims, use: Use, member: Member, now: int) -> None:
    """Check an unsealed request in a member's name: it gets what anybody gets by that token.

    The answer to a joining may be lost: for a while the token that was used for it gets it again.
    """
    lately = now < instant.parse(member.joined_at) + wire.FRESH
    if use.revoked or not lately or (member.agent_id, member.public_key) not in use.by:
        _check_token(claims, use, None, now)


def joined_event(swarm: Swarm, new: Member, token: str | None, now: int) -> dict[str, Any]:
    at = wire.later_instant(now, swarm.departed.get(new.agent_id, ""))
    member = new.replace(joined_at=at).object
    return {"event": "joined", "swarm_id": swarm.swarm_id, "member": member, "token": token, "at": at}


def _verify_token(token: str, known: Memberships) -> tuple[Swarm, tokens.TokenClaims]:
    """Return (the swarm a token is for, its verified claims); raise ``Refusal``, also if we are not its master."""
    claims = tokens.unverified_claims(token)
    swarm = known.active_swarm(claims.swarm_id)
    if swarm is None:
        raise Refusal("SWARM_NOT_FOUND", "no such swarm here")
    if swarm.master != known.agent_id:
        raise Refusal("NOT_MASTER", f"this agent is not its master; {swarm.master} is")
    issuer = claims.issuer or known.agent_id
    if issuer != known.agent_id and not swarm.settings.get("allow_member_invite"):
        raise Refusal("NOT_AUTHORIZED", "members of this swarm do not invite")
    if issuer not in swarm.members:
        raise Refusal("INVALID_SIGNATURE", "whoever made this token is no member")
    claims = tokens.verified_claims(token, swarm.members[issuer].public_key)
    if claims.endpoint != known.endpoint or claims.master not in (known.agent_id, *swarm.members):
        raise Refusal("INVALID_TOKEN", "the invite token names another master")
    return swarm, claims


def _check_token(claims: tokens.TokenClaims, use: Use, new: Member | None, now: int, waits: bool = False) -> None:
    """Raise ``Refusal`` unless the token is good for ``new``, or (None) for anybody. ``waits``: it asked before the
    token expired."""
    if use.revoked:
        raise Refusal("TOKEN_REVOKED", "the invite token was revoked")
    if claims.is_expired(now) and not waits:
        raise Refusal("TOKEN_EXPIRED", f"the invite token expired at {claims.expires_at}")
    used = new is not None and (new.agent_id, new.public_key) in use.by
    if claims.max_uses is not None and not used and len(use.by) >= claims.max_uses:
        raise Refusal("TOKEN_EXHAUSTED", "the invite token has been used up")


def accepted_reply(swarm: Swarm) -> dict[str, Any]:
    """Return the answer to a member. ``name`` is the founding schema's word, ``swarm_name`` the reference's."""
    both = {"swarm_name": swarm.name, "name": swarm.name, "master": swarm.master, "settings": dict(swarm.settings)}
    members = [m.object for m in swarm.members.values()]
    return {"status": "accepted", "swarm_id": swarm.swarm_id, **both, "members": members}


def pending_reply(swarm: Swarm) -> dict[str, Any]:
    """Return the answer to an agent that waits for approval: it repeats its request until then."""
    said = "the master has to approve; repeat this request"
    return {"status": "pending", "swarm_id": swarm.swarm_id, "message": said}


def entered_event(
    reply: Mapping[str, Any], claims: tokens.TokenClaims, me: Member, token: str, now: int
) -> dict[str, Any]:
    """Return the event of an accepted join; raise ``Refusal`` for an unusable reply.

    The reply came by TLS from the invitation's endpoint. It counts only if the key it gives for the inviter signed the
    token.
    """
    if reply.get("swarm_id") != claims.swarm_id:
        raise Refusal("INVALID_FORMAT", "the answer is about another swarm")
    members: dict[str, Member] = {}
    at, latest = instant.text(now), instant.text(now + wire.FRESH)
    # a member listed without a date joined, by the master's own clock, after it made this invitation; only that clock
    # will do, for the master's later instants are compared with it
    since = instant.text(min(now, claims.iat * 1000))
    given, master = reply.get("members"), reply.get("master", claims.master)
    if not isinstance(given, list) or not isinstance(master, str):
        raise Refusal("INVALID_FORMAT", "the answer lists no members")
    for value in given:
        try:
            found = read_model(Listed, value, "a member")
        except Refusal:
            continue  # an ambiguous id, or no key: its mail would be refused anyway
        if wire.is_admissible(found.agent_id):
            joined_at = min(found.joined_at or since, latest)
            members[found.agent_id] = Member(found.agent_id, found.endpoint, found.public_key, joined_at)
    signer = members.get(claims.issuer or claims.master)
    if len(members) > MAX_MEMBERS:
        raise Refusal("INVALID_FORMAT", f"the answer lists more than {MAX_MEMBERS} members")
    if signer is None or master not in members:
        raise Refusal("INVALID_FORMAT", "the answer names no master, or without a key")
    tokens.verified_claims(token, signer.public_key)
    if members.setdefault(me.agent_id, me.replace(joined_at=since)).public_key != me.public_key:
        raise Refusal("KEY_MISMATCH", "the swarm knows this agent under another key")
    told = reply.get("settings")
    settings = {k: v for k, v in told.items() if isinstance(v, bool)} if isinstance(told, dict) else {}
    name = reply.get("name") or reply.get("swarm_name")
    return {
        "event": "entered",
        "swarm_id": claims.swarm_id,
        "name": neutral(name)[:256] if isinstance(name, str) else claims.swarm_id,
        "master": master,
        "members": [one.object for one in each_by_its_key(members).values()],
        "settings": {key: settings.get(key, False) for key in ("allow_member_invite", "require_approval")},
        "at": at,
    }
