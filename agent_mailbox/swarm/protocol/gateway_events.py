"""The records of a gateway's own logs: ledger, outbox and statuses, one type for each kind of event.

Belongs here: the members that the folds rely on. A line that lacks one counts for nothing, and the doctors report it.
An unknown kind is a later version's: it changes nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from ...core import instant
from .envelope import Model

_PLAIN = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
"""Our own spelling, on days that every month has: these need no parsing, which costs more than all the rest."""


def _check_instant(text: str) -> str:
    if _PLAIN.fullmatch(text) is None:
        instant.parse(text)
    return text


Moment = Annotated[str, AfterValidator(_check_instant)]
"""An instant of ours, in the form that compares as text."""


class PeerFields(Model):
    """A peer of a parcel."""

    agent_id: str
    endpoint: str
    public_key: str | None = None


class MemberFields(PeerFields):
    """A member, as an event has it; ``joined_at`` defaults to the event's instant."""

    joined_at: Moment | None = None


class NoticeFields(Model):
    """A notice to those who joined here."""

    agent_id: str
    subject: str
    content: str


class Announcement(Model):
    """The news of a decision: to peers, and by ``notice`` or ``mail`` to those here."""

    id: str
    recipient: str
    content: str
    peers: list[PeerFields]
    swarm_id: str | None = None
    notice: NoticeFields | None = None
    mail: dict[str, Any] | None = None


class LedgerEvent(Model):
    """A decision about membership."""

    at: Moment
    announce: list[Announcement] = Field(default_factory=list)


class Identity(LedgerEvent):
    """This gateway's name and place."""

    agent_id: str
    endpoint: str


class SwarmEvent(LedgerEvent):
    """A decision about one swarm."""

    swarm_id: str


class Created(SwarmEvent):
    """A swarm of ours."""

    name: str
    alias: str
    member: MemberFields
    settings: dict[str, bool]


class Joining(SwarmEvent):
    """A request of ours to join."""

    invitation: str
    alias: str
    master: str


class Entered(SwarmEvent):
    """The membership that a master told us."""

    master: str
    members: list[MemberFields]
    name: str | None = None
    alias: str | None = None
    settings: dict[str, bool] | None = None


class Asked(SwarmEvent):
    """An answered request to join, by its id."""

    request: str | None = None


class Requested(Asked):
    """An agent that waits for approval."""

    member: MemberFields
    token: str


class Joined(Asked):
    """An agent that came in."""

    member: MemberFields
    token: str | None = None


class AgentEvent(SwarmEvent):
    """An agent that left, was kicked or denied."""

    agent_id: str


class KeyLearnt(AgentEvent):
    """The key of a member that was listed without one."""

    public_key: str


class Revoked(SwarmEvent):
    """An invitation that lets nobody else in, by its fingerprint."""

    token: str


class Ended(SwarmEvent):
    """The end of our membership."""

    how: Literal["left", "kicked", "dissolved", "denied"]


class Placed(SwarmEvent):
    """The mailbox of this machine that a swarm belongs to."""

    mailbox: str


class Mastered(SwarmEvent):
    """A swarm's new master."""

    master: str


class Sealed(LedgerEvent):
    """A key that sealed a message."""

    public_key: str


class Muting(LedgerEvent):
    """A mute, or its end."""

    what: Literal["swarm", "agent"]
    id: str


class ImportedSwarm(Model):
    """A swarm of a state file."""

    swarm_id: str
    name: str
    alias: str
    master: str
    members: Annotated[list[MemberFields], Field(min_length=1)]
    settings: dict[str, bool]
    joined_at: Moment


class Imported(LedgerEvent):
    """A state file that was taken in."""

    how: Literal["merge", "replace"]
    swarms: list[ImportedSwarm]
    muted_swarms: list[str]
    muted_agents: list[str]


class QueuedEvent(Model):
    """Mail, or an announcement, on its way out. A compacted log drops the text, and after a week the peers."""

    id: str
    at: Moment
    peers: list[PeerFields] = Field(default_factory=list)
    sender: str | None = Field(None, alias="from")
    swarm_id: str | None = None
    recipient: str | None = None
    type: str | None = None
    content: str | None = None
    expires_at: Moment | None = None
    why: str | None = None

    @model_validator(mode="after")
    def _check_addressed(self) -> QueuedEvent:
        if (self.peers or self.why) and None in (self.swarm_id, self.recipient, self.type):
            raise ValueError("a parcel needs swarm_id, recipient and type")
        return self


class Tried(Model):
    """The outcome of a try with one peer."""

    id: str
    peer: str
    at: Moment


class StatusGiven(Model):
    """A status that a caller of the local API gave to remote mail."""

    message_id: str
    status: str
    at: Moment


KINDS: Mapping[str, type[Model]] = {
    "identity": Identity,
    "created": Created,
    "joining": Joining,
    "entered": Entered,
    "asked": Asked,
    "requested": Requested,
    "joined": Joined,
    "left": AgentEvent,
    "kicked": AgentEvent,
    "denied": AgentEvent,
    "key": KeyLearnt,
    "revoked": Revoked,
    "ended": Ended,
    "mastered": Mastered,
    "placed": Placed,
    "sealed": Sealed,
    "muted": Muting,
    "unmuted": Muting,
    "imported": Imported,
    "queued": QueuedEvent,
    "sent": Tried,
    "delivered": Tried,
    "failed": Tried,
}
"""The type of each kind of event; a line without ``event`` is a status."""


def event_problem(event: Mapping[str, Any]) -> str:
    """Return the first thing wrong with an event; empty if nothing is, or if a later version wrote it."""
    kind = event.get("event")
    model = StatusGiven if kind is None else KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return "" if isinstance(kind, str) else "event: Input should be a valid string"
    try:
        model.model_validate(event)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc'][:4])) or 'event'}: {first['msg'][:200]}"
    return ""
