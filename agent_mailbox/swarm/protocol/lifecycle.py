"""Lifecycle messages: their content, authority and effect.

Belongs here: the contents (signed, so only they are acted upon), the table of authority, the decision. Content is a
JSON string with an ``action`` (the reference's way). Ours has ``at``, the instant of the event, the same in every
retry: a belated ``member_left`` evicts no rejoined member.

Clocks differ by minutes, so each event is dated after the one it follows (``wire.later_instant``). Example: the master
dates bob's joining 12:00. He leaves when his slow clock says 11:55, and dates that 12:00:00.001.
"""

from __future__ import annotations

import re
from typing import Any

from ...core import instant
from ...core.records import Record
from . import wire
from .envelope import Envelope
from .membership import DISSOLVED, KICKED, MAX_MEMBERS, Event, Member, Swarm, bearer_of
from .refusal import Refusal

JOINED, LEFT = "member_joined", "member_left"
TARGET_KICKED, MEMBER_KICKED = "kicked", "member_kicked"
TRANSFER, CHANGED = "master_transfer", "master_changed"
ENDED = "swarm_dissolved"
MUTED, UNMUTED = "member_muted", "member_unmuted"
_MASTERS = (JOINED, TARGET_KICKED, MEMBER_KICKED, TRANSFER, CHANGED, ENDED)
"""Actions that only the master may send. ``member_left`` is the leaver's; anything else changes nothing."""
_SPLICED = re.compile(
    rf'\{{"action":"({TARGET_KICKED}|{MEMBER_KICKED})","agent_id":"([^"\\]+)","reason":".*"\}}', re.DOTALL
)
"""A kick as the reference writes it: it quotes the reason unescaped, so a quote in it breaks the JSON."""


class Outcome(Record):
    """The effect of a lifecycle message: events for the ledger, possibly none, and one line for people."""

    events: tuple[Event, ...] = ()
    told: str = ""


def joined_content(swarm_id: str, new: Member) -> str:
    """Return the news of a joining, with the key, so that nobody has to ask for it.

    The member is there twice: the reference reads it beside the action, its OPERATIONS.md in ``member``.
    """
    value = {"type": "system", "action": JOINED, "swarm_id": swarm_id}
    return wire.dump_json({**value, **new.object, "at": new.joined_at, "member": new.object})


def lifecycle_content(action: str, swarm_id: str, at: str, **more: Any) -> str:
    """Return any other lifecycle message; members that are None are left out."""
    value = {"type": "system", "action": action, "swarm_id": swarm_id}
    return wire.dump_json({**value, **{key: word for key, word in more.items() if word is not None}, "at": at})


def notification_record(
    action: str, swarm_id: str, agent_id: str, by: str | None = None, reason: str | None = None
) -> str:
    """Return the record for one's own inbox (founding text, "Notification message format")."""
    value = {"type": "system", "action": action, "swarm_id": swarm_id, "agent_id": agent_id}
    return wire.dump_json({**value, "initiated_by": by, "reason": reason})


def _parse_content(text: str) -> dict[str, Any] | None:
    try:
        return wire.parse_json(text, "the content")
    except Refusal:
        spliced = _SPLICED.fullmatch(text)
        return {"action": spliced[1], "agent_id": spliced[2]} if spliced else None  # prose: mail like any other


def is_leaving(text: str) -> bool:
    """Return whether a content tells that its sender left."""
    return (_parse_content(text) or {}).get("action") == LEFT


