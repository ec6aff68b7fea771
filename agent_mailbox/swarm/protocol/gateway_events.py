"""The records of a gateway's own logs: ledger, outbox and statuses, by the kind of event.

Belongs here: the members that the folds rely on. A line that lacks one counts for nothing, and the doctors report it.
An unknown kind is a later version's: it changes nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, create_model, model_validator

from ...core import instant
from .envelope import Model, read_model
from .refusal import Refusal

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


class ImportedSwarm(Model):
    """A swarm of a state file."""

    swarm_id: str
    name: str
    alias: str
    master: str
    members: Annotated[list[MemberFields], Field(min_length=1)]
    settings: dict[str, bool]
    joined_at: Moment


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


class LedgerEvent(Model):
    """A decision about membership."""

    at: Moment
    announce: list[Announcement] = Field(default_factory=list)


class SwarmEvent(LedgerEvent):
    """A decision about one swarm."""

    swarm_id: str


def _event(base: type[Model], **members: Any) -> type[Model]:
    """Return the type of an event with these members beside those of ``base``; one that may be None may be missing."""
    known: Any = {name: (kind, None if type(None) in get_args(kind) else ...) for name, kind in members.items()}
    made: type[Model] = create_model("Event", __base__=base, **known)
    return made


_TRIED = _event(Model, id=str, peer=str, at=Moment)
_MUTING = _event(LedgerEvent, what=Literal["swarm", "agent"], id=str)
_STATUS = _event(Model, message_id=str, status=str, at=Moment)
"""A status that a caller of the local API gave to remote mail."""
KINDS: Mapping[str, type[Model]] = {
    # the ledger: this gateway's name and place; its swarms, and those it asks to join
    "identity": _event(LedgerEvent, agent_id=str, endpoint=str),
    "created": _event(SwarmEvent, name=str, alias=str, member=MemberFields, settings=dict[str, bool]),
    "joining": _event(SwarmEvent, invitation=str, alias=str, master=str),
    # the membership that a master told us
    "entered": _event(
        SwarmEvent,
        master=str,
        members=list[MemberFields],
        name=str | None,
        alias=str | None,
        settings=dict[str, bool] | None,
    ),
    # a request to join, by its id: answered, waiting for approval, accepted
    "asked": _event(SwarmEvent, request=str | None),
    "requested": _event(SwarmEvent, request=str | None, member=MemberFields, token=str),
    "joined": _event(SwarmEvent, request=str | None, member=MemberFields, token=str | None),
    "left": _event(SwarmEvent, agent_id=str),
    "kicked": _event(SwarmEvent, agent_id=str),
    "denied": _event(SwarmEvent, agent_id=str),
    # the key of a member that was listed without one
    "key": _event(SwarmEvent, agent_id=str, public_key=str),
    # an invitation that lets nobody else in, by its fingerprint
    "revoked": _event(SwarmEvent, token=str),
    "ended": _event(SwarmEvent, how=Literal["left", "kicked", "dissolved", "denied"]),
    "mastered": _event(SwarmEvent, master=str),
    # the mailbox of this machine that a swarm belongs to
    "placed": _event(SwarmEvent, mailbox=str),
    # a key that sealed a message
    "sealed": _event(LedgerEvent, public_key=str),
    "muted": _MUTING,
    "unmuted": _MUTING,
    # a state file that was taken in
    "imported": _event(
        LedgerEvent,
        how=Literal["merge", "replace"],
        swarms=list[ImportedSwarm],
        muted_swarms=list[str],
        muted_agents=list[str],
    ),
    # the outbox: a parcel, and each try with one peer
    "queued": QueuedEvent,
    "sent": _TRIED,
    "delivered": _TRIED,
    "failed": _TRIED,
}
"""The type of each kind of event; a line without ``event`` is a status."""


def event_problem(event: Mapping[str, Any]) -> str:
    """Return the first thing wrong with an event; empty if nothing is, or if a later version wrote it."""
    kind = event.get("event")
    model = _STATUS if kind is None else KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return "" if isinstance(kind, str) else "event: Input should be a valid string"
    try:
        read_model(model, event, "event")
    except Refusal as refusal:
        return refusal.message
    return ""
