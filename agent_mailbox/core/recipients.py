"""The agents a message reaches: the answer for its sender, and the sessions whose unread mail it may change.

Belongs here: the roster's answer at the moment of sending. ``inbox`` decides how it reaches a reader.
"""

from __future__ import annotations

from .address import ALL, DIRECT, ROLE, role_or_tag
from .records import Message, Record
from .roster import ALIVE, FROZEN, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class Reach(Record):
    """The answer for a sender: agents that are there to see the message, and those it waits for (frozen agents, empty
    roles). ``gone``: agents that would see it if the processes of their clients still ran. ``running``: those of the
    agents whose client called our hooks, and certainly runs. ``one_of``: several holders of roles, of whom one gets it.
    """

    agents: tuple[str, ...]
    waiting_for: tuple[str, ...]
    gone: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


def delivery(message: Message, roster: Roster, gone: Collection[str] = ()) -> Reach:
    """Return the agents a message reaches at the moment of sending; the ``gone`` count as frozen."""

    def is_there(session_id: str) -> bool:
        return session_id not in gone and roster.state(session_id) == ALIVE

    now: dict[str, None] = {}
    by_role: dict[str, None] = {}
    waiting: dict[str, None] = {}
    for stored in message.recipients:
        mode = roster.mode(stored)
        if mode == DIRECT:
            for session_id in roster.heirs(stored):
                if session_id != message.sender:
                    (now if is_there(session_id) else waiting)[session_id] = None
            continue
        others = [a for a in bearing(stored, roster, message.bare) if a.session_id != message.sender]
        living = dict.fromkeys(a.session_id for a in others if is_there(a.session_id))
        (by_role if mode == ROLE else now).update(living)
        if mode != ROLE:
            waiting.update(dict.fromkeys(a.session_id for a in others if a.state == FROZEN or a.session_id in gone))
        elif not living:
            waiting[stored] = None
    holders = tuple(holder for holder in by_role if holder not in now)
    now.update(by_role)
    return Reach(
        agents=tuple(now),
        waiting_for=tuple(w for w in waiting if w not in now),
        gone=tuple(sorted(gone)),
        one_of=holders if len(holders) > 1 else (),
    )


def is_mate(agent: Agent | None) -> bool:
    """Return whether it is a member of a client's team, to whom a bridge carries mail."""
    return agent is not None and "@" in agent.session_id and f"team:{agent.session_id.partition('@')[2]}" in agent.tags


def mates(sessions: Iterable[str], roster: Roster) -> list[str]:
    """Return those of the sessions that are such members."""
    return [who for who in sessions if "@" in who and is_mate(roster.get(who))]


def bearing(stored: str, roster: Roster, bare: Collection[str]) -> list[Agent]:
    """Return the agents that an address matches now: by a role or tag all that are not dead, by a broadcast all."""
    if stored == ALL:
        return list(roster.agents.values())
    found = roster.carriers(role_or_tag(stored))
    if bare and (word := stored.removeprefix("role:")) in bare:
        return list({a.session_id: a for a in (*found, *roster.named(word))}.values())
    return found


def concerned(messages: Iterable[Message], roster: Roster) -> set[str] | None:
    """Return the sessions whose unread mail the messages may change, by the present roster; None: everyone's."""
    found: set[str] = set()
    for message in messages:
        for stored in message.recipients:
            if stored == ALL:
                return None
            if ":" not in stored:
                found.update((stored, *roster.heirs(stored)))
            found.update(a.session_id for a in roster.carriers(role_or_tag(stored)))
        for word in message.bare:  # somebody may have taken the name meanwhile
            found.update((word, *(a.session_id for a in roster.named(word))))
    return found
