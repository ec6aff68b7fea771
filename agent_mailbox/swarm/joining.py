"""Our side of joining a swarm: ask its master, and take the answer.

Belongs here: the request, and how much of the reply is believed (``admission.entered_event`` decides). The same request
is repeated while approval is pending, and later to confirm the membership.
"""

from __future__ import annotations

import asyncio
from itertools import chain, count
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..core import instant
from ..core.text import neutral
from ..mailbox.open_mailbox import random_id
from .ledger import Ledger
from .peer_client import Peers
from .protocol import admission, signing, tokens, wire
from .protocol.membership import ACTIVE, JOINING, LEFT, Member, Memberships, Swarm
from .protocol.outgoing import PeerAnswer
from .protocol.refusal import Refusal

WAITING, IN, REFUSED, AWAY = "pending", "accepted", "refused", "unreachable"


def alias_of(name: str, swarm_id: str, known: Memberships) -> str:
    """Return the swarm's alias, its word in addresses: its name, without characters an address forbids.

    The id makes it unique, or a number: the id, too, is a stranger's choice.
    """
    word = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name.lower()).strip("-._")[:48]
    taken = {swarm.alias for swarm in known.swarms.values() if swarm.swarm_id != swarm_id}
    stem = word or "swarm"
    further = (f"{stem}-{number}" for number in count(2))
    words = chain((word,) if word else (), (f"{stem}-{swarm_id[:8]}",), further)
    return next(one for one in words if one not in taken)


async def _send_request(
    ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, invitation: tokens.Invitation
) -> PeerAnswer:
    known = ledger.read_knowledge()
    swarm = known.active_swarm(invitation.swarm_id)
    if swarm is None:
        by, only = invitation.key or "", invitation.key is not None
    else:  # a member knows the master's key, however it came in; the master may have an authority's certificate by now
        by, only = swarm.members[swarm.master].public_key if swarm.master in swarm.members else "", False
    sender = {"agent_id": known.agent_id, "endpoint": known.endpoint, "public_key": signing.public_of(key)}
    body = {
        "protocol_version": wire.PROTOCOL,
        "message_id": random_id(),
        "timestamp": instant.text(ledger.now()),
        "type": "system",
        "action": "join_request",
        "invite_token": invitation.token,
        "sender": sender,
    }
    data = wire.dump_json(signing.seal_object(signing.JOIN, body, key)).encode("utf-8")
    return await peers.post_body(invitation.claims.endpoint, "join", data, known.agent_id, by, only=only)


def _entered_event(
    ledger: Ledger, key: Ed25519PrivateKey, invitation: tokens.Invitation, body: dict[str, Any]
) -> dict[str, Any]:
    known = ledger.read_knowledge()
    me = Member(known.agent_id, known.endpoint, signing.public_of(key), "")
    event = admission.entered_event(body, invitation.claims, me, invitation.token, ledger.now())
    inviter = invitation.claims.master
    if invitation.key and {m["public_key"] for m in event["members"] if m["agent_id"] == inviter} != {invitation.key}:
        raise Refusal("KEY_MISMATCH", f"the answer gives {inviter} another key than the invitation")
    return event


def _refuse_another(known: Memberships, invitation: tokens.Invitation) -> None:
    """Raise ``Refusal`` for another's invitation to a swarm we are in: our master, or a member, must have signed it
    with the key we know.

    A swarm's id is public: another master's swarm may bear it. One that another mailbox is in stays there.
    """
    there = known.swarms.get(invitation.swarm_id)
    if there is not None and there.state in (ACTIVE, JOINING) and not known.is_visible(there):
        raise Refusal("NOT_AUTHORIZED", "this gateway is in that swarm already, for another mailbox")
    swarm = known.active_swarm(invitation.swarm_id)
    if swarm is None:
        return
    claims, master = invitation.claims, swarm.members.get(swarm.master)
    signer = swarm.members.get(claims.issuer or claims.master)
    if master is None or signer is None or not signer.public_key or claims.master != swarm.master:
        raise Refusal("KEY_MISMATCH", f"this gateway is in a swarm of that id, {swarm.alias}, with another master")
    if claims.endpoint != master.endpoint:
        raise Refusal("KEY_MISMATCH", f"the master of {swarm.alias} is not at {claims.endpoint}")
    try:
        tokens.verified_claims(invitation.token, signer.public_key)
    except Refusal:
        raise Refusal(
            "KEY_MISMATCH", f"this gateway is in a swarm of that id, {swarm.alias}; another master signed this"
        ) from None


