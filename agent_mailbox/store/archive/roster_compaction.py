"""Retelling a long roster in fewer events, and archiving the lines that told it.

Belongs here: which lines stay, and that the agents are the same before and after. The steps and their order are
``rotation``'s: archive and seal first, then replace the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import codec, proofs
from ...core.keeping.retention import compacted
from ...core.records import BadLine
from ...core.roster import DEAD, Roster
from ...core.space_seals import heeded, is_ignored
from ..log.logs import parse_roster
from ..log.replacement import Replaced, clear_leftover, is_misplaced, replace
from ..log.unordered import digest, unsealed
from .manifest import Manifest
from .rotation import add_missing, drop_torn_copy, raw_lines, refuse_broken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ...core.records import RosterEvent
    from ...core.roster import Agent
    from ...space.order.order import Bundle
    from ..log.logs import Logs
    from ..log.proof_view import Place, ProofView
    from .archive import Archive
    from .rotation import SharedOrder

COMPACT_ABOVE = 1000
"""Roster events above which the roster is retold in fewer: the messages' own threshold."""


def compact_roster(logs: Logs, archive: Archive, since: int) -> None:
    """Retell a long roster in fewer events, and archive the old lines.

    Proven lines stay as they were written: an agent with sealed lines that is not dead keeps all of its own. If the
    fewer events would yield other agents, the roster stays.
    """
    with logs.roster.held() as roster:
        refuse_broken(logs)
        clear_leftover(roster)
        lines, size = raw_lines(roster)
        if len(lines) <= COMPACT_ABOVE:
            return
        dead = sum(agent.state == DEAD for agent in logs.read_roster().agents.values())
        if 4 * dead > len(lines):  # each life takes two lines at least
            return
        before = Roster(parse_roster(lines, roster.view()))
        kept = [(at, line) for at, line in lines if _stays(line, before, since)]
        rest = [(at, line) for at, line in lines if not _stays(line, before, since)]
        told = compacted(parse_roster(rest, roster.view()), since)
        if (len(told) + len(kept)) * 2 > len(lines):
            return
        after = Roster(_retold(told, kept, roster.view()))
        if any(is_misplaced(roster, place) for place in kept) or not _same(before, after, since):
            return
        drop_torn_copy(archive.roster_log(), (line for _, line in lines))
        add_missing(archive.roster_log(), (line for _, line in lines))
        Manifest(archive).seal()
        retold = [codec.spell_event(event).rstrip(b"\n") for event in told]
        replace(roster, [*retold, *(line for _, line in kept)], size)


def retell_roster(logs: Logs, archive: Archive, told: Bundle, order: SharedOrder) -> Replaced | None:
    """Follow another machine's decision to retell some of the dead; return the fresh log, if there is one.

    The lines of an agent that may come back by this machine's own proofs stay. So does everything, if the agents would
    be others. The caller is ``alone``."""
    with logs.roster.held() as roster:
        refuse_broken(logs)
        clear_leftover(roster)
        lines, size = raw_lines(roster)
        gone = {*told.lines}
        here: dict[bytes, list[Place]] = {}
        for place in lines:
            if not is_ignored(place[1]):
                here.setdefault(unsealed(place[1]), []).append(place)
        named = {(at, line) for at, line in lines if unsealed(line) in gone and order.has(logs.roster, at)}
        before = _lives(told, lines, here, roster.view())
        staying = {_agent(line) for _, line in named if _stays(line, before, told.since)}
        dropped = {place for place in named if _agent(place[1]) not in staying}
        events = [line for line in told.told if _agent(line) not in staying]
        again = {digest(line) for line in events}
        kept = [at for at in lines if at not in dropped and digest(unsealed(at[1])) not in again]
        if here.keys() >= {*events} and {unsealed(line) for _, line in dropped}.issubset(events):
            return None  # it was told here; an event may be one that the agent had
        before = _lives(told, lines, here, roster.view(), staying)
        after = Roster(_retold(parse_roster((-1, line) for line in events), kept, roster.view()))
        if any(is_misplaced(roster, place) for place in kept) or not _same(before, after, told.since):
            return None
        drop_torn_copy(archive.roster_log(), (line for _, line in lines))
        add_missing(archive.roster_log(), (line for _, line in sorted(dropped)), order.filed)
        Manifest(archive).seal()
        inode = replace(roster, [*events, *(line for _, line in kept)], size)
        places = [*((-1, len(line) + 1) for line in events), *((at, len(line) + 1) for at, line in kept)]
    return Replaced(logs.roster.path, inode, tuple(places))


def _lives(
    told: Bundle,
    lines: Sequence[Place],
    here: Mapping[bytes, Sequence[Place]],
    view: ProofView | None,
    without: Collection[str | None] = (),
) -> Roster:
    """Return the agents before they are retold, those ``without`` as they are.

    A line that is not here, as the order has it no more, comes at its place among the others, and proves nothing. So
    does one that is ignored here."""
    if here.keys() >= {*told.lines}:
        return Roster(parse_roster(lines, view))
    left = {line: iter(found) for line, found in here.items()}
    whole = [next(left.get(line, iter(())), (-1, line)) for line in told.lines if _agent(line) not in without]
    among = {*whole}
    return Roster(parse_roster((*whole, *(place for place in lines if place not in among)), view))


def _agent(line: bytes) -> str | None:
    event = codec.roster_event(heeded(line))
    return None if isinstance(event, BadLine) else event.session_id


def _stays(line: bytes, roster: Roster, since: int) -> bool:
    """Return whether the line is of a proven agent that is not dead, or that was led and died only since then (ms).

    Such an agent may come back, and its lead with it.
    """
    event = codec.roster_event(line)
    agent = None if isinstance(event, BadLine) else roster.agents.get(event.session_id)
    if agent is None or not (agent.proven or agent.home is not None):
        return False
    return agent.state != DEAD or (bool(agent.proven_leads) and agent.changed >= since)


def _retold(told: Iterable[RosterEvent], kept: Iterable[Place], view: ProofView | None) -> Iterator[RosterEvent]:
    """Yield the events as they will be read: all of them are below the base then."""
    yield from told
    for event in parse_roster(kept, view):
        yield event if event.proof else event.replace(proof=proofs.BEFORE)


def _same(before: Roster, after: Roster, since: int) -> bool:
    """Return whether both rosters hold the same agents.

    Two differences do not count: frozen spans that ended before ``since``, and what was proven of the dead.
    """

    def told(agent: Agent) -> Agent:
        spans = tuple(span for span in agent.frozen if span[1] is None or span[1] > since)
        agent = agent.replace(frozen=spans)
        dead_for_long = agent.state == DEAD and not (agent.proven_leads and agent.changed >= since)
        return agent.replace(proven=False, proven_leads=(), home=None) if dead_for_long else agent

    both = [{agent.session_id: told(agent) for agent in roster.agents.values()} for roster in (before, after)]
    return both[0] == both[1]
