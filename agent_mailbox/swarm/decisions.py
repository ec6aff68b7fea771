"""What the person, or an agent for it, decides about swarms: create, invite, approve, kick, leave, transfer, mute.

Belongs here: each as one decision under the ledger's lock, with what it has to tell others in the same line. Nothing
here speaks to the network: the gateway, or ``swarm flush``, carries the news.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import instant
from ..errors import Malformed, NotFound, Refused
from ..mailbox.sending import random_id
from . import gateway
from .home import Home
from .joining import alias_of
from .ledger import Ledger
from .outbox import announce
from .protocol import admission, lifecycle, signing, tokens, wire
from .protocol.membership import ACTIVE, DISSOLVED, LEFT, Event, Knowledge, Member, Swarm

MAX_REASON = 1000
"""Characters of a reason: it is a line in a message, and in everybody's notice."""


def find(known: Knowledge, word: str) -> Swarm:
    """The swarm a word means, if we are in it; raises ``NotFound``."""
    swarm = known.named(word.removeprefix("swarm:"))
    if swarm is None or swarm.state != ACTIVE:
        names = ", ".join(s.alias for s in known.swarms.values() if s.state == ACTIVE)
        state = f"; it is {swarm.state}" if swarm is not None else ""
        raise NotFound(f"this gateway is in no swarm {word!r}{state}", f"it is in: {names or 'none'}")
    return swarm


def _master(known: Knowledge, swarm: Swarm, what: str) -> None:
    if swarm.master != known.agent_id:
        raise Refused(f"only its master may {what}", f"the master of {swarm.alias} is {swarm.master}")


def _member(swarm: Swarm, agent_id: str) -> Member:
    if agent_id not in swarm.members:
        raise NotFound(f"{swarm.alias} has no member {agent_id!r}", "`agent-mailbox swarm members` lists them")
    return swarm.members[agent_id]


def _others(known: Knowledge, swarm: Swarm, *less: str) -> list[Member]:
    return [m for m in swarm.members.values() if m.agent_id not in (known.agent_id, *less)]


def initialise(home: Home, ledger: Ledger, agent_id: str, endpoint: str) -> str:
    """Give the gateway its identity; again with the same is no change. Returns the public key."""
    if not wire.is_admissible(agent_id):
        raise Malformed(
            f"{agent_id!r} cannot be an agent's id",
            "ASCII letters, digits or . _ @ + -, not reserved, not ending in message, system or notification",
        )
    try:
        endpoint = wire.check_endpoint(endpoint)
    except ValueError as error:
        raise Malformed(f"{endpoint!r}: {error}", "write https://HOST/swarm, as peers reach it") from None
    key = home.make()

    def decide(known: Knowledge) -> Sequence[Event]:
        if (known.agent_id, known.endpoint) == (agent_id, endpoint):
            return ()
        if known.swarms and any(swarm.state == ACTIVE for swarm in known.swarms.values()):
            raise Refused(f"this gateway is {known.agent_id} in its swarms", "leave them first, or use another --home")
        return (ledger.event("identity", agent_id=agent_id, endpoint=endpoint),)

    ledger.decide(decide)
    return signing.public_of(key)


def create(home: Home, ledger: Ledger, name: str, settings: dict[str, bool]) -> Swarm:
    """A new swarm, whose master we are."""
    if not 1 <= len(name) <= 256 or not name.isprintable() or not name.strip():
        raise Malformed("a swarm's name has 1 to 256 characters that can be printed")
    key, swarm_id = home.key(), random_id()

    def decide(known: Knowledge) -> Sequence[Event]:
        at = instant.text(ledger.now())
        mine = Member(known.agent_id, known.endpoint, signing.public_of(key), at)
        alias = alias_of(name, swarm_id, known)
        more = {"name": name, "alias": alias, "settings": settings, "member": mine.object}
        return ({"event": "created", "swarm_id": swarm_id, **more, "at": at},)

    ledger.identified()
    return ledger.decide(decide).swarms[swarm_id]


