"""Dead letters: mail that expired, or whose recipient died, before anyone read it.

Belongs here: which mail that is, and why. Everything is a function of one ``MailState`` and ``now``.
"""

from __future__ import annotations

from . import claims
from .address import DIRECT, route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .inbox import MailState
    from .records import Message
    from .roster import Roster

EXPIRED, RECIPIENT_DEAD = "expired", "recipient_dead"


def dead_reason(message: Message, state: MailState, now: int) -> str | None:
    """Return why the message is a dead letter (``EXPIRED`` or ``RECIPIENT_DEAD``), or None if it is not.

    Reading it ends the question; so does a living successor of a dead recipient.
    """
    if claims.readers(message, state.reads):
        return None
    if state.expired(message, now):
        return EXPIRED
    roster = state.roster
    gone = all(roster.mode(a) == DIRECT and not _living_recipient(a, roster) for a in message.recipients)
    return RECIPIENT_DEAD if gone else None


def _living_recipient(word: str, roster: Roster) -> bool:
    agent = roster.meant(word)
    return agent is None or bool(roster.heirs(agent.session_id))


def dead_letters(state: MailState, now: int, session_id: str | None = None) -> list[tuple[Message, str]]:
    """Return dead letters with their reason: those the session sent or was to get, or everyone's."""
    reader = state.roster.reader(session_id) if session_id is not None else None
    found = []
    for message in state.messages.values():
        if reader and message.sender not in reader.lineage and route(message.recipients, reader) is None:
            continue
        reason = dead_reason(message, state, now)
        if reason is not None:
            found.append((message, reason))
    return found
