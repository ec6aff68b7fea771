"""What stands with everyone: unread mail, what is owed, dead letters, what nobody has read. Counted in the background.

Belongs here: the counting, and how often. Each figure is the facade's or the core's answer for one agent; asking it for
all takes from milliseconds to (in a log nobody archives) seconds, so a thread of its own asks, after a change, and
rests in between: at most a tenth of one processor's time goes into it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ..core import obligations
from ..core.claims import readers
from ..core.instant import MINUTE
from ..core.records import USER, Record
from ..core.roster import DEAD
from ..errors import MailboxError
from ..mailbox.facade import Mailbox
from ..mailbox.queries import last_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.records import Message
    from ..core.roster import Agent

LARGE = 32 << 20
"""Bytes of a live messages log (some 80,000 messages; the steward keeps it at a thousand) beyond which dead letters and
pending mail are not counted: they need every message in memory."""
PATIENCE = 5.0
"""Seconds that pages wait for the first count."""
REST = 9
"""How many times as long as a count took it is left alone."""


class Line(Record):
    """How one agent stands: how much waits for it, how much it owes, when it was last seen (ms)."""

    agent: Agent
    seen: int
    unread: int
    owed: tuple[Message, ...]


class Survey(Record):
    """A count. ``dead`` and ``unread`` (mail nobody has read yet) are None before the first, and where the log is too
    large for it."""

    taken: int = 0
    lines: Mapping[str, Line] = {}
    owed: tuple[Message, ...] = ()
    dead: tuple[tuple[Message, str], ...] | None = None
    unread: tuple[Message, ...] | None = None


def take(mailbox: Mailbox) -> Survey:
    """Count now; raises ``MailboxError``."""
    now, roster, seen = mailbox.now(), mailbox.logs.read_roster(), mailbox.logs.last_seen()
    asking = mailbox.logs.asking(mailbox.config.ttls)
    lines = {}
    for agent in roster.agents.values():
        gone = agent.state == DEAD
        unread = 0 if gone else len(mailbox.peek(agent.session_id))
        owed = () if gone else tuple(obligations.obligations(agent.session_id, asking))
        lines[agent.session_id] = Line(agent, last_seen(agent, seen), unread, owed)
    dead: list[tuple[Message, str]] | None = None
    pending: tuple[Message, ...] | None = None
    if mailbox.logs.ends()[0][1] <= LARGE:
        state = mailbox.state()
        dead = obligations.dead_letters(state, now)
        gone_ids = {message.id for message, _ in dead}
        pending = tuple(m for m in state.messages.values() if m.id not in gone_ids and not readers(m, state.reads))
    owed = tuple(obligations.obligations(USER, asking))
    return Survey(now, lines, owed, None if dead is None else tuple(dead), pending)


class Surveyor:
    """Keeps the newest count; ``done`` is called, in the surveyor's thread, after each."""

    def __init__(self, directory: str, done: Callable[[], None]) -> None:
        self._mailbox = Mailbox(directory)
        self._done = done
        self._due = threading.Event()
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._run, name="survey", daemon=True)
        self.newest = Survey()

    def start(self) -> None:
        """Count at once, then whenever it is due; returns with the first count, or without it if that takes long."""
        self._due.set()
        self._thread.start()
        self._first.wait(PATIENCE)

    def changed(self) -> None:
        """Something was written: count anew, soon."""
        self._due.set()

    def current(self) -> Survey:
        """The newest count; asks for another where time alone may have changed it."""
        if self._mailbox.now() - self.newest.taken > MINUTE:
            self._due.set()
        return self.newest

    def stop(self) -> None:
        """End the thread, at its next rest."""
        self._over.set()
        self._due.set()

    def _run(self) -> None:
        while self._due.wait() and not self._over.is_set():
            self._due.clear()
            begun = time.monotonic()
            self._count()
            self._first.set()
            self._done()
            self._over.wait((time.monotonic() - begun) * REST)

    def _count(self) -> None:
        try:
            self.newest = take(self._mailbox)
        except MailboxError:
            pass  # busy, or a disk that says no: the next change asks again
