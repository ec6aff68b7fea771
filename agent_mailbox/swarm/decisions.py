"""The person's decisions about swarms: create, invite, approve, kick, leave, transfer, mute, import.

Belongs here: each decision, under the ledger's lock, its news in the same line; what a state file may change. Nothing
here uses the network: the gateway, or ``swarm flush``, carries the news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import instant, references
from ..errors import Malformed, NotFound, Refused
from ..mailbox.open_mailbox import random_id
from . import gateway, state_file
from .gateway_identity import key_of
from .joining import alias_of
from .ledger import Ledger
from .outbox import make_announcement
from .protocol import admission, lifecycle, signing, tokens, wire
from .protocol.membership import ACTIVE, DISSOLVED, LEFT, Event, Member, Memberships, Swarm

MAX_REASON = references.REASON
"""Most characters of a reason: it is a line of a message and of everybody's notice."""


def find_swarm(known: Memberships, word: str) -> Swarm:
    """Return the swarm a word names, if we are in it; else raise ``NotFound``."""
    swarm = known.swarm_by_word(word.removeprefix("swarm:"))
    if swarm is None or swarm.state != ACTIVE:
        names = ", ".join(s.alias for s in known.seen if s.state == ACTIVE)
        state = f" ({swarm.state})" if swarm is not None else ""
        raise NotFound(
            f"swarm not joined here: {word!r}{state}",
            f"name one of: {names}" if names else "join one first: `agent-mailbox swarm join URL`",
        )
    return swarm


def _require_master(known: Memberships, swarm: Swarm, what: str) -> None:
    if swarm.master != known.agent_id:
        raise Refused(
            f"swarm {swarm.alias} lets only its master {what}: {swarm.master}",
            f"ask {swarm.master}: `agent-mailbox swarm send {swarm.alias}/{swarm.master} --body TEXT`",
        )


def _find_member(swarm: Swarm, agent_id: str) -> Member:
    if agent_id not in swarm.members:
        raise NotFound(
            f"member not found in {swarm.alias}: {agent_id!r}",
            f"list them with `agent-mailbox swarm members {swarm.alias}`",
        )
    return swarm.members[agent_id]


def _other_members(known: Memberships, swarm: Swarm, *less: str) -> list[Member]:
    return [m for m in swarm.members.values() if m.agent_id not in (known.agent_id, *less)]


def create_swarm(ledger: Ledger, name: str, settings: dict[str, bool]) -> Swarm:
    """Create a swarm with this gateway as its master."""
    if not 1 <= len(name) <= 256 or not name.isprintable() or not name.strip():
        raise Malformed(f"swarm name invalid: {name[:80]!r}", "use 1 to 256 printable characters")
    key, swarm_id = key_of(ledger), random_id()

    def create_events(known: Memberships) -> Sequence[Event]:
        at = instant.text(ledger.now())
        mine = Member(known.agent_id, known.endpoint, signing.public_of(key), at)
        alias = alias_of(name, swarm_id, known)
        more = {"name": name, "alias": alias, "settings": settings, "member": mine.object}
        made = {"event": "created", "swarm_id": swarm_id, **more, "at": at}
        return (made, *ledger.placing_events(known, swarm_id))

    ledger.identified_knowledge()
    return ledger.append_decided(create_events).swarms[swarm_id]


def make_invitation(ledger: Ledger, word: str, uses: int | None, hours: float, *, keyed: bool = False) -> str:
    """Return an invitation's URL; ``keyed``: with the master's key, which vouches for its certificate. Making one is
    not recorded; its uses are."""
    known, key, now = ledger.identified_knowledge(), key_of(ledger), ledger.now()
    swarm = find_swarm(known, word)
    mine = swarm.master == known.agent_id
    if not mine and not swarm.settings.get("allow_member_invite"):
        _require_master(known, swarm, "invite")
    claims = tokens.TokenClaims(
        swarm_id=swarm.swarm_id,
        master=swarm.master,
        endpoint=swarm.members[swarm.master].endpoint,
        iat=now // 1000,
        max_uses=uses,
        expires_at=instant.text(now + int(hours * instant.HOUR)),  # to the millisecond, so that tokens differ
        issuer=None if mine else known.agent_id,
    )
    return tokens.invitation_url(
        claims, tokens.make_token(claims, key), swarm.members[swarm.master].public_key if keyed else None
    )


def revoke_invitation(ledger: Ledger, url: str) -> Swarm:
    """Revoke an invitation: it lets nobody else in."""
    invitation = tokens.parse_url(url)

    def revoke_events(known: Memberships) -> Sequence[Event]:
        swarm = find_swarm(known, invitation.swarm_id)
        _require_master(known, swarm, "revoke an invitation")
        token = tokens.token_fingerprint(invitation.token)
        return (ledger.make_event("revoked", swarm_id=swarm.swarm_id, token=token),)

    return find_swarm(ledger.append_decided(revoke_events), invitation.swarm_id)