def decide_lifecycle(envelope: Envelope, swarm: Swarm, me: str) -> Outcome:
    """Return the effect of a member's verified system message. Raise ``Refusal`` if its sender lacks the authority."""
    content = _parse_content(envelope.content)
    action = content.get("action") if content is not None else None
    if content is None or not isinstance(action, str):
        return Outcome()
    sender = envelope.sender.agent_id
    if action in _MASTERS and sender != swarm.master:
        raise Refusal("NOT_MASTER", f"{action} is the master's to say")
    if content.get("swarm_id", swarm.swarm_id) != swarm.swarm_id:
        raise Refusal("INVALID_FORMAT", "the content speaks of another swarm than its message")
    at = content.get("at") or content.get("joined_at") or envelope.timestamp
    if not isinstance(at, str) or not wire.is_instant(at):
        at = envelope.timestamp  # the reference has microseconds here
    # it may follow an event that another clock dated: ahead of its message by as much as clocks differ, at most
    at = min(at, instant.text(instant.parse(envelope.timestamp) + wire.FRESH))
    about = content.get("agent_id")
    if action == JOINED:
        return _joined_outcome(content, swarm, me, at)
    if action == LEFT:
        if about != sender:
            raise Refusal("NOT_AUTHORIZED", "an agent leaves by its own word")
        return _left_outcome(swarm, sender, at, "left")
    if action == TARGET_KICKED or (action == MEMBER_KICKED and about == me):
        return _kicked_me(envelope, swarm, me, at)
    if action == MEMBER_KICKED and isinstance(about, str):
        if about == swarm.master:
            raise Refusal("NOT_AUTHORIZED", "the master cannot be kicked")
        return _left_outcome(swarm, about, at, "kicked")
    if action in (TRANSFER, CHANGED):
        return _mastered_outcome(content, swarm, at)
    if action == ENDED:
        events = ({"event": "ended", "swarm_id": swarm.swarm_id, "how": DISSOLVED, "at": at},)
        return Outcome(events, f"{swarm.name} was dissolved by its master")
    return Outcome()


def _joined_outcome(content: dict[str, Any], swarm: Swarm, me: str, at: str) -> Outcome:
    given = content.get("member") if isinstance(content.get("member"), dict) else content
    new = _parse_member({**content, **given, "joined_at": at} if given is not None else content)
    if new.agent_id in (me, swarm.master):
        return Outcome(told=f"{new.agent_id} is in {swarm.name}")
    known, gone = swarm.members.get(new.agent_id), swarm.departed.get(new.agent_id, "")
    if at <= gone or (known is not None and (at <= known.joined_at or not new.public_key)):
        return Outcome(told=f"{new.agent_id} joined {swarm.name} earlier")
    if bearer := bearer_of(new.public_key, swarm, new.agent_id):
        raise Refusal("KEY_MISMATCH", f"the key of {new.agent_id} is that of {bearer}")
    if known is None and len(swarm.members) >= MAX_MEMBERS:
        raise Refusal("JOIN_DENIED", f"a swarm has at most {MAX_MEMBERS} members here")
    event = {"event": "joined", "swarm_id": swarm.swarm_id, "member": new.object, "at": at}
    return Outcome((event,), f"{new.agent_id} joined {swarm.name}")


def _parse_member(value: dict[str, Any]) -> Member:
    agent_id, endpoint, key = (value.get(name) for name in ("agent_id", "endpoint", "public_key"))
    try:
        if not isinstance(agent_id, str) or not isinstance(endpoint, str) or not wire.is_admissible(agent_id):
            raise ValueError("no agent that can be a member")
        key = wire.base64_of(wire.raw_key(key)) if isinstance(key, str) else ""
        return Member(agent_id, wire.check_endpoint(endpoint), key, value["joined_at"])
    except ValueError as error:
        raise Refusal("INVALID_FORMAT", f"member_joined: {error}") from None


def _left_outcome(swarm: Swarm, agent_id: str, at: str, how: str) -> Outcome:
    known = swarm.members.get(agent_id)
    if known is None or at < known.joined_at:
        return Outcome(told=f"{agent_id} is no longer, or again, in {swarm.name}")
    event = {"event": how, "swarm_id": swarm.swarm_id, "agent_id": agent_id, "at": at}
    return Outcome((event,), f"{agent_id} {'left' if how == 'left' else 'was kicked from'} {swarm.name}")


def _kicked_me(envelope: Envelope, swarm: Swarm, me: str, at: str) -> Outcome:
    mine = swarm.members.get(me)
    if envelope.recipient not in (me, wire.BROADCAST) or (mine is not None and at < mine.joined_at):
        return Outcome(told=f"an earlier kick from {swarm.name}")
    event = {"event": "ended", "swarm_id": swarm.swarm_id, "how": KICKED, "at": at}
    return Outcome((event,), f"the master kicked this agent from {swarm.name}")


def _mastered_outcome(content: dict[str, Any], swarm: Swarm, at: str) -> Outcome:
    new = content.get("new_master")
    if not isinstance(new, str) or new not in swarm.members:
        raise Refusal("INVALID_FORMAT", "the new master is no member")
    if at <= swarm.handed.get(swarm.master, ""):
        return Outcome(told=f"an earlier change of the master of {swarm.name}")
    event = {"event": "mastered", "swarm_id": swarm.swarm_id, "master": new, "at": at}
    return Outcome((event,), f"{new} is the master of {swarm.name}")
