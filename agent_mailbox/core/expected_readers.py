"""The readers that a message was for when it was sent, and which of them have not seen it.

Belongs here: the exceptions of a receipt, from the message, its reads and the roster. ``reach`` answers its sender at
the moment of sending; this is asked later. The roster keeps present tags alone, so those count.
"""

from __future__ import annotations

from . import inbox, message_reads
from .address import ALL, BROADCAST, DIRECT, ROLE, swarm_of
from .reach import find_bearers
from .records import USER, Record
from .roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .message_reads import Reads
    from .records import Message
    from .roster import Agent, Roster

_STAGES = (message_reads.OFFERED, message_reads.TITLE_SEEN, message_reads.READ, message_reads.SEEN, message_reads.ACKED)
_HAS_SEEN = (message_reads.READ, message_reads.SEEN, message_reads.ACKED)


class ReaderExceptions(Record):
    """The sessions that have not seen a message. ``rivals``: a role and its holders, of whom one is to see it, and none
    has. ``offered``: they were shown it, without a sign yet that they saw it. ``titles``: they saw its title alone.
    ``ended``: they died before they saw it. ``seen``: all that have. ``least``: how far all of those came."""

    unseen: tuple[str, ...]
    rivals: tuple[tuple[str, tuple[str, ...]], ...]
    offered: tuple[str, ...]
    titles: tuple[str, ...]
    ended: tuple[str, ...]
    seen: tuple[str, ...]
    least: str

    @property
    def is_none(self) -> bool:
        """Return whether there is no exception: everyone has seen it whom it was for."""
        return not (self.unseen or self.rivals or self.offered or self.titles or self.ended)


def find_exceptions(message: Message, reads: Reads, roster: Roster) -> ReaderExceptions:
    """Return who has not seen a message that it was for when it was sent."""
    expected, roles = _find_expected(message, roster)
    stages = {who: _stage_of(who, message, reads, roster) for who in expected}
    rivals = []
    for role, holders in roles.items():
        holder = message_reads.holder(message, reads, roster, role)
        taker = holder or message_reads.claimer(message, reads, roster, role)
        if taker is not None:
            stages[taker] = _stage_of(taker, message, reads, roster)
        elif stages.keys().isdisjoint(holders):
            rivals.append((role, holders))
    waits = [who for who, stage in stages.items() if stage is None]
    dead = {who for who in waits if roster.state(who) == DEAD}
    seen = {who: stage for who, stage in stages.items() if stage in _HAS_SEEN}
    known = {old for who in seen for old in roster.lineage(who)}
    others = [who for who in message_reads.readers(message, reads) if who not in known]
    further = {who: _stage_of(who, message, reads, roster) for who in others}
    seen |= {who: stage for who, stage in further.items() if stage in _HAS_SEEN}
    return ReaderExceptions(
        unseen=tuple(who for who in waits if who not in dead),
        rivals=tuple(rivals),
        offered=tuple(who for who, stage in stages.items() if stage == message_reads.OFFERED),
        titles=tuple(who for who, stage in stages.items() if stage == message_reads.TITLE_SEEN),
        ended=tuple(who for who in waits if who in dead),
        seen=tuple(seen),
        least=min(filter(None, seen.values()), key=_HAS_SEEN.index, default=""),
    )


def _find_expected(message: Message, roster: Roster) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the sessions of which each is to see a message, and the holders of each role, of whom one is."""
    each: dict[str, None] = {}
    roles: dict[str, tuple[str, ...]] = {}
    for stored in message.recipients:
        mode = roster.mode(stored)
        if inbox.is_on_board(message, mode) or (stored == USER and message.type == "control"):
            continue  # a board has it, or the person's list of requests
        if mode == ROLE:
            roles[stored] = tuple(a.session_id for a in find_bearers(stored, roster, message.bare) if a.state != DEAD)
        elif mode == DIRECT or (swarm_of(stored) or ("", ""))[1]:
            each.update(dict.fromkeys(_find_named(stored, roster)))
        else:
            each.update(dict.fromkeys(_find_living(stored, mode, message.timestamp, roster)))
    each.pop(message.sender, None)
    held = {role: tuple(who for who in holders if who != message.sender) for role, holders in roles.items()}
    return [*each], {role: holders for role, holders in held.items() if each.keys().isdisjoint(holders)}


def _find_named(stored: str, roster: Roster) -> list[str]:
    """Return the agents that a direct address means, even a dead one; a foreign writer may store a name."""
    agent = roster.meant(stored)
    named = roster.heirs(stored) or [one.session_id for one in roster.named(stored)]
    return named or [stored if agent is None else agent.session_id]


def _find_living(stored: str, mode: str, at: int, roster: Roster) -> Iterable[str]:
    """Yield the agents with a tag that lived at an instant; in the place of one that died later, who continues it."""
    for agent in roster.agents.values():
        lived = agent.registered <= at and (agent.state != DEAD or agent.changed > at)
        if not lived or not _bears(agent, stored, mode):
            continue
        heirs = roster.heirs(agent.session_id) if agent.state == DEAD else []
        yield from [who for who in heirs if _bears(roster.get(who), stored, mode)] or [agent.session_id]


def _bears(agent: Agent | None, tag: str, mode: str) -> bool:
    return agent is not None and (mode == BROADCAST or tag == ALL or tag in agent.tags)


def _stage_of(who: str, message: Message, reads: Reads, roster: Roster) -> str | None:
    """Return how far an agent came with a message, or one that it continues; None if it does not count as read."""
    lineage = roster.lineage(who)
    if not message_reads.read_by(message, reads, lineage, roster):
        return None
    stages = dict.fromkeys(message.read_by, message_reads.READ) | reads.stages(message.id)
    return max((stages[one] for one in lineage if one in stages), key=_STAGES.index)
