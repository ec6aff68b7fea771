"""A turn's end: the mail that keeps a session from ending its turn, as far as the brake lets it.

Belongs here: that choice. Hooks without mail, and those between two tools, need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import inbox
from ...core.records import IDLE, NOW, TURN
from ...mailbox import arrivals
from ...mailbox.sending import Sending
from ...mailbox.session_brake import SessionBrake

if TYPE_CHECKING:
    from ...core.inbox import Item
    from ...mailbox.open_mailbox import OpenMailbox


class TurnEnd:
    """The end of a session's turn, in a mailbox that was opened for it."""

    def __init__(self, desk: OpenMailbox) -> None:
        self._desk = desk
        self._brake: SessionBrake | None = None

    def choose(self, session_id: str, items: list[Item]) -> list[Item]:
        """Return the mail that keeps the session from ending its turn. Mail for when the turn is over does not, if a
        doorbell will wake the session for it."""
        chosen = inbox.due(items, NOW, TURN, IDLE)
        if any(inbox.timing(item) == IDLE for item in chosen):
            is_armed = arrivals.find_armed(self._desk.logs.cache(), (session_id,))
            chosen = inbox.due(items, NOW, TURN) if is_armed else chosen
        if not chosen:
            return []
        if self._brake is None:
            self._brake = SessionBrake(self._desk, session_id, Sending(self._desk).send)
        return self._brake.let_on(chosen)
