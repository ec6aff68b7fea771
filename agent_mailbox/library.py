"""Looking things up: history, threads, search, receipts, status, dead letters, waiting.

Belongs here: questions that may read the archive and never write. Polling asks none of them.
"""

from __future__ import annotations

from .core import claims, inbox
from .core.records import Message, Record
from .store import watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.inbox import State
    from .core.roster import Agent
    from .mailbox import Mailbox


class Status(Record):
    """Where a session stands."""

    session_id: str
    unread: int
    obligations: tuple[Message, ...]
    reads: claims.Reads
    dead_letters: int
    agent: Agent | None
    last_seen: int | None


class Library:
    """Everything a mailbox knows, for reading."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def everything(self) -> State:
        """Live and archived mail with its reads, oldest first; of twins the live one counts."""
        # Live before archive: the steward moves records that way, so none is missed; twins do not count twice.
        live = self._mailbox.state()
        live_reads = list(self._mailbox.logs.read_records())
        archive = self._mailbox.archive
        messages = {**archive.messages(), **live.messages}
        ordered = sorted(messages.values(), key=lambda m: m.timestamp)
        return live.replace(messages={m.id: m for m in ordered}, reads=claims.Reads([*archive.reads(), *live_reads]))

    def status(self, session_id: str) -> Status:
        """Unread count, obligations, dead letters, roster line."""
        state, now = self._mailbox.state(), self._mailbox.now()
        return Status(
            session_id=session_id,
            unread=len(inbox.unread(session_id, state, now)),
            obligations=tuple(inbox.obligations(session_id, state)),
            reads=state.reads,
            dead_letters=len(inbox.dead_letters(state, now, session_id)),
            agent=state.roster.get(session_id),
            last_seen=self._mailbox.logs.last_seen().get(session_id),
        )

    def agents(self, state: str | None = None) -> list[tuple[Agent, int]]:
        """The roster's agents (in one state, or all) with the ms each was last seen."""
        seen = self._mailbox.logs.last_seen()
        roster = self._mailbox.logs.read_roster()
        return [(a, last_seen(a, seen)) for a in roster.agents.values() if state is None or a.state == state]

    def agent(self, word: str) -> tuple[Agent, int]:
        """The agent a word means, with the ms it was last seen; raises ``NotFound`` or ``Ambiguous``."""
        found = self._mailbox.logs.read_roster().find(word)
        return found, last_seen(found, self._mailbox.logs.last_seen())

    def dead_letters(self, session_id: str | None) -> list[tuple[Message, str]]:
        """Dead letters with their reason: the session's, or everyone's."""
        return inbox.dead_letters(self._mailbox.state(), self._mailbox.now(), session_id)

    def thread(self, message_id: str) -> tuple[list[Message], claims.Reads]:
        """The whole chain of a message, oldest first, with the reads."""
        found = self._mailbox.find(message_id)
        everything = self.everything()
        return inbox.thread_of(found.message.id, everything.messages), everything.reads

    def history(
        self, session_id: str | None, *, with_address: str | None = None, since: int | None = None, limit: int = 0
    ) -> tuple[list[Message], claims.Reads]:
        """Mail the session sent or may see (None: everyone's), archives included, newest last.

        ``with_address``: only mail from or to that agent, role, tag or ``all``; ``since`` in ms; the newest ``limit``.
        """
        state = self.everything()
        found = list(state.messages.values())
        if session_id is not None:
            reader = state.roster.reader(session_id)
            found = [m for m in found if inbox.visible(m, reader)]
        if with_address is not None:
            found = inbox.exchanged(found, with_address, state.roster)
        if since is not None:
            found = [m for m in found if m.timestamp >= since]
        return found[-limit:] if limit else found, state.reads

    def search(self, query: str, limit: int) -> tuple[list[Message], claims.Reads]:
        """The newest ``limit`` messages in which every word of the query occurs, newest last; case does not count."""
        words = query.casefold().split()
        state = self.everything()
        found = [
            m
            for m in state.messages.values()
            if all(word in f"{m.subject or ''}\n{m.content}\n{m.sender}".casefold() for word in words)
        ]
        return found[-limit:] if limit else found, state.reads

    def wait(self, session_id: str, timeout: float | None) -> int:
        """Block until the session has unread mail and return how much; 0 at ``timeout`` (seconds)."""
        with watch.Watch([self._mailbox.directory]) as changes:
            deadline = watch.deadline(timeout)
            while True:
                unread = len(self._mailbox.peek(session_id))
                if unread or not changes.wait(deadline):
                    return unread


def last_seen(agent: Agent, seen: dict[str, int]) -> int:
    """The ms an agent was last seen: its heartbeat, else its registration."""
    return max(seen.get(agent.session_id, 0), agent.registered)