def invite(home: Home, ledger: Ledger, word: str, uses: int | None, hours: float) -> str:
    """An invitation's URL. Costs nothing and is written down nowhere: what counts is its use."""
    known, key, now = ledger.identified(), home.key(), ledger.now()
    swarm = find(known, word)
    mine = swarm.master == known.agent_id
    if not mine and not swarm.settings.get("allow_member_invite"):
        _master(known, swarm, "invite")
    claims = tokens.Claims(
        swarm_id=swarm.swarm_id,
        master=swarm.master,
        endpoint=swarm.members[swarm.master].endpoint,
        iat=now // 1000,
        max_uses=uses,
        expires_at=instant.text(now + int(hours * instant.HOUR)),  # to the millisecond: no two tokens are alike
        issuer=None if mine else known.agent_id,
    )
    return tokens.url(claims, tokens.make(claims, key))


def revoke(ledger: Ledger, url: str) -> Swarm:
    """Let nobody else in by an invitation."""
    invitation = tokens.parse_url(url)

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = find(known, invitation.swarm_id)
        _master(known, swarm, "revoke an invitation")
        token = tokens.fingerprint(invitation.token)
        return (ledger.event("revoked", swarm_id=swarm.swarm_id, token=token),)

    return find(ledger.decide(decide), invitation.swarm_id)


def approve(ledger: Ledger, word: str, agent_id: str, yes: bool) -> Swarm:
    """Let in who asked, or not; it learns of it when it next repeats its request."""

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = find(known, word)
        _master(known, swarm, "approve")
        if agent_id not in swarm.waiting:
            waiting = ", ".join(swarm.waiting) or "nobody"
            raise NotFound(f"{agent_id} does not wait to join {swarm.alias}", f"waiting: {waiting}")
        if not yes:
            return (ledger.event("denied", swarm_id=swarm.swarm_id, agent_id=agent_id),)
        asked, token = swarm.waiting[agent_id]
        return (gateway.with_news(admission.admitted(swarm, asked, token, ledger.now()), swarm, known),)

    return find(ledger.decide(decide), word)


def _check_reason(reason: str | None) -> None:
    if reason is not None and len(reason) > MAX_REASON:
        raise Malformed(f"a reason has at most {MAX_REASON} characters", "say the rest by `swarm send`")


def kick(ledger: Ledger, word: str, agent_id: str, reason: str | None) -> Swarm:
    """Put a member out: it is told, and so is everyone else."""
    _check_reason(reason)

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = find(known, word)
        _master(known, swarm, "kick")
        if agent_id == known.agent_id:
            raise Refused("the master cannot be kicked", "`swarm transfer`, then `swarm leave`")
        target = _member(swarm, agent_id)
        at = wire.later(ledger.now(), target.joined_at)
        said = {"agent_id": agent_id, "reason": reason}
        content = lifecycle.notification(lifecycle.MEMBER_KICKED, swarm.swarm_id, agent_id, known.agent_id, reason)
        notice = {"agent_id": agent_id, "subject": f"{agent_id} was kicked from {swarm.name}", "content": content}
        news = [
            announce(random_id(), lifecycle.said(action, swarm.swarm_id, at, **said), to_whom, peers, told)
            for action, to_whom, peers, told in (
                (lifecycle.TARGET_KICKED, agent_id, [target], None),
                (lifecycle.MEMBER_KICKED, wire.BROADCAST, _others(known, swarm, agent_id), notice),
            )
        ]
        event = {"event": "kicked", "swarm_id": swarm.swarm_id, "agent_id": agent_id, "at": at, "announce": news}
        return (event,)

    return find(ledger.decide(decide), word)