def answer_join_request(ledger: Ledger, word: str, agent_id: str, yes: bool) -> Swarm:
    """Admit (``yes``) or reject an agent that asked to join; it learns of it when it repeats its request."""

    def approval_events(known: Memberships) -> Sequence[Event]:
        swarm = find_swarm(known, word)
        _require_master(known, swarm, "approve")
        if agent_id not in swarm.waiting:
            waiting = ", ".join(swarm.waiting) or "none waits"
            raise NotFound(f"join request not found in {swarm.alias}: {agent_id}", f"name one that waits: {waiting}")
        if not yes:
            return (ledger.make_event("denied", swarm_id=swarm.swarm_id, agent_id=agent_id),)
        asked, token = swarm.waiting[agent_id]
        return (gateway.with_news(admission.joined_event(swarm, asked, token, ledger.now()), swarm, known),)

    return find_swarm(ledger.append_decided(approval_events), word)


def _check_reason(reason: str | None) -> None:
    if reason is not None and len(reason) > MAX_REASON:
        raise Malformed(
            f"reason too long: {len(reason)} characters",
            f"cut it to {MAX_REASON}; send the rest with `agent-mailbox swarm send`",
        )


def kick_member(ledger: Ledger, word: str, agent_id: str, reason: str | None) -> Swarm:
    """Remove a member; tell it and everyone else."""
    _check_reason(reason)

    def kick_events(known: Memberships) -> Sequence[Event]:
        swarm = find_swarm(known, word)
        _require_master(known, swarm, "kick")
        if agent_id == known.agent_id:
            raise Refused(
                f"master cannot be kicked: {agent_id}",
                f"run `agent-mailbox swarm transfer {swarm.alias} AGENT`, then leave with `agent-mailbox swarm leave`",
            )
        target = _find_member(swarm, agent_id)
        at = wire.later_instant(ledger.now(), target.joined_at)
        to_it, to_all = (
            lifecycle.lifecycle_content(action, swarm.swarm_id, at, agent_id=agent_id, reason=reason)
            for action in (lifecycle.TARGET_KICKED, lifecycle.MEMBER_KICKED)
        )
        content = lifecycle.notification_record(
            lifecycle.MEMBER_KICKED, swarm.swarm_id, agent_id, known.agent_id, reason
        )
        notice = {"agent_id": agent_id, "subject": f"{agent_id} was kicked from {swarm.name}", "content": content}
        news = [
            make_announcement(to_it, agent_id, [target]),
            make_announcement(to_all, wire.BROADCAST, _other_members(known, swarm, agent_id), notice),
        ]
        return ({"event": "kicked", "swarm_id": swarm.swarm_id, "agent_id": agent_id, "at": at, "announce": news},)

    return find_swarm(ledger.append_decided(kick_events), word)


def leave_swarm(ledger: Ledger, word: str, dissolve: bool) -> None:
    """Leave a swarm; its master transfers or dissolves it first."""

    def leave_events(known: Memberships) -> Sequence[Event]:
        swarm = find_swarm(known, word)
        me = swarm.members.get(known.agent_id)
        at = wire.later_instant(ledger.now(), me.joined_at if me is not None else "")
        others = _other_members(known, swarm)
        mine = swarm.master == known.agent_id
        if mine and others and not dissolve:
            raise Refused(
                f"master cannot leave a swarm with members: {swarm.alias}",
                f"run `agent-mailbox swarm transfer {swarm.alias} AGENT` first, or pass `--dissolve` to end it for all",
            )
        if mine:
            content = lifecycle.lifecycle_content(lifecycle.ENDED, swarm.swarm_id, at, reason="master_left")
        else:
            content = lifecycle.lifecycle_content(lifecycle.LEFT, swarm.swarm_id, at, agent_id=known.agent_id)
        news = [make_announcement(content, wire.BROADCAST, others)]
        how = DISSOLVED if mine else LEFT
        return ({"event": "ended", "swarm_id": swarm.swarm_id, "how": how, "at": at, "announce": news},)

    ledger.append_decided(leave_events)


def transfer_swarm(ledger: Ledger, word: str, agent_id: str) -> Swarm:
    """Make another member the master; tell it first, then everyone."""

    def transfer_events(known: Memberships) -> Sequence[Event]:
        swarm = find_swarm(known, word)
        _require_master(known, swarm, "hand it over")
        at = wire.later_instant(ledger.now(), swarm.handed.get(known.agent_id, ""))
        new = _find_member(swarm, agent_id)
        if agent_id == known.agent_id:
            raise Refused(
                f"member is the master already: {agent_id}",
                f"choose another member: `agent-mailbox swarm members {swarm.alias}`",
            )
        both = {"old_master": known.agent_id, "new_master": agent_id}
        to_it = lifecycle.lifecycle_content(lifecycle.TRANSFER, swarm.swarm_id, at, new_master=agent_id)
        to_all = lifecycle.lifecycle_content(lifecycle.CHANGED, swarm.swarm_id, at, **both)
        notice = {"agent_id": agent_id, "subject": f"{agent_id} is the master of {swarm.name}", "content": to_all}
        news = [
            make_announcement(to_it, agent_id, [new]),
            make_announcement(to_all, wire.BROADCAST, _other_members(known, swarm, agent_id), notice),
        ]
        return ({"event": "mastered", "swarm_id": swarm.swarm_id, "master": agent_id, "at": at, "announce": news},)

    return find_swarm(ledger.append_decided(transfer_events), word)


