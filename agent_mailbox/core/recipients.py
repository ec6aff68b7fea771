"""Whom a message reaches: what its sender is told, and whose unread mail it may change.

Belongs here: the roster's answer at the moment it is sent. How it reaches a reader is ``inbox``.
"""

from __future__ import annotations

from .address import ALL, DIRECT, ROLE, role_of
from .records import Message, Record
from .roster import ALIVE, FROZEN, Agent, Roster


class Reach(Record):
    """What a sender is told: agents that will see it now, and what waits (frozen agents, roles nobody holds)."""

    agents: tuple[str, ...]
    waiting_for: tuple[str, ...]


def delivery(message: Message, roster: Roster) -> Reach:
    """Whom a message reaches at the moment it is sent."""
    now: dict[str, None] = {}
    waiting: dict[str, None] = {}
    for stored in message.recipients:
        mode = roster.mode(stored)
        if mode == DIRECT:
            for session_id in roster.heirs(stored):
                if session_id != message.sender:
                    (now if roster.state(session_id) == ALIVE else waiting)[session_id] = None
            continue
        others = [a for a in _bearing(stored, mode, roster) if a.session_id != message.sender]
        living = dict.fromkeys(a.session_id for a in others if a.state == ALIVE)
        now.update(living)
        if mode != ROLE:
            waiting.update(dict.fromkeys(a.session_id for a in others if a.state == FROZEN))
        elif not living:
            waiting[stored] = None
    return Reach(agents=tuple(now), waiting_for=tuple(w for w in waiting if w not in now))


def _bearing(stored: str, mode: str, roster: Roster) -> list[Agent]:
    """All agents, in whatever state, that a role, tag or broadcast address matches now."""
    if stored == ALL:
        return list(roster.agents.values())
    return roster.carrying(role_of(stored) if mode == ROLE else stored, None)


def concerned(message: Message, roster: Roster) -> set[str] | None:
    """The sessions whose unread mail the message may change, by the roster as it is; None: everyone's."""
    found: set[str] = set()
    for stored in message.recipients:
        if stored == ALL:
            return None
        if ":" not in stored:
            found.update((stored, *roster.heirs(stored)))
        found.update(a.session_id for a in roster.carrying(stored if ":" in stored else role_of(stored), None))
    return found
