"""Import of a state file: another program's, or another machine's, record of swarm membership.

Belongs here: the limits of what it may change. ``state_file`` defines its shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import instant
from ..errors import Refused
from . import state_file
from .joining import alias_of
from .ledger import Ledger
from .protocol import signing, wire
from .protocol.membership import Event, Member, Memberships, Swarm


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
