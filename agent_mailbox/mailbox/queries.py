"""Looking things up: history, threads, search, receipts, status, dead letters, waiting.

Belongs here: questions that may read the archive and write nothing but derived files. Polling asks none of them.
History, threads and search take candidates from the index, or from a scan if there is none. One function decides which
of them belong into the answer.
"""

from __future__ import annotations

from ..core import awaited, codec, conversations, dead_letters, inbox, message_reads, obligations, words
from ..core.address import check_namespace
from ..core.inbox import InboxState
from ..core.instant import DAY
from ..core.line_forms import may_be_message
from ..core.records import Message, Record
from ..errors import NotFound
from ..store.files import system
from ..store.locks.lock import Patience
from .delivery import WITHHELD, Delivery
from .mailbox import MIN_MESSAGE_PREFIX
from .open_mailbox import NEVER_SENT
from .selection import OlderSelection, Selection, candidates, chooses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from ..core.awaited import Owing
    from ..core.cost import Cost
    from ..core.records import Read
    from ..core.roster import Agent
    from ..store.projection.lookup import IndexLookup
    from .mailbox import FoundMessage, Mailbox
    from .selection import Position

    T = TypeVar("T")


LATELY = 30 * DAY
"""Milliseconds for which archived dead letters are told without being asked for."""


class Status(Record):
    """A session's mail and obligations in figures, its line of the roster, and if it is ``gone``, its id.

    ``missing_acks``: its own mail that lacks acks, with those who owe them. ``waiting``: its own mail that waits for
    nobody at ``now``. ``idle``: the unread notices of agents whose turn ended. ``queued``: the mail of anybody here
    that waits for the engine of several machines. ``never_sent``: how much of it stayed here as this one left them.
    """

    session_id: str
    unread: int
    obligations: tuple[Message, ...]
    reads: message_reads.Reads
    dead_letters: int
    agent: Agent | None
    last_seen: int | None
    gone: frozenset[str]
    missing_acks: tuple[tuple[Message, list[Owing]], ...] = ()
    waiting: tuple[Message, ...] = ()
    waiting_reads: message_reads.Reads = message_reads.Reads()
    now: int = 0
    idle: tuple[Message, ...] = ()
    queued: tuple[Message, ...] = ()
    never_sent: int = 0


