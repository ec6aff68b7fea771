"""Dead letters: mail that expired, or whose recipient died, before anyone read it.

Belongs here: which mail that is, why, and who is to be told. Everything is a function of one ``InboxState`` and
``now``.
"""

from __future__ import annotations

from . import inbox, message_reads, obligations, proofs
from .address import DIRECT, is_concerned
from .instant import FIRST, HOUR
from .records import USER, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from .inbox import InboxState
    from .roster import Roster

EXPIRED, RECIPIENT_DEAD = "expired", "recipient_dead"


def dead_reason(message: Message, state: InboxState, now: int) -> str | None:
    """Return why the message is a dead letter (``EXPIRED`` or ``RECIPIENT_DEAD``), or None if it is not.

    Reading it ends the question, though not by the title if it asks for an ack. So does a living successor of a dead
    recipient. An idle notice of ours is a state and no letter.
    """
    if message.when is not None and inbox.is_idle_notice(message):
        return None
    if message_reads.takers(message, state.reads):
        return None
    if state.expired(message, now):
        return EXPIRED
    roster = state.roster
    gone = all(roster.mode(a) == DIRECT and not roster.heirs_of(a) for a in message.recipients)
    return RECIPIENT_DEAD if gone else None


def last_dead(to: str, hours: int, state: InboxState, now: int) -> int:
    """Return the last instant at which a message to one address was written that is a dead letter, or an instant before
    all of them.

    ``hours`` to live; 0: its mode's. A later message never expires before an earlier one, even if its recipient was
    frozen meanwhile.
    """

    def is_dead(when: int) -> bool:
        return dead_reason(Message("", "", (to,), when, "", ttl_hours=hours or None), state, now) is not None

    low, high = FIRST - 1, 1 << 53
    ttl = hours or state.ttls[state.roster.mode(to)]
    usual = now - int((ttl or 0) * HOUR)
    if is_dead(usual) and not is_dead(usual + 1):
        return usual
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_dead(middle) else (low, middle - 1)
    return low


def dead_letters(state: InboxState, now: int, session_id: str | None = None) -> list[tuple[Message, str]]:
    """Return dead letters with their reason: those the session sent or was to get, or everyone's."""
    reader = state.roster.reader(session_id) if session_id is not None else None
    return list(_letters(state, now, lambda m: reader is None or is_concerned(m, reader)))


def _letters(state: InboxState, now: int, wanted: Callable[[Message], bool]) -> Iterator[tuple[Message, str]]:
    """Yield the wanted dead letters with their reason; a reader's answer ends the question, too."""
    replies = obligations.repliers(state)
    for message in filter(wanted, state.messages.values()):
        reason = dead_reason(message, state, now)
        if reason is not None and replies.get(message.id, frozenset()).isdisjoint(
            message_reads.readers(message, state.reads)
        ):
            yield message, reason


def untold(state: InboxState, now: int, told: Collection[str]) -> dict[str, list[tuple[Message, str]]]:
    """Return the dead letters that nobody was told of, with their reason, by the agent that is to be told.

    That is the sender, or the agent that continues it. Notices, control and events have rules of their own.
    """
    found: dict[str, list[tuple[Message, str]]] = {}
    for message, reason in _letters(state, now, lambda m: m.type == "message" and m.id not in told):
        who = _concerned(message, state.roster)
        if who is not None:
            found.setdefault(who, []).append((message, reason))
    return found


def _concerned(message: Message, roster: Roster) -> str | None:
    """Return who is to be told about a message: the person who provably sent it, or an agent that is not dead.

    A client's own teams tell their members what they need.
    """
    if message.sender == USER:
        return USER if proofs.speaker(message.proof, USER) == USER else None
    agents = [agent for agent in map(roster.get, roster.heirs(message.sender)) if agent is not None]
    found = [agent.session_id for agent in agents if not any(tag.startswith("team:") for tag in agent.tags)]
    return message.sender if message.sender in found else next(iter(found), None)
