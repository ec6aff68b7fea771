"""Taking a state file in: another program's, or another machine's, word for who is in which swarm.

Belongs here: what it may change. The file's shape is ``state_file``'s.
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
from .protocol.membership import Event, Knowledge, Member, fold

NO_MUTES: dict[str, list[str]] = {"muted_swarms": [], "muted_agents": []}


def take_state(ledger: Ledger, data: bytes, replace: bool) -> int:
    """Import a state file of this same agent; returns how many swarms it held. A merge changes nobody's key, and where
    the swarm has this agent under another key nobody would take its mail."""
    state = state_file.parse(data)
    mine = signing.public_of(ledger.home.key())

    def decide(known: Knowledge) -> Sequence[Event]:
        if state.agent_id != known.agent_id:
            raise Refused(f"the state is {state.agent_id}'s, this gateway is {known.agent_id}", "import your own")
        latest = instant.text(ledger.now() + wire.FRESH)
        swarms: list[dict[str, Any]] = []
        later = known  # with those of the file that came before: two of one name get two aliases
        for one in state.swarms.values():
            before = known.active(one.swarm_id)
            _check_keys(one, known.agent_id, mine, {} if replace or before is None else before.members)
            named = known.swarms.get(one.swarm_id)
            alias = named.alias if named else alias_of(one.name, one.swarm_id, later)
            swarms.append({**_dated(one, latest), "alias": alias})
            later = fold([{"event": "imported", "how": "merge", "swarms": swarms[-1:], **NO_MUTES}], later)
        muted = {"muted_swarms": list(state.muted_swarms), "muted_agents": list(state.muted_agents)}
        return (ledger.event("imported", how="replace" if replace else "merge", swarms=swarms, **muted),)

    ledger.identified()
    ledger.decide(decide)
    return len(state.swarms)


def _check_keys(one: state_file.StateSwarm, me: str, mine: str, pinned: Mapping[str, Member]) -> None:
    """Raise ``Refused`` where a swarm's keys are not those that are known."""
    for member in one.members:
        if member.agent_id == me and member.public_key != mine:
            raise Refused(
                f"{one.name} has this agent with another key",
                "bring the key that belongs to the state (docs/swarm.md), or join anew",
                code="key_mismatch",
            )
        old = pinned.get(member.agent_id)
        if old is not None and old.public_key not in ("", member.public_key):
            raise Refused(
                f"{member.agent_id} has another key in {one.name}",
                "a merge changes nobody's key; --replace takes the file's word for it",
                code="key_mismatch",
            )


def _dated(one: state_file.StateSwarm, latest: str) -> dict[str, Any]:
    """The swarm, with nobody in it since a time that has not come: what follows upon a joining is dated after it."""
    value = one.model_dump()
    members = [{**member, "joined_at": min(member["joined_at"], latest)} for member in value["members"]]
    return {**value, "members": members, "joined_at": min(value["joined_at"], latest)}
