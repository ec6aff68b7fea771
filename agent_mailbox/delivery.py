"""Delivering unread mail: choose, show, record.

Belongs here: the order of those steps and the locks around them. What is unread is ``core.inbox``; how the answer is
found without reading everything is ``store.poll``.
"""

from __future__ import annotations

from .core import codec
from .core.records import USER, Read
from .core.roster import ALIVE, DEAD
from .desk import Desk
from .errors import Busy
from .store.poll import Poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .core.inbox import Item


class Delivery(Desk):
    """The part of the facade that shows sessions their mail."""

    def peek(self, session_id: str) -> list[Item]:
        """The session's unread mail; writes nothing at all. ``Refused`` to the dead."""
        roster = self.logs.read_roster()
        if roster.state(session_id) == DEAD:
            self._admit(session_id)
        return self._unread(session_id, save=False)

    def deliver(
        self, session_id: str, show: Callable[[list[Item]], Sequence[Item]], *, role_wait: float | None = None
    ) -> int:
        """Show the session its unread mail, then record as read what was shown; returns how many that was.

        ``show`` gets all unread mail in order, writes out *and flushes* what it has room for, and returns exactly
        that; if it raises, nothing is recorded. Choosing, showing and recording happen under the session's delivery
        lock, and under the shared role lock if role mail is among it. With ``role_wait`` (seconds; a hook's way) role
        mail is left for next time where that lock is not to be had; without it, ``Busy``. ``Refused`` to the dead.
        """
        self.check_in(session_id)
        with self.logs.delivery(session_id):
            items = self._unread(session_id)
            if any(item.claims for item in items):
                try:
                    with self.logs.role_delivery(role_wait):
                        return self._show(session_id, self._unread(session_id), show)
                except Busy:
                    if role_wait is None:
                        raise
                    items = [item for item in items if not item.claims]
            return self._show(session_id, items, show)

    def _unread(self, session_id: str, *, save: bool = True, adopt: bool = True) -> list[Item]:
        poll = Poll(self.logs, session_id, self.config.ttls, self.config.stamp)
        return poll.unread(self.now(), save=save, adopt=adopt)

    def _settle(self, session_id: str) -> None:
        """Leave a quiet stamp for the session if nothing is left to read (see ``store.trail`` why that is sound)."""
        logs = self.logs
        with logs.messages.held(), logs.reads.held(), logs.roster.held():
            if not self._unread(session_id, adopt=False):
                logs.trail.stamp(session_id)

    def _show(self, session_id: str, items: list[Item], show: Callable[[list[Item]], Sequence[Item]]) -> int:
        if items:
            # What cannot be recorded must not be shown: a log that cannot be written to is found out first.
            with self.logs.reads.held():
                pass
        shown = show(items)
        now = self.now()
        self.logs.reads.append(
            [
                codec.read_line(Read(message_id=item.message.id, session_id=session_id, timestamp=now, via=item.via))
                for item in shown
            ]
        )
        if len(shown) == len(items) and not self.logs.trail.is_quiet(session_id):
            self._settle(session_id)
        return len(shown)

    def check_in(self, session_id: str) -> None:
        """A sign of life: beats the heart, registers the unknown, thaws the frozen; ``Refused`` to the dead."""
        if session_id != USER and self.logs.read_roster().state(session_id) != ALIVE:
            self._admit(session_id)
        self.logs.beat(session_id, self.now())

    def _admit(self, session_id: str) -> None:
        """Let in a session that is not alive, as far as the roster's rules allow it."""
        from . import registry  # the rare case; a poll of a living session is spared the import

        registry.admit(self, session_id)