def quote_refusal(answer: PeerAnswer) -> str:
    """Return why a request failed; the words of a peer, which is a stranger, in quotation marks."""
    if answer.status == 0:
        return answer.message
    words = neutral(answer.message).replace('"', "'")
    return f'its master answered {answer.status}, "{words}"'


async def ask_to_join(
    ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, url: str, alias: str | None = None, *, again: bool = False
) -> tuple[str, str]:
    """Ask to join by an invitation, and record the outcome. Return (one of the four words above, an explanation).

    ``again``: it was asked before; a late answer changes nothing once the person gave up. Raise ``Refusal`` for an
    unreadable invitation, or another master's.
    """
    invitation = tokens.parse_url(url)
    _refuse_another(ledger.read_knowledge(), invitation)
    answer = await _send_request(ledger, peers, key, invitation)
    # a wrong clock, here or there, may be set
    if answer.status in (0, 429) or answer.status >= 500 or answer.code == "STALE_TIMESTAMP":
        return AWAY, quote_refusal(answer)
    if answer.status not in (200, 202):
        return REFUSED, quote_refusal(answer)
    body, entered = dict(answer.body or {}), list[dict[str, Any]]()
    if answer.status == 200:
        try:
            entered = [_entered_event(ledger, key, invitation, body)]
        except Refusal as refusal:
            return REFUSED, refusal.message

    def answer_events(known: Memberships) -> list[dict[str, Any]]:
        before = known.swarms.get(invitation.swarm_id)
        if again and (before is None or before.state != JOINING):
            return []  # the person gave up
        word = alias or next((event["name"] for event in entered), None)
        return [*_joining_events(ledger, known, invitation, url, word), *entered]

    await asyncio.to_thread(ledger.append_decided, answer_events)
    if entered:
        return IN, entered[0]["name"]
    return WAITING, str(body.get("message") or "its master has to approve")[:200]


def _joining_events(
    ledger: Ledger, known: Memberships, invitation: tokens.Invitation, url: str, alias: str | None
) -> list[dict[str, Any]]:
    _refuse_another(known, invitation)
    before = known.swarms.get(invitation.swarm_id)
    if before is not None and before.invitation == url and before.state in ("joining", "active"):
        return []
    word = before.alias if before else alias_of(alias or "", invitation.swarm_id, known)
    master = invitation.claims.master
    asked = ledger.make_event("joining", swarm_id=invitation.swarm_id, invitation=url, alias=word, master=master)
    return [asked, *ledger.placing_events(known, invitation.swarm_id)]


def stop_asking(ledger: Ledger, asked: Swarm, how: str) -> bool:
    """Stop asking by the given invitation; return whether that request was still open.

    A membership, or a request by another invitation, stays.
    """

    def stop_events(known: Memberships) -> tuple[list[dict[str, Any]], bool]:
        swarm = known.swarms.get(asked.swarm_id)
        stopped = swarm is not None and (swarm.state, swarm.invitation) == (JOINING, asked.invitation)
        return [ledger.make_event("ended", swarm_id=asked.swarm_id, how=how)] if stopped else [], stopped

    return ledger.settle_decision(stop_events)[1]


def give_up(ledger: Ledger, word: str) -> Swarm | None:
    """Stop asking to join a swarm and return it; None without a request. Only the ledger learns of it."""
    swarm = ledger.identified_knowledge().swarm_by_word(word.removeprefix("swarm:"))
    if swarm is None or swarm.state != JOINING:
        return None
    return swarm if stop_asking(ledger, swarm, LEFT) else None


async def confirm_membership(ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, swarm: Swarm) -> bool:
    """Ask the master again who is in the swarm, which heals lost news. Return whether it did.

    Only the present master is asked and believed: a former one could take the swarm back by its answer.
    """
    try:
        invitation = tokens.parse_url(swarm.invitation)
        _refuse_another(ledger.read_knowledge(), invitation)
        answer = await _send_request(ledger, peers, key, invitation)
        if answer.status != 200 or answer.body is None:
            return False
        event = _entered_event(ledger, key, invitation, dict(answer.body))
    except Refusal:
        return False

    def confirm_events(known: Memberships) -> list[dict[str, Any]]:
        now = known.active_swarm(swarm.swarm_id)  # it may have been handed over meanwhile
        return [event] if now is not None and event["master"] == swarm.master == now.master else []

    after = (await asyncio.to_thread(ledger.append_decided, confirm_events)).active_swarm(swarm.swarm_id)
    return after is not None and bool(event["master"] == after.master)
