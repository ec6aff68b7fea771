"""Sessions that are gone or away: they count as frozen, and the role mail that they never saw goes back to its role.

Belongs here: recording both. ``OpenMailbox.gone`` judges which client's process is gone.
"""

from __future__ import annotations

from ..core import codec
from ..core.message_reads import Reads
from ..core.records import Message, Read, RosterEvent
from ..core.roster import ALIVE, CLIENT_ENDED, FROZEN
from ..core.roster_changes import Decision
from ..store.log.proof_view import weigh_read
from ..store.log.stamps import EVERYONE
from .registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..core.roster import Roster
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog
    from .open_mailbox import OpenMailbox

SETTLES = 600_000
"""Milliseconds for which the hook at a session's end may still look at the transcript, for what the session saw."""


def note(desk: OpenMailbox, sessions: Collection[str], actor: str) -> tuple[RosterEvent, ...]:
    """Freeze those of the sessions that are gone, in the name of ``actor``; return the roster's new events.

    Their unseen role mail goes back first: if this process is killed in between, the next one does both. A program,
    which proves nothing, records nothing. Raises ``Busy`` and ``StorageFailed``.
    """
    new = _newly_gone(desk, sessions, desk.logs.read_roster())
    if not new or desk.prove(actor) is None:
        return ()
    hand_back(desk, new, actor)
    return _freeze(desk, actor, lambda roster: _newly_gone(desk, new, roster))


def note_bearer(desk: OpenMailbox, name: str | None, actor: str) -> None:
    """Record that the bearer of a name is gone, if it is, so that ``actor`` may take its name."""
    bearer = desk.logs.read_roster().bearer(name) if name is not None else None
    if bearer is not None and bearer.session_id != actor:
        note(desk, [bearer.session_id], actor)


def hand_back(desk: OpenMailbox, sessions: Collection[str], actor: str) -> None:
    """Give back the role mail that those of the sessions which are gone or away were offered and did not see.

    The reads' lock is held while their absence is judged: a session that came back settles its offers itself."""
    for group in desk.by_machine(sessions):
        _hand_back(desk, group, actor)


def give_up(desk: OpenMailbox, sessions: Collection[str], actor: str) -> tuple[RosterEvent, ...]:
    """Freeze sessions that nobody here can judge, since the person gave up their machine; return the new events.

    Role mail that they were offered and did not show to have seen goes back. One that returns is alive again."""
    _hand_back(desk, sessions, actor, unjudged=True)
    return _freeze(desk, actor, lambda roster: {who for who in sessions if roster.state(who) == ALIVE})


def _freeze(desk: OpenMailbox, actor: str, find: Callable[[Roster], set[str]]) -> tuple[RosterEvent, ...]:
    """Record that the clients of those have ended whom ``find`` gives under the roster's lock."""

    def decide(roster: Roster) -> Decision:
        now, found = desk.now(), sorted(find(roster))
        by = {who: actor if actor != who else None for who in found}
        return Decision(tuple(RosterEvent("freeze", who, now, by=by[who], reason=CLIENT_ENDED) for who in found))

    return Registry(desk).change_roster(decide, actor).events


def _hand_back(desk: OpenMailbox, sessions: Collection[str], actor: str, *, unjudged: bool = False) -> None:
    def give(log: HeldLog | OrderedLog) -> None:
        absent = {*sessions} if unjudged else _absent(desk, sessions)
        claims = _unseen_claims(desk, absent) if absent else []
        if claims:
            given = [Read(message_id, who, desk.now(), "release") for message_id, who in claims]
            log.append(map(codec.spell_read, given), EVERYONE, [desk.prove(actor)] * len(given))

    desk.giving_back(sessions).decide(give)


def _newly_gone(desk: OpenMailbox, sessions: Collection[str], roster: Roster) -> set[str]:
    return desk.gone(who for who in sessions if roster.state(who) == ALIVE)


def _absent(desk: OpenMailbox, sessions: Collection[str]) -> set[str]:
    roster, now = desk.logs.read_roster(), desk.now()
    found = desk.gone(sessions)
    for who in sessions:
        agent = roster.get(who)
        if agent is not None and agent.state == FROZEN and now - agent.frozen[-1][0] >= SETTLES:
            found.add(who)
    return found


def _unseen_claims(desk: OpenMailbox, sessions: Collection[str]) -> list[tuple[str, str]]:
    """Return (message, session) for role mail that a session was offered, and of which nothing tells that it was seen:
    no answer either."""
    ours, view = [who.encode() for who in sessions], desk.logs.reads.view()
    reads = Reads()
    offered: dict[str, None] = {}
    for position, line in desk.logs.reads.lines():
        record = codec.read(line) if any(word in line for word in ours) else None
        if isinstance(record, Read) and record.session_id in sessions:
            reads.apply(weigh_read(record, view, line, position))
            if record.nonce and is_by_role(record):
                offered[record.message_id] = None
    found = [(i, read.session_id) for i in offered for read in reads.unseen(i) if is_by_role(read)]
    answered = _answers(desk, sessions) if found else set()
    return [claim for claim in found if claim not in answered]


def is_by_role(read: Read) -> bool:
    """Return whether the read says that a role brought the message."""
    return read.via is not None and read.via.startswith("role:")


def _answers(desk: OpenMailbox, sessions: Collection[str]) -> set[tuple[str, str]]:
    ours = [who.encode() for who in sessions]
    lines = (line for _, line in desk.logs.messages.lines() if any(word in line for word in ours))
    messages = (m for m in map(codec.message, lines) if isinstance(m, Message))
    return {(m.thread, m.sender) for m in messages if m.thread and m.sender in sessions}
