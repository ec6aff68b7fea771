"""The archive plan: what the steward may move, and what must stay.

Belongs here: when a message is finished, and the compaction of the roster. It decides; ``store.rotation`` carries out.
"""

from __future__ import annotations

from . import claims, expiry, inbox
from .address import DIRECT, ROLE
from .records import Message, Record, RosterEvent
from .roster import DEAD, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .inbox import State


class Plan(Record):
    """Message ids to move, and how many of those that stay still have to be delivered."""

    move: frozenset[str]
    pending: int


def plan(state: State, now: int, max_live: int) -> Plan:
    """What to move at ``now``: nothing up to ``max_live`` messages, above it everything that is finished."""
    move: set[str] = set()
    if len(state.messages) > max_live:
        replies = inbox.repliers(state)
        finished = {m.id for m in state.messages.values() if is_finished(m, state, now, replies)}
        # The reply that settles an obligation stays as long as the message that asked for it.
        owing = {m.id for m in state.messages.values() if m.ack and m.id not in finished}
        move = {i for i in finished if state.messages[i].thread not in owing}
    pending = sum(is_pending(m, state, now) for m in state.messages.values() if m.id not in move)
    return Plan(move=frozenset(move), pending=pending)


def is_finished(message: Message, state: State, now: int, replies: Mapping[str, set[str]]) -> bool:
    """Is everyone done with it? Pending mail never is; see semantics, "Archive", for each mode."""
    if message.ack and _owed(message, state, replies.get(message.id, frozenset())):
        return False
    if state.expired(message, now):
        return True
    return all(_part_expired(a, message, state, now) or _part_done(a, message, state) for a in message.recipients)


def _part_expired(address: str, message: Message, state: State, now: int) -> bool:
    deadline = expiry.part_expires_at(address, message, state.roster, state.ttls)
    return deadline is not None and now >= deadline


def _part_done(address: str, message: Message, state: State) -> bool:
    mode = state.roster.mode(address)
    if mode == DIRECT:
        heirs = _heirs(address, state.roster)
        return not heirs or any(claims.read_by(message, state.reads, state.roster.lineage(h)) for h in heirs)
    if mode == ROLE:
        return claims.holder(message, state.reads, state.roster) is not None
    return False  # tag and broadcast mail is finished by expiry alone


def _heirs(word: str, roster: Roster) -> list[str]:
    agent = roster.get(word) or roster.bearer(word)
    return roster.heirs(agent.session_id if agent else word)


def _owed(message: Message, state: State, repliers: set[str] | frozenset[str]) -> bool:
    """Does an agent not dead still owe the ack it was asked for?"""
    for read in state.reads.of(message.id):
        for heir in state.roster.heirs(read.session_id):
            lineage = state.roster.lineage(heir)
            if not state.reads.acked(message.id, lineage) and repliers.isdisjoint(lineage):
                return True
    return False


def is_pending(message: Message, state: State, now: int) -> bool:
    """Is there someone it has still to reach: an unread direct recipient, an unclaimed role, a tag's other bearers?"""
    if state.expired(message, now):
        return False
    for address in message.recipients:
        if state.roster.mode(address) in (DIRECT, ROLE):
            if not _part_done(address, message, state):
                return True
        elif any(
            a.state != DEAD and inbox.item_for(message, state.roster.reader(a.session_id), state, now)
            for a in state.roster.agents.values()
        ):
            return True
    return False


def compacted(events: Iterable[RosterEvent], since: int) -> list[RosterEvent]:
    """The fewest events that fold into the same agents, frozen spans that ended before ``since`` forgotten.

    ``since`` is the instant of the oldest live message: no earlier span can stop a clock that still runs.
    """
    held: dict[str, set[str]] = {}
    roster = Roster()
    for event in events:
        roster.apply(event)
        held.setdefault(event.session_id, set()).update(t for t in event.tags or () if t.startswith("role:"))
    return [told for agent in roster.agents.values() for told in _retold(agent, held[agent.session_id], since)]


def _retold(agent: Agent, held: set[str], since: int) -> list[RosterEvent]:
    """The agent's life as events: registered with every role it ever held, older selves, frozen spans, its end."""

    def event(kind: str, at: int, **said: Any) -> RosterEvent:
        return RosterEvent(event=kind, session_id=agent.session_id, timestamp=at, **said)

    lost = tuple(sorted(held - set(agent.tags)))
    first = event("register", agent.registered, name=agent.name, tags=(*agent.tags, *lost), lead=agent.lead)
    told = [first.replace(client=agent.client)]
    if lost:
        told.append(event("update", agent.registered, tags=agent.tags))
    told += [event("update", agent.registered, continues=old) for old in reversed(agent.continues)]
    for start, end in agent.frozen:
        if end is None or end > since:
            told.append(event("freeze", start))
            if end is not None:
                told.append(event("thaw", end))
    last = "retire" if agent.state == DEAD else "update"
    return [*told, event(last, agent.changed, reason=agent.reason)]