class MailQueries:
    """Everything a mailbox knows, for reading."""

    newest_alone = False
    """Does a look-up without an index cover the newest mail alone? So it does in the console while the index is
    built."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def everything(self, since: int | None = None) -> InboxState:
        """Return live and archived mail with its reads, oldest first (then in log order, the live log last).

        A message that is in both counts once, as the live one. ``since`` (ms) leaves out what was archived and sent
        before.
        """
        # Live before archive: the steward moves records that way, so none is missed; twins do not count twice.
        live = self._mailbox.state()
        live_reads = list(self._mailbox.logs.read_records())
        return self._with_archive(live, live_reads, self._archived(since), since)

    def _archived(self, since: int | None) -> dict[str, Message]:
        found = self._mailbox.archive.messages(since)
        return {i: m for i, m in found.items() if since is None or m.timestamp >= since}

    def _with_archive(
        self, live: InboxState, live_reads: Iterable[Read], archived: dict[str, Message], since: int | None
    ) -> InboxState:
        messages = {i: m for i, m in archived.items() if i not in live.messages} | dict(live.messages)
        ordered = sorted(messages.values(), key=lambda m: m.timestamp)
        reads = message_reads.Reads(message_reads.with_archived(live_reads, self._mailbox.archive.reads(since)))
        return live.replace(messages={m.id: m for m in ordered}, reads=reads)

    def status(self, session_id: str) -> Status:
        """Return the session's unread count, obligations, dead letters and roster line."""
        from ..store.polling.poll import Poll
        from ..store.projection import open_ends, untaken_mail  # SQLite, which most questions do without

        box, now = self._mailbox, self._mailbox.now()
        asked = open_ends.read_asks(box.logs, session_id, box.config.ttls)
        lonely = untaken_mail.find_untaken(box.logs, session_id, box.config.ttls, now, newest=0, waiting=True)
        state = asked.replace(messages=lonely.messages, reads=message_reads.Reads(lonely.reads))
        poll = Poll(box.logs, session_id, box.config)
        unread = [item.message for item in poll.unread(now, adopt=False)]
        if box.logs.derives:
            poll.save()
        return Status(
            session_id=session_id,
            unread=len(unread),
            obligations=tuple(obligations.obligations(session_id, asked)),
            reads=asked.reads,
            dead_letters=lonely.surely + len(dead_letters.dead_letters(state, now, session_id)),
            agent=asked.roster.get(session_id),
            last_seen=self._mailbox.last_seen([session_id]).get(session_id),
            gone=frozenset(self._mailbox.gone([session_id])),
            missing_acks=tuple(awaited.missing_acks(session_id, asked, now)),
            waiting=tuple(_waiting(session_id, state, now)),
            waiting_reads=state.reads,
            now=now,
            idle=tuple(filter(inbox.is_idle_notice, unread)),
            queued=tuple(self._mailbox.queued()),
            never_sent=self._count_never_sent(),
        )

    def _count_never_sent(self) -> int:
        """Return how much live mail stayed here as this machine left its space; what is archived is settled."""
        kept = {one.encode() for one, how in self._mailbox.unsent().items() if how == NEVER_SENT}
        lines = self._mailbox.logs.messages.lines() if kept else ()
        mail = (codec.message(line) for _, line in lines if may_be_message(line, kept))
        return sum(isinstance(one, Message) and one.id.encode() in kept for one in mail)

    def waiting(self, session_id: str | None) -> tuple[list[Message], message_reads.Reads]:
        """Return the mail that the session (None: anyone) sent and that waits for nobody, the newest last, with its
        reads. The steward moves none of it."""
        from ..store.projection import untaken_mail  # as in ``status``

        box, now = self._mailbox, self._mailbox.now()
        lonely = untaken_mail.find_untaken(box.logs, session_id, box.config.ttls, now, newest=0, waiting=True)
        roster, reads = box.logs.read_roster(), message_reads.Reads(lonely.reads)
        state = InboxState(messages=lonely.messages, reads=reads, roster=roster, ttls=box.config.ttls)
        return _waiting(session_id, state, now), reads

    def owing(self, found: FoundMessage) -> list[Owing]:
        """Return who still owes a message the ack that it asks for."""
        roster, box = self._mailbox.logs.read_roster(), self._mailbox
        messages = {m.id: m for m in self.thread(found.message.id)[0]}
        state = InboxState(messages=messages, reads=found.reads, roster=roster, ttls=box.config.ttls)
        repliers = obligations.repliers(state).get(found.message.id)
        return awaited.owing(found.message, state, repliers or (), box.now())

    def costs(self, session_id: str | None) -> list[Cost]:
        """Return the tokens that hooks spent on a session's mail, or its predecessors'; None: on everyone's."""
        from ..core.cost import costs  # which no other question needs

        messages = self.everything().messages
        lineage = None if session_id is None else self._mailbox.logs.read_roster().lineage(session_id)
        box = self._mailbox
        records = dict.fromkeys(message_reads.with_archived(box.logs.read_records(), box.archive.reads()))
        return costs((r for r in records if lineage is None or r.session_id in lineage), messages)

    def wakes(self, session_id: str) -> tuple[int, int]:
        """Return how often doorbells woke a session, or its predecessors, and the tokens of that."""
        from ..store.log import events

        return events.wakes(self._mailbox.logs, self._mailbox.logs.read_roster().lineage(session_id))

    def dead_letters(
        self, session_id: str | None, since: int | None = None, limit: int | None = None
    ) -> tuple[list[tuple[Message, str]], int]:
        """Return the dead letters with their reason, the newest last, and how many older ones the ``limit`` left out.

        The session's, or everyone's (None). Only those sent since then (ms); default: all live ones, and the archive's
        of the last thirty days.
        """
        from ..store.projection import untaken_mail  # likewise

        box, now = self._mailbox, self._mailbox.now()
        lately = now - LATELY if since is None else since
        archived: dict[str, Message] = {}

        def moved() -> Iterable[str]:
            archived.update(self._archived(lately))
            return archived

        lonely = untaken_mail.find_untaken(
            box.logs, session_id, box.config.ttls, now, about=moved, since=since, newest=limit
        )
        roster = box.logs.read_roster()
        live = InboxState(messages=lonely.messages, reads=message_reads.Reads(), roster=roster, ttls=box.config.ttls)
        state = self._with_archive(live, lonely.reads, archived, lately)
        found = dead_letters.dead_letters(state, now, session_id)
        chosen = [(m, reason) for m, reason in found if since is None or m.timestamp >= since]
        shown = chosen if limit is None else chosen[-limit:]
        return shown, lonely.surely + len(chosen) - len(shown)

    def thread(self, message_id: str) -> tuple[list[Message], message_reads.Reads]:
        """Return a message's whole thread, oldest first, with the reads; raises as ``Mailbox.find`` does."""
        waits = {m.id: m for m in self._mailbox.queued()}
        answer = self._ask(lambda index: _chain(message_id, index))
        if answer is None:
            found = self._mailbox.find(message_id).message
            everything = self.everything()
            return conversations.thread_of(found.id, {**everything.messages, **waits}), everything.reads
        messages, reads = answer
        return conversations.thread_of(messages[0].id, {m.id: m for m in messages} | waits), reads

    def history(
        self, session_id: str | None, *, with_address: str | None = None, since: int | None = None, limit: int = 0
    ) -> tuple[list[Message], message_reads.Reads]:
        """Return mail the session sent or may see (None: everyone's), archived too, newest last, with its reads.

        ``with_address``: only mail from or to that agent, role, tag or ``all``; ``since`` in ms; the newest ``limit``.
        """
        if with_address is not None:
            self.check_party(with_address)
        selection = Selection(reader=session_id or "", address=with_address or "", since=since)
        try:
            return self._select(selection, limit)
        except NotFound:
            # mail to a name that nobody has yet is kept under the role of that name
            found = self._select(selection.replace(address=f"role:{with_address}"), limit)
            if not found[0]:
                raise
            return found

    def check_party(self, word: str) -> None:
        """Raise ``Malformed`` for an unknown namespace, and ``NotFound`` for no word: it would narrow nothing."""
        if ":" in word:
            check_namespace(word, self._mailbox.config.namespaces)  # the value may be a stranger's
        elif not word:
            self._mailbox.logs.read_roster().find(word)

    def search(self, query: str, limit: int) -> tuple[list[Message], message_reads.Reads]:
        """Return the newest ``limit`` messages that have every word of the query, newest last, with their reads.

        A word matches a whole word of the subject, the content or the sender, or its beginning if it ends with ``*``.
        Only letters and digits count, without case and accents; a query that has none finds nothing.
        """
        return self._select(Selection(query=query), limit) if words.phrases(query) else ([], message_reads.Reads())

    def _select(self, selection: Selection, limit: int) -> tuple[list[Message], message_reads.Reads]:
        messages, reads = self._newest(selection, limit)
        if queued := self._mailbox.queued():
            waits = filter(chooses(selection, self._mailbox.logs.read_roster()), queued)
            messages = [*{m.id: m for m in (*messages, *waits)}.values()][-limit:]
        return messages, reads

    def _newest(
        self, selection: Selection, limit: int, before: Position | None = None
    ) -> tuple[list[Message], message_reads.Reads]:
        """Return the newest messages of a selection before a position. Each look begins with another predicate: an
        index that turns out wrong is built and asked again, or all mail is looked through."""
        roster = self._mailbox.logs.read_roster()
        chosen, until = chooses(selection, roster), None if before is None else before.timestamp

        def wanted() -> Callable[[Message], bool]:
            older = OlderSelection(before)
            return lambda m: older(m) and chosen(m)

        answer = self._ask(lambda index: index.newest(candidates(index, selection, roster, until), wanted(), limit))
        if answer is None:
            everything = self.everything()
            newest_first = list(everything.messages.values())[::-1]  # as the index would offer them
            answer = [*filter(wanted(), newest_first)][: limit or None][::-1], everything.reads
        return answer

    def keep_index(self) -> None:
        """Catch the index of a large mailbox up with its logs, so that no look-up has to."""
        if self._mailbox.is_large():
            self._ask(lambda _: True)

    def _ask(self, question: Callable[[IndexLookup], T | None]) -> T | None:
        """Return the index's answer; None without an index."""
        from ..store.projection import lookup  # likewise

        return lookup.ask_index(self._mailbox.logs, self._mailbox.archive, question, at_once=self.newest_alone)

    def wait(self, session_id: str, timeout: float | None) -> int:
        """Block until the session has unread mail and return how much; 0 at ``timeout`` (seconds).

        Raises ``BadData`` if a log is cut or replaced meanwhile."""
        from ..errors import BadData
        from ..store.files import watch  # ctypes, which no other question needs

        with watch.Watch([self._mailbox.directory]) as changes:
            deadline, known = watch.deadline(timeout), self._mailbox.logs.broken()
            delivery = self._mailbox.part(Delivery)
            while True:
                if known is None and (why := self._mailbox.logs.broken()) is not None:
                    raise BadData(why, "look at the log, then run `agent-mailbox doctor --trust`", code="broken")
                with Patience(None if deadline is None else deadline - system.monotonic()):
                    unread = len(delivery.look_for_showable(session_id))
                again = watch.deadline(WITHHELD) if delivery.withheld else None
                until = min((end for end in (deadline, again) if end is not None), default=None)
                if unread or (not changes.wait(until) and until == deadline):
                    return unread


def _waiting(session_id: str | None, state: InboxState, now: int) -> list[Message]:
    lineage = None if session_id is None else state.roster.lineage(session_id)
    mine = (m for m in state.messages.values() if lineage is None or m.sender in lineage)
    return [m for m in mine if awaited.waits_for_nobody(m, state, now)]


def _chain(message_id: str, index: IndexLookup) -> tuple[list[Message], message_reads.Reads] | None:
    """Return the thread of the one message that the word means; None for no message, and for several."""
    ids = index.ids(message_id, prefix=len(message_id.casefold()) >= MIN_MESSAGE_PREFIX)
    if len(ids) != 1:
        return None
    (found,) = ids
    messages, reads = index.related(found)
    return conversations.thread_of(found, messages), reads
