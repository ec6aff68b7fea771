"""The archive plan: the mail that the steward may move, and the mail that must stay.

Belongs here: when a message is finished, and the compaction of the roster. It decides; ``store.archive.rotation``
carries out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import inbox, message_reads, obligations
from ..address import DIRECT, ROLE
from ..control.state import ControlState
from ..proofs import BEFORE
from ..records import USER, Message, Record, RosterEvent
from ..roster import DEAD, Agent, Roster
from . import notes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..inbox import InboxState


class RetentionPlan(Record):
    """Message ids to move, and how many of those that stay still have to be delivered."""

    move: frozenset[str]
    pending: int


def plan(state: InboxState, now: int, max_live: int) -> RetentionPlan:
    """Return the plan at ``now``: up to ``max_live`` messages nothing moves, above it all finished mail does."""
    move: set[str] = set()
    if len(state.messages) > max_live:
        replies = obligations.repliers(state)
        plane = ControlState(state.roster, state.messages.values())
        over = plane.tasks.over() | notes.past(state.messages.values(), state.roster)
        over |= inbox.replaced_notices(state.messages.values())
        finished = {m.id for m in state.messages.values() if m.id in over or is_finished(m, state, now, replies)}
        move = _without_settling_replies(finished, state)
        if plane.verdicts:
            move = _without_standing(move, plane, now)
    pending = sum(is_pending(m, state, now) for m in state.messages.values() if m.id not in move)
    return RetentionPlan(move=frozenset(move), pending=pending)


def _without_settling_replies(finished: set[str], state: InboxState) -> set[str]:
    """Return the finished mail without the replies that settle mail which stays: they stay as long as it does.

    A reply settles a request for an ack. It also tells that its sender saw mail, where nothing else tells that yet.
    So do the replies to their own requests stay.
    """
    answers: dict[str, list[str]] = {}
    for i in finished:
        if (request := state.messages[i].thread) is not None:
            answers.setdefault(request, []).append(i)
    move = set(finished)
    staying = [i for i in state.messages if i not in finished]
    while staying:
        stays = state.messages[staying.pop()]
        settling = [i for i in answers.get(stays.id, ()) if i in move]
        if settling and (stays.ack or _may_go_back(stays, state)):
            move.difference_update(settling)
            staying += settling
    return move


def _may_go_back(message: Message, state: InboxState) -> bool:
    """Return whether the death of a session may give the message back, unless a reply tells that it was seen.

    A hook offered it, or it is claimed: the read may be on its way from another machine.
    """
    return bool(state.reads.unseen(message.id)) or message_reads.claimer(message, state.reads, state.roster) is not None


def movable(named: set[str], state: InboxState, now: int, readers: Collection[str] | None) -> set[str]:
    """Return which of the messages that a bundle names may go: a request only if all that is about it may.

    Its answers, which another bundle may have, go behind it: without its answer a request would be open again.
    ``readers``: those who must have been shown the mail; None asks nobody."""
    messages = state.messages.values() if any(state.messages[i].type == "control" for i in named) else ()
    plane = ControlState(state.roster, messages)
    groups = [group for group in plane.groups() if not named.isdisjoint(group)]
    whole = named.union(*groups)
    may = whole if readers is None else without_open(whole, state, readers, now)
    may = _without_standing(may, plane, now) & named
    for first, *others in groups:
        if first not in may:
            may.difference_update(others)
    return may


def _without_standing(move: set[str], plane: ControlState, now: int) -> set[str]:
    move = move - plane.standing(now)
    for group in plane.groups():
        if not move.issuperset(group):
            move.difference_update(group)
    return move


def without_open(move: set[str], state: InboxState, readers: Collection[str], now: int) -> set[str]:
    """Return the same without what one of these readers has yet to be shown, or to ack; mail that was given back is
    archived."""
    asked = move - state.reads.ever_released()
    part = state.replace(messages={i: state.messages[i] for i in state.messages if i in asked})
    unread = ((who, item) for who in readers for item in inbox.waiting(part.roster.reader(who), part, now))
    asking = [message for message in part.messages.values() if message.ack]
    replies = obligations.repliers(state) if asking else {}
    owed = {m.id for m in asking if _owed(m, state, replies.get(m.id, ()), frozenset(readers))}
    return move - {item.message.id for who, item in unread if who != USER or item.mode == DIRECT} - owed


def is_finished(message: Message, state: InboxState, now: int, replies: Mapping[str, set[str]]) -> bool:
    """Return whether the message is finished, by mode (semantics, "Archive"). Pending mail never is."""
    if message.ack and _owed(message, state, replies.get(message.id, ())):
        return False
    if state.expired(message, now):
        return True
    if any(state.roster.state(read.session_id) != DEAD for read in state.reads.unseen(message.id)):
        return False
    return all(_part_done(a, message, state) for a in message.recipients)


def _part_done(address: str, message: Message, state: InboxState) -> bool:
    mode = state.roster.mode(address)
    if mode == DIRECT:
        heirs = state.roster.heirs_of(address)
        return all(message_reads.read_by(message, state.reads, state.roster.lineage(h), state.roster) for h in heirs)
    if mode == ROLE:
        return message_reads.holder(message, state.reads, state.roster, address) is not None
    return False  # tag and broadcast mail is finished by expiry alone


def _owed(message: Message, state: InboxState, repliers: Collection[str], among: frozenset[str] | None = None) -> bool:
    """Return whether an agent that is not dead still owes the requested ack: one ``among`` these (None: any)."""
    heirs = {heir for read in state.reads.of(message.id) for heir in state.roster.heirs(read.session_id)}
    some = heirs if among is None else heirs & among
    return any(obligations.is_owed(message, state.roster.lineage(heir), state, repliers) for heir in some)


def is_pending(message: Message, state: InboxState, now: int) -> bool:
    """Return whether a reader is missing: an unread direct recipient, an unclaimed role, a tag's other bearers."""
    if message.type == notes.NOTE or state.expired(message, now):
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
    """Return the fewest events that fold into the same agents, without frozen spans that ended before ``since``.

    ``since`` is the instant of the oldest live message: no earlier span can stop a clock that still runs. Proofs are
    lost: nothing is retold under a seal.
    """
    held: dict[str, set[str]] = {}
    roster = Roster()
    for event in events:
        roster.apply(event)
        agent = roster.agents.get(event.session_id)
        held.setdefault(event.session_id, set()).update(agent.roles if agent else ())
    lives = [_retold(agent, held[agent.session_id], since) for agent in roster.agents.values()]
    # Phase by phase: while all agents are still alive, no name is freed for another.
    return [event for phase in zip(*lives, strict=True) for events in phase for event in events]


