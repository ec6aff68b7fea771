"""Our side of joining a swarm: asking its master, and taking the answer.

Belongs here: the request, and what may be believed of the reply (``admission.entered`` decides). Asked again it is the
same request: while it waits for approval, and later to have the membership confirmed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .client import Peers
from .ledger import Ledger
from .protocol import admission, signing, tokens, wire
from .protocol.membership import Knowledge, Member, Swarm
from .protocol.outgoing import Answer
from .protocol.refusal import Refusal

WAITING, IN, REFUSED, AWAY = "pending", "accepted", "refused", "unreachable"


def alias_of(name: str, swarm_id: str, known: Knowledge) -> str:
    """The swarm's word in addresses: its name, less what an address cannot hold; made unique by the id."""
    word = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name.lower()).strip("-._")[:48]
    taken = {swarm.alias for swarm in known.swarms.values() if swarm.swarm_id != swarm_id}
    return word if word and word not in taken else f"{word or 'swarm'}-{swarm_id[:8]}"


async def _request(ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, invitation: tokens.Invitation) -> Answer:
    known = ledger.known()
    sender = {"agent_id": known.agent_id, "endpoint": known.endpoint, "public_key": signing.public_of(key)}
    body = {"type": "system", "action": "join_request", "invite_token": invitation.token, "sender": sender}
    data = wire.dumps(body).encode("utf-8")
    return await peers.post(invitation.claims.endpoint.rstrip("/"), "join", data, known.agent_id)


def _entering(
    ledger: Ledger, key: Ed25519PrivateKey, invitation: tokens.Invitation, body: dict[str, Any]
) -> dict[str, Any]:
    known = ledger.known()
    me = Member(known.agent_id, known.endpoint, signing.public_of(key), "")
    return admission.entered(body, invitation.claims, me, invitation.token, ledger.now())


async def ask(
    ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, url: str, alias: str | None = None
) -> tuple[str, str]:
    """Ask to join by an invitation; writes down what came of it. Returns (one of the four words above, in words).

    Raises ``Refusal`` for an invitation that cannot be read.
    """
    invitation = tokens.parse_url(url)
    answer = await _request(ledger, peers, key, invitation)
    if answer.status == 0 or answer.status >= 500 or answer.status == 429:
        return AWAY, answer.message
    body = dict(answer.body or {})
    if answer.status == 202:
        await asyncio.to_thread(ledger.decide, lambda known: _joining(ledger, known, invitation, url, alias))
        return WAITING, str(body.get("message") or "its master has to approve")[:200]
    if answer.status != 200:
        return REFUSED, answer.message
    try:
        event = _entering(ledger, key, invitation, body)
    except Refusal as refusal:
        return REFUSED, refusal.message

    def decide(known: Knowledge) -> list[dict[str, Any]]:
        before = known.swarms.get(invitation.swarm_id)
        word = before.alias if before else alias or alias_of(event["name"], invitation.swarm_id, known)
        return [*_joining(ledger, known, invitation, url, word), event]

    await asyncio.to_thread(ledger.decide, decide)
    return IN, event["name"]


def _joining(
    ledger: Ledger, known: Knowledge, invitation: tokens.Invitation, url: str, alias: str | None
) -> list[dict[str, Any]]:
    before = known.swarms.get(invitation.swarm_id)
    if before is not None and before.invitation == url and before.state in ("joining", "active"):
        return []
    word = before.alias if before else alias or alias_of("", invitation.swarm_id, known)
    master = invitation.claims.master
    return [ledger.event("joining", swarm_id=invitation.swarm_id, invitation=url, alias=word, master=master)]


async def confirm(ledger: Ledger, peers: Peers, key: Ed25519PrivateKey, swarm: Swarm) -> bool:
    """Have the master say again who is in the swarm: heals whatever news never came. Returns whether it did."""
    try:
        invitation = tokens.parse_url(swarm.invitation)
        answer = await _request(ledger, peers, key, invitation)
        if answer.status != 200 or answer.body is None:
            return False
        event = _entering(ledger, key, invitation, dict(answer.body))
    except Refusal:
        return False
    if event["master"] != swarm.master and swarm.master in {m["agent_id"] for m in event["members"]}:
        return False  # an earlier master's word about who is master is out of date
    await asyncio.to_thread(ledger.decide, lambda _: [event])
    return True