def leave(ledger: Ledger, word: str, dissolve: bool) -> None:
    """Leave a swarm. Its master hands it over first, or dissolves it."""

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = find(known, word)
        me = swarm.members.get(known.agent_id)
        at = wire.later(ledger.now(), me.joined_at if me is not None else "")
        others = _others(known, swarm)
        mine = swarm.master == known.agent_id
        if mine and others and not dissolve:
            raise Refused(
                f"the master cannot just leave {swarm.alias}", "`swarm transfer` first, or --dissolve ends it for all"
            )
        if mine:
            content = lifecycle.said(lifecycle.ENDED, swarm.swarm_id, at, reason="master_left")
        else:
            content = lifecycle.said(lifecycle.LEFT, swarm.swarm_id, at, agent_id=known.agent_id)
        news = [announce(random_id(), content, wire.BROADCAST, others)]
        how = DISSOLVED if mine else LEFT
        return ({"event": "ended", "swarm_id": swarm.swarm_id, "how": how, "at": at, "announce": news},)

    ledger.decide(decide)


def transfer(ledger: Ledger, word: str, agent_id: str) -> Swarm:
    """Make another member the master: it is told first, then everyone."""

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = find(known, word)
        _master(known, swarm, "hand it over")
        at = wire.later(ledger.now(), swarm.handed.get(known.agent_id, ""))
        new = _member(swarm, agent_id)
        if agent_id == known.agent_id:
            raise Refused("this agent is its master already")
        both = {"old_master": known.agent_id, "new_master": agent_id}
        notice = {
            "agent_id": agent_id,
            "subject": f"{agent_id} is the master of {swarm.name}",
            "content": lifecycle.said(lifecycle.CHANGED, swarm.swarm_id, at, **both),
        }
        news = [
            announce(
                random_id(),
                lifecycle.said(lifecycle.TRANSFER, swarm.swarm_id, at, new_master=agent_id),
                agent_id,
                [new],
            ),
            announce(random_id(), notice["content"], wire.BROADCAST, _others(known, swarm, agent_id), notice),
        ]
        event = {"event": "mastered", "swarm_id": swarm.swarm_id, "master": agent_id, "at": at, "announce": news}
        return (event,)

    return find(ledger.decide(decide), word)


def mute(ledger: Ledger, word: str, on: bool, reason: str | None = None) -> str:
    """Drop the mail of an agent, or with ``swarm:ALIAS`` of a swarm, without telling it; returns what was muted."""
    _check_reason(reason)
    found: list[str] = []

    def decide(known: Knowledge) -> Sequence[Event]:
        swarm = known.named(word.removeprefix("swarm:")) if word.startswith("swarm:") or wire.is_uuid(word) else None
        agent = word.partition("/")[2] if swarm is None and word.startswith("swarm:") else word
        if swarm is None and not wire.is_agent_id(agent):
            raise Malformed(f"{word!r} is neither an agent nor a swarm", "an agent's id, or swarm:SWARM")
        what, which = ("swarm", swarm.swarm_id) if swarm is not None else ("agent", agent)
        found[:] = [which]
        if on == (which in (known.muted_swarms if what == "swarm" else known.muted_agents)):
            return ()
        news = [] if what == "swarm" else _muting_news(known, which, on, reason)
        return (ledger.event("muted" if on else "unmuted", what=what, id=which, announce=news),)

    ledger.identified()
    ledger.decide(decide)
    return found[0]


def _muting_news(known: Knowledge, agent_id: str, on: bool, reason: str | None) -> list[dict[str, Any]]:
    """For who joined a swarm that the agent is in; nobody else is told."""
    action, said = (lifecycle.MUTED, "muted") if on else (lifecycle.UNMUTED, "unmuted")
    return [
        {
            **announce(random_id(), "-", wire.BROADCAST, ()),
            "swarm_id": swarm.swarm_id,
            "notice": {
                "agent_id": agent_id,
                "subject": f"{agent_id} is {said} here",
                "content": lifecycle.notification(action, swarm.swarm_id, agent_id, known.agent_id, reason),
            },
        }
        for swarm in known.swarms.values()
        if swarm.state == ACTIVE and agent_id in swarm.members
    ]
