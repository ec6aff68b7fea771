"""Our side of joining a swarm: asking its master, and taking the answer.

Belongs here: the request, and what may be believed of the reply (``admission.entered`` decides). Asked again it is the
same request: while it waits for approval, and later to have the membership confirmed.
"""

from __future__ import annotations

import asyncio
from itertools import chain, count
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..core import instant
from ..mailbox.sending import random_id
from .ledger import Ledger
from .peer_client import Peers
from .protocol import admission, signing, tokens, wire
from .protocol.membership import JOINING, LEFT, Knowledge, Member, Swarm
from .protocol.outgoing import PeerAnswer
from .protocol.refusal import Refusal

WAITING, IN, REFUSED, AWAY = "pending", "accepted", "refused", "unreachable"


def alias_of(name: str, swarm_id: str, known: Knowledge) -> str:
    """The swarm's word in addresses: its name, less what an address cannot hold; made unique by the id, and since that
    is a stranger's choice, too, by a number."""
    word = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name.lower()).strip("-._")[:48]
    taken = {swarm.alias for swarm in known.swarms.values() if swarm.swarm_id != swarm_id}
    stem = word or "swarm"
    further = (f"{stem}-{number}" for number in count(2))
    words = chain((word,) if word else (), (f"{stem}-{swarm_id[:8]}",), further)
    return next(one for one in words if one not in taken)


async def _request(ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, invitation: tokens.Invitation) -> PeerAnswer:
    known = ledger.known()
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
    data = wire.dumps(signing.sealed(signing.JOIN, body, key)).encode("utf-8")
    return await peers.post(invitation.claims.endpoint, "join", data, known.agent_id)


def _entering(
    ledger: Ledger, key: Ed25519PrivateKey, invitation: tokens.Invitation, body: dict[str, Any]
) -> dict[str, Any]:
    known = ledger.known()
    me = Member(known.agent_id, known.endpoint, signing.public_of(key), "")
    return admission.entered(body, invitation.claims, me, invitation.token, ledger.now())


def _refuse_another(known: Knowledge, invitation: tokens.Invitation) -> None:
    """Raise ``Refusal`` for an invitation to a swarm we are in which the master we know did not make, nor a member by
    its key as we know it. A swarm's id is no secret: another master's swarm may bear it."""
    swarm = known.active(invitation.swarm_id)
    if swarm is None:
        return
    claims, master = invitation.claims, swarm.members.get(swarm.master)
    signer = swarm.members.get(claims.issuer or claims.master)
    if master is None or signer is None or not signer.public_key or claims.master != swarm.master:
        raise Refusal("KEY_MISMATCH", f"this gateway is in a swarm of that id, {swarm.alias}, with another master")
    if claims.endpoint != master.endpoint:
        raise Refusal("KEY_MISMATCH", f"the master of {swarm.alias} is not at {claims.endpoint}")
    try:
        tokens.verified(invitation.token, signer.public_key)
    except Refusal:
        raise Refusal(
            "KEY_MISMATCH", f"this gateway is in a swarm of that id, {swarm.alias}; another master signed this"
        ) from None


async def ask(
    ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, url: str, alias: str | None = None, *, again: bool = False
) -> tuple[str, str]:
    """Ask to join by an invitation; writes down what came of it. Returns (one of the four words above, in words).
    ``again``: it was asked before, and whoever gave it up meanwhile is not brought in by a late answer.

    Raises ``Refusal`` for an invitation that cannot be read.
    """
    invitation = tokens.parse_url(url)
    _refuse_another(ledger.known(), invitation)
    answer = await _request(ledger, peers, key, invitation)
    # (a clock that is wrong, here or there, may be set)
    if answer.status in (0, 429) or answer.status >= 500 or answer.code == "STALE_TIMESTAMP":
        return AWAY, answer.message
    body = dict(answer.body or {})

    def given_up(known: Knowledge) -> bool:
        before = known.swarms.get(invitation.swarm_id)
        return again and (before is None or before.state != JOINING)

    if answer.status == 202:
        await asyncio.to_thread(
            ledger.decide,
            lambda known: [] if given_up(known) else _joining(ledger, known, invitation, url, alias),
        )
        return WAITING, str(body.get("message") or "its master has to approve")[:200]
    if answer.status != 200:
        return REFUSED, answer.message
    try:
        event = _entering(ledger, key, invitation, body)
    except Refusal as refusal:
        return REFUSED, refusal.message

    def decide(known: Knowledge) -> list[dict[str, Any]]:
        if given_up(known):
            return []
        before = known.swarms.get(invitation.swarm_id)
        word = before.alias if before else alias_of(alias or event["name"], invitation.swarm_id, known)
        return [*_joining(ledger, known, invitation, url, word), event]

    await asyncio.to_thread(ledger.decide, decide)
    return IN, event["name"]


def _joining(
    ledger: Ledger, known: Knowledge, invitation: tokens.Invitation, url: str, alias: str | None
) -> list[dict[str, Any]]:
    _refuse_another(known, invitation)
    before = known.swarms.get(invitation.swarm_id)
    if before is not None and before.invitation == url and before.state in ("joining", "active"):
        return []
    word = before.alias if before else alias_of(alias or "", invitation.swarm_id, known)
    master = invitation.claims.master
    return [ledger.event("joining", swarm_id=invitation.swarm_id, invitation=url, alias=word, master=master)]


def stop(ledger: Ledger, asked: Swarm, how: str) -> bool:
    """Ask no longer by the invitation by which it was asked; False if it no longer is: whoever is in meanwhile stays
    in, and whoever asks by another invitation goes on asking."""
    stopped = False

    def decide(known: Knowledge) -> list[dict[str, Any]]:
        nonlocal stopped
        swarm = known.swarms.get(asked.swarm_id)
        stopped = swarm is not None and (swarm.state, swarm.invitation) == (JOINING, asked.invitation)
        return [ledger.event("ended", swarm_id=asked.swarm_id, how=how)] if stopped else []

    ledger.decide(decide)
    return stopped


def give_up(ledger: Ledger, word: str) -> Swarm | None:
    """Stop asking to join a swarm whose master has not let us in; None: we do not ask. Nobody is told, for nobody is
    in it with us."""
    swarm = ledger.identified().named(word.removeprefix("swarm:"))
    if swarm is None or swarm.state != JOINING:
        return None
    return swarm if stop(ledger, swarm, LEFT) else None


async def confirm(ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, swarm: Swarm) -> bool:
    """Have the master say again who is in the swarm: heals whatever news never came. Returns whether it did.

    Only who is the master is asked, or believed: one that handed the swarm over could take it back by its answer."""
    try:
        invitation = tokens.parse_url(swarm.invitation)
        _refuse_another(ledger.known(), invitation)
        answer = await _request(ledger, peers, key, invitation)
        if answer.status != 200 or answer.body is None:
            return False
        event = _entering(ledger, key, invitation, dict(answer.body))
    except Refusal:
        return False

    def decide(known: Knowledge) -> list[dict[str, Any]]:
        now = known.active(swarm.swarm_id)  # it may have been handed over while we asked
        return [event] if now is not None and event["master"] == swarm.master == now.master else []

    after = (await asyncio.to_thread(ledger.decide, decide)).active(swarm.swarm_id)
    return after is not None and bool(event["master"] == after.master)
