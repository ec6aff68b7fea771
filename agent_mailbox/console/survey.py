"""Figures about all agents, counted in the background: unread mail, obligations, dead letters, mail without a reader.

Belongs here: the count and its schedule. The facade or the core answers for one agent; asking for all takes up to
seconds in a large live log. So a thread asks after changes, and rests: it uses at most a tenth of a processor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from ..core import dead_letters, inbox, obligations
from ..core.address import DIRECT, ROLE
from ..core.instant import MINUTE
from ..core.message_reads import readers
from ..core.records import USER, Message, Record
from ..core.roster import DEAD, Agent, Roster
from ..errors import MailboxError
from ..mailbox.agents import last_seen
from ..mailbox.mailbox import Mailbox
from ..mailbox.queries import MailQueries

LARGE = 32 << 20
"""Bytes of the live messages log above which dead letters and pending mail are not counted, because that loads every
message. It is some 80,000 messages; the steward keeps a thousand."""
PATIENCE = 5.0
"""Seconds that the start waits for the first count."""
REST = 9
"""The rest after a count, as a multiple of the count's duration."""


class Line(Record):
    """One agent's figures: last seen (ms), unread messages, messages it owes an answer to."""

    agent: Agent
    seen: int
    unread: int
    owed: tuple[Message, ...]


class Survey(Record):
    """The result of a count. ``dead`` and ``unread`` (mail without any reader) are None before the first count, and if
    the log is too large."""

    taken: int = 0
    lines: Mapping[str, Line] = {}
    owed: tuple[Message, ...] = ()
    dead: tuple[tuple[Message, str], ...] | None = None
    unread: tuple[Message, ...] | None = None

    def line_of(self, agent: Agent) -> Line:
        """Return an agent's figures; one that came since the count has none yet."""
        return self.lines.get(agent.session_id) or Line(agent, agent.registered, 0, ())


def take_survey(mailbox: Mailbox, wants_dead: bool = False) -> Survey:
    """Count now, the dead letters of a large log only if they are wanted; raises ``MailboxError``."""
    now, roster, seen = mailbox.now(), mailbox.logs.read_roster(), mailbox.last_seen()
    state = mailbox.state() if mailbox.logs.ends()[0][1] <= LARGE else None
    asking = mailbox.logs.asking(mailbox.config.ttls) if state is None else state
    lines = {}
    for agent in roster.agents.values():
        unread = 0
        owes: tuple[Message, ...] = ()
        if agent.state != DEAD:
            me = agent.session_id  # one look at the logs for all, or one for each where that would load every message
            unread = len(mailbox.peek(me) if state is None else inbox.unread(me, state, now))
            owes = tuple(obligations.obligations(me, asking))
        lines[agent.session_id] = Line(agent, last_seen(agent, seen), unread, owes)
    dead: list[tuple[Message, str]] | None = None
    pending: tuple[Message, ...] | None = None
    if state is not None:
        dead = dead_letters.dead_letters(state, now)
        gone_ids = {message.id for message, _ in dead}
        needed = (m for m in state.messages.values() if m.id not in gone_ids and _needs_a_reader(m, roster))
        pending = tuple(m for m in needed if not readers(m, state.reads))
    elif wants_dead:
        dead, _ = MailQueries(mailbox).dead_letters(None)
    owed = tuple(obligations.obligations(USER, asking))
    return Survey(now, lines, owed, None if dead is None else tuple(dead), pending)


def _needs_a_reader(message: Message, roster: Roster) -> bool:
    """Return whether a message needs a reader: it asks for an ack, or is for an agent or a role."""
    if message.type == "control":
        return False  # requests are listed by themselves
    return message.ack or any(roster.mode(address) in (DIRECT, ROLE) for address in message.recipients)


class SurveyThread:
    """Keeps the newest count; calls ``done`` in its thread after each."""

    def __init__(self, directory: str, done: Callable[[], None]) -> None:
        self._mailbox = Mailbox(directory)
        self._done = done
        self._due = threading.Event()
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._count_forever, name="survey", daemon=True)
        self._wants_dead = False
        self.newest = Survey()

    def start_counting(self) -> None:
        """Start the thread; wait up to ``PATIENCE`` for the first count."""
        self._due.set()
        self._thread.start()
        self._first.wait(PATIENCE)

    def want_dead(self) -> None:
        """Request the dead letters, for a page that shows them; once, as each such page asks again."""
        self._wants_dead = True
        self._due.set()

    def request_count(self) -> None:
        """Request a new count after a write."""
        self._due.set()

    def current_survey(self) -> Survey:
        """Return the newest count; request another if it is older than a minute."""
        if abs(self._mailbox.now() - self.newest.taken) > MINUTE:  # the clock may be set back
            self._due.set()
        return self.newest

    def stop_counting(self) -> None:
        """End the thread after its present count."""
        self._over.set()
        self._due.set()

    def _count_forever(self) -> None:
        while self._due.wait() and not self._over.is_set():
            self._due.clear()
            begun = time.monotonic()
            try:
                wants_dead, self._wants_dead = self._wants_dead, False
                self.newest = take_survey(self._mailbox, wants_dead)
            except (MailboxError, OSError):
                pass  # busy, or a failing disk: the next change asks again
            self._first.set()
            self._done()
            self._over.wait((time.monotonic() - begun) * REST)