def retold_dead(
    events: Mapping[str, Sequence[RosterEvent]], roster: Roster, since: int, most: int
) -> tuple[set[str], list[RosterEvent]]:
    """Return the dead, of some ``most`` events, whose lives take at most half of their events, and these lives.

    ``events`` are those of each agent. An agent that was provably led and died since then may come back."""
    found, told, count = set[str](), list[RosterEvent](), 0
    for who, theirs in events.items():
        if len(theirs) < 4:
            continue  # a life takes two at least, its beginning and its end: those of a fleet have no more
        agent = roster.agents.get(who)
        if agent is None or agent.state != DEAD or (agent.proven_leads and agent.changed >= since):
            continue
        life = compacted(theirs, since)
        if 2 * len(life) <= len(theirs) and count < most:
            found.add(who)
            count += len(theirs)
    if found:
        told = compacted((event for who in events if who in found for event in events[who]), since)
    return found, told


def requests_first(move: Collection[str], state: InboxState) -> list[str]:
    """Return the messages to move in an order of which any beginning may be moved alone: a reply follows its
    request."""
    found: dict[str, None] = {}
    for message_id in state.messages:
        chain: dict[str, None] = {}
        at: str | None = message_id
        while at is not None and at in move and at not in found and at not in chain:
            chain[at] = None
            at = state.messages[at].thread
        found.update(dict.fromkeys(reversed(chain)))
    return list(found)


def _retold(agent: Agent, held: set[str], since: int) -> tuple[list[RosterEvent], ...]:
    """Return the agent's life in phases.

    They are: registered with every role it ever held; its tags and older selves; the frozen spans that may matter; its
    end.
    """

    def event(kind: str, at: int, **said: Any) -> RosterEvent:
        return RosterEvent(event=kind, session_id=agent.session_id, timestamp=at, proof=BEFORE, **said)

    lost = tuple(sorted(held - set(agent.tags)))
    at_first = dict(agent.leads[:1]).get(agent.registered)
    first = event("register", agent.registered, name=agent.name, tags=(*agent.tags, *lost), lead=at_first)
    selves = [event("update", agent.registered, tags=agent.tags)] if lost else []
    older = zip(reversed(agent.continues), reversed(agent.heir), strict=True)
    selves += [event("update", since, continues=old) for old, since in older]
    selves += [event("update", since, lead=lead) for since, lead in agent.leads[1 if at_first else 0 :]]
    selves += [event("retire", agent.returned), event("register", agent.returned)] if agent.returned else []
    selves += [event("register", agent.again)] if agent.again != agent.returned else []
    spans = []
    for start, end in agent.frozen:
        if end is None or end > since:
            spans += [event("freeze", start), *([event("thaw", end)] if end is not None else [])]
    last = event("retire" if agent.state == DEAD else "update", agent.changed, reason=agent.reason)
    return [first.replace(client=agent.client, muted=agent.muted or None)], selves, spans, [last]