def mute_sender(ledger: Ledger, word: str, on: bool, reason: str | None = None) -> str:
    """Drop the mail of an agent, or with ``swarm:ALIAS`` of a swarm, silently; ``on=False`` ends that. Return its
    id."""
    _check_reason(reason)

    def mute_events(known: Memberships) -> tuple[Sequence[Event], str]:
        swarm = (
            known.swarm_by_word(word.removeprefix("swarm:"))
            if word.startswith("swarm:") or wire.is_uuid(word)
            else None
        )
        agent = word.partition("/")[2] if swarm is None and word.startswith("swarm:") else word
        if swarm is None and not wire.is_agent_id(agent):
            raise Malformed(f"agent or swarm invalid: {word!r}", "name an agent by its id, or a swarm as swarm:SWARM")
        what, which = ("swarm", swarm.swarm_id) if swarm is not None else ("agent", agent)
        if on == (which in (known.muted_swarms if what == "swarm" else known.muted_agents)):
            return (), which
        news = [] if what == "swarm" else _muting_news(known, which, on, reason)
        return (ledger.make_event("muted" if on else "unmuted", what=what, id=which, announce=news),), which

    ledger.identified_knowledge()
    return ledger.settle_decision(mute_events)[1]


def _muting_news(known: Memberships, agent_id: str, on: bool, reason: str | None) -> list[dict[str, Any]]:
    """Return the notices to local members of each swarm that the agent is in; only they are told."""
    action, said = (lifecycle.MUTED, "muted") if on else (lifecycle.UNMUTED, "unmuted")
    return [
        {
            **make_announcement("-", wire.BROADCAST, ()),
            "swarm_id": swarm.swarm_id,
            "notice": {
                "agent_id": agent_id,
                "subject": f"{agent_id} is {said} here",
                "content": lifecycle.notification_record(action, swarm.swarm_id, agent_id, known.agent_id, reason),
            },
        }
        for swarm in known.seen
        if swarm.state == ACTIVE and agent_id in swarm.members
    ]


def take_state(ledger: Ledger, data: bytes, replace: bool) -> int:
    """Import a state file of this same agent; return its number of swarms.

    A merge changes nobody's key. A swarm that lists this agent under another key is refused: it would take none of our
    mail.
    """
    state = state_file.parse_state(data)
    mine = signing.public_of(ledger.home.read_key())

    def import_events(known: Memberships) -> Sequence[Event]:
        if state.agent_id != known.agent_id:
            raise Refused(
                f"state file belongs to another agent than {known.agent_id}: {state.agent_id}",
                "import a file that `agent-mailbox swarm state export` wrote for this agent",
            )
        latest = instant.text(ledger.now() + wire.FRESH)
        swarms: list[dict[str, Any]] = []
        later = known  # includes the file's earlier swarms: two of one name get two aliases
        for one in state.swarms.values():
            before = known.active_swarm(one.swarm_id)
            _check_keys(one, known.agent_id, mine, {} if replace or before is None else before.members)
            named = known.swarms.get(one.swarm_id)
            alias = named.alias if named else alias_of(one.name, one.swarm_id, later)
            swarms.append({**_clamp_dates(one, latest), "alias": alias})
            taken = Swarm(one.swarm_id, one.name, alias, one.master)
            later = later.replace(swarms={**later.swarms, one.swarm_id: taken})
        muted = {"muted_swarms": list(state.muted_swarms), "muted_agents": list(state.muted_agents)}
        return (ledger.make_event("imported", how="replace" if replace else "merge", swarms=swarms, **muted),)

    ledger.identified_knowledge()
    ledger.append_decided(import_events)
    return len(state.swarms)


def _check_keys(one: state_file.StateSwarm, me: str, mine: str, pinned: Mapping[str, Member]) -> None:
    """Raise ``Refused`` if a swarm's keys differ from the known ones."""
    for member in one.members:
        if member.agent_id == me and member.public_key != mine:
            raise Refused(
                f"swarm lists this agent under another key: {one.name}",
                "copy the state's key to key.pem in the gateway's directory, or run `agent-mailbox swarm join URL`",
                code="key_mismatch",
            )
        old = pinned.get(member.agent_id)
        if old is not None and old.public_key not in ("", member.public_key):
            raise Refused(
                f"member key differs in swarm {one.name}: {member.agent_id}",
                "pass `--replace` to take the file's keys",
                code="key_mismatch",
            )


def _clamp_dates(one: state_file.StateSwarm, latest: str) -> dict[str, Any]:
    """Return the swarm with future join dates clamped to ``latest``: whatever follows a joining is dated after it."""
    value = one.model_dump()
    members = [{**member, "joined_at": min(member["joined_at"], latest)} for member in value["members"]]
    return {**value, "members": members, "joined_at": min(value["joined_at"], latest)}
