"""The founding text's state file, schema 1.0.0: the ledger as other programs see it. An import also reads the public
reference's 2.0.0.

Belongs here: its shape (published as ``docs/swarm-state.schema.json``), export, and the checks of an import.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from ..core import instant
from ..errors import BadData
from .protocol import wire
from .protocol.envelope import AgentId, Endpoint, Model, PublicKey, Uuid, read_model
from .protocol.membership import ACTIVE, Memberships
from .protocol.refusal import Refusal


def _parse_moment(text: str) -> str:
    return instant.text(instant.parse(text))


Moment = Annotated[str, StringConstraints(min_length=20, max_length=40), AfterValidator(_parse_moment)]
"""An instant in any spelling of RFC 3339, brought into one so that instants compare."""


class StateMember(Model):
    """A member of a swarm."""

    agent_id: AgentId
    endpoint: Endpoint
    public_key: PublicKey
    joined_at: Moment


class Settings(Model):
    """A swarm's settings."""

    allow_member_invite: bool = False
    require_approval: bool = False


class StateSwarm(Model):
    """A swarm."""

    swarm_id: Uuid
    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    master: AgentId
    members: list[StateMember]
    joined_at: Moment
    settings: Settings


class CachedKey(Model):
    """A key as it was learnt: from the master's answer, or from an event the master signed."""

    public_key: PublicKey
    fetched_at: Moment
    endpoint: Endpoint | None = None


class StoredState(Model):
    """The state file of an agent."""

    model_config = ConfigDict(title="Agent Swarm membership state")

    schema_version: Literal["1.0.0", "2.0.0"]  # the reference's 2.0.0 holds its mail, too: ignored
    agent_id: AgentId
    exported_at: Moment | None = None
    swarms: dict[Uuid, StateSwarm]
    muted_swarms: list[Uuid] = Field(default_factory=list)
    muted_agents: list[AgentId] = Field(default_factory=list)
    public_keys: dict[AgentId, CachedKey] = Field(default_factory=dict)


def state_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **StoredState.model_json_schema()}


def export_state(known: Memberships, exported_at: str | None = None) -> dict[str, Any]:
    """Return the state. ``exported_at``: the instant to write into a file for somebody else."""
    active = [swarm for swarm in known.swarms.values() if swarm.state == ACTIVE]
    keys = {
        m.agent_id: {"public_key": m.public_key, "fetched_at": m.joined_at, "endpoint": f"{m.endpoint}/info"}
        for swarm in active
        for m in swarm.members.values()
        if m.public_key and m.agent_id != known.agent_id
    }
    return {
        "schema_version": "1.0.0",
        "agent_id": known.agent_id,
        **({"exported_at": exported_at} if exported_at else {}),
        "swarms": {
            swarm.swarm_id: {
                "swarm_id": swarm.swarm_id,
                "name": swarm.name,
                "master": swarm.master,
                "members": [m.object for m in swarm.members.values() if m.public_key],
                "joined_at": swarm.joined_at,
                "settings": Settings(**swarm.settings).model_dump(),
            }
            for swarm in active
        },
        "muted_swarms": list(known.muted_swarms),
        "muted_agents": list(known.muted_agents),
        "public_keys": keys,
    }


def parse_state(data: bytes) -> StoredState:
    """Return the state in a file; raise ``BadData`` naming the problem."""
    try:
        state = read_model(StoredState, wire.parse_json(data, "the state file"), "the state file")
    except Refusal as refusal:
        raise BadData(
            f"state file invalid: {refusal.message}", "write one with `agent-mailbox swarm state export`"
        ) from None
    for key, swarm in state.swarms.items():
        members = {m.agent_id for m in swarm.members}
        if key != swarm.swarm_id or swarm.master not in members or len(members) != len(swarm.members):
            raise BadData(
                f"state file's swarm has another id, no master among its members, or a member twice: {key}",
                "correct the file, or write it again with `agent-mailbox swarm state export`",
            )
        if not all(wire.is_admissible(agent) for agent in members):
            raise BadData(
                f"state file's swarm has a member id that is reserved or ends in a message type: {key}",
                "remove that member from the file",
            )
    return state
