"""The console's mailbox: facades for reading, for looking through much and for acting, each behind a lock.

Belongs here: opening them, warming their caches, following the notes, and the person's cursor. Requests run in threads,
and a facade caches its folds, so one thread at a time uses each. Acting has its own, so that a slow page delays no
decision.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from ..control.requests import Requests
from ..control_plane import control_log
from ..core import proofs
from ..core.control.control_requests import ControlRequest
from ..core.inbox import Item
from ..core.keeping import notes
from ..core.keeping.notes import Note
from ..core.line_forms import may_be_note
from ..core.records import USER, Message, Proof
from ..core.roster import Roster
from ..errors import MailboxError
from ..mailbox.mail_pages import MailPages
from ..mailbox.mailbox import Mailbox
from ..mailbox.noting import parse_notes
from ..store.files import paths, system
from ..store.log.growing_log import GrowingLog
from ..store.log.logs import Logs
from ..store.projection.lookup import ask_index
from .charts import ChartCounts
from .spending import Spending
from .survey import Survey
from .unread import Unread

T = TypeVar("T")
MUCH = 16 << 20
"""Bytes of mail that take a second to index."""
STEP = 1 << 20
"""Bytes of new mail before the cursor moves on: reading them takes some milliseconds."""
Params = Mapping[str, str]
"""The parameters of a page's address, or the fields of a form."""


def prove_person(session_id: str) -> Proof | None:
    """Return the proof that the person acts: only they can start the console and have its link."""
    return proofs.CONSOLE if session_id == USER else None


def _asked_once(ask: Callable[[Looking], T]) -> Callable[[Looking], T]:
    """Have a question asked once in a look, whose parts ask it again; outside of one it is asked each time."""

    @wraps(ask)
    def answer(now: Looking) -> T:
        known = {} if now.known is None else now.known
        if ask not in known:
            known[ask] = ask(now)
        found: T = known[ask]
        return found

    return answer


class FollowedNotes:
    """The notes of the live log, and how far it was read: ``mailbox.noting`` reads all of it, which a page cannot."""

    def __init__(self, logs: Logs) -> None:
        self._log = GrowingLog(logs.messages)
        self._found: list[Message] = []

    def list_current(self, roster: Roster) -> list[Note]:
        """Return the current notes, the newest last."""
        with self._log.news() as (begins_again, lines):
            if begins_again:
                self._found.clear()
            self._found += parse_notes((at for at in lines if may_be_note(at[1])), self._log.log.view())
        return [one for one in notes.fold(self._found, roster).values() if one.is_current]


class Looking:
    """The facade and its queries, as one page or action uses them. ``survey``: the figures about all agents. ``known``:
    the answers of this look, None outside of one."""

    def __init__(self, directory: str) -> None:
        self.mailbox = Mailbox(directory, prove=prove_person)
        self.requests = Requests(self.mailbox)
        self.queries = MailPages(self.mailbox)
        self.spending = Spending(self.mailbox)
        self.tallies = ChartCounts(self.queries)
        self.unread = Unread(self.mailbox, self.queries)
        self.notes = FollowedNotes(self.mailbox.logs)
        self.survey = Survey()
        self.known: dict[Callable[..., Any], Any] | None = None

    @contextmanager
    def look_once(self) -> Iterator[Looking]:
        """Ask for what several parts of a page need once, during a ``with`` block."""
        self.known = {}
        try:
            yield self
        finally:
            self.known = None

    @property
    def roster(self) -> Roster:
        return self.mailbox.logs.read_roster()

    def is_cold(self) -> bool:
        """Return whether the first question will take noticeably long: much mail, and no index yet."""
        logs, archive = self.mailbox.logs, self.mailbox.archive
        files = [logs.messages.path, *(archive.log(month).path for month in archive.months())]
        return sum(map(system.size, files)) > MUCH and not ask_index(logs, archive, lambda _: True, at_once=True)

    @_asked_once
    def gone_agents(self) -> set[str]:
        """Return the agents whose client's process is gone."""
        return self.mailbox.gone_of(self.roster.agents.values())

    @_asked_once
    def unread_letters(self) -> list[Item]:
        """Return the person's unread mail without control messages, which ``open_requests`` covers."""
        return self.mailbox.peek(USER, control=False)

    def record_read(self, ids: Collection[str]) -> int:
        """Record those of the person's unread messages as read, and no other; return how many."""
        return self.mailbox.deliver(USER, lambda items: items, only=ids)

    def settle_read(self, ids: Collection[str]) -> str:
        """Record requests as read that are decided; else they are never archived. Return why that failed, as a sentence
        that follows others: they are decided all the same."""
        try:
            self.record_read(ids)
        except MailboxError as error:
            return f" But it stays unread: {error.what}."
        return ""

    def requests_to_decide(self) -> list[ControlRequest]:
        """Return those open requests that the person decides, as far as something proves who asks."""
        roster = self.roster
        return [one for one in self.open_requests() if one.proven and USER in one.list_deciders(roster)]

    @_asked_once
    def open_requests(self) -> list[ControlRequest]:
        """Return everyone's open requests, so that nobody's stand behind another's many: the oldest of each asker, then
        the second of each. Those that nothing proves come last."""
        found = self.requests.pending(USER, everyones=True)
        before: Counter[tuple[str, bool]] = Counter()
        ranked = []
        for place, request in enumerate(found):
            whose = request.asker, request.proven
            ranked.append((not request.proven, before[whose], place))
            before[whose] += 1
        return [found[place] for *_, place in sorted(ranked)]


class Desk:
    """The mailbox's facades, behind locks. Each refuses a mailbox that is gone from its place: none is made again.
    ``counted`` gives the newest figures about all agents."""

    def __init__(self, directory: str, counted: Callable[[], Survey] = Survey) -> None:
        self._looking = Looking(directory)
        self._acting = Looking(directory)
        self._seeking = Looking(directory)
        self._locks = threading.Lock(), threading.Lock(), threading.Lock()
        self._followed = 0, 0
        self._counted = counted
        self.directory = self._looking.mailbox.directory

    @contextmanager
    def lock_for_reading(self) -> Iterator[Looking]:
        """Lock the facade for reading during a ``with`` block."""
        with self._locks[0], self._looking.look_once() as now:
            paths.check(self.directory)
            now.survey = self._counted()
            yield now

    @contextmanager
    def lock_for_seeking(self) -> Iterator[Looking]:
        """Lock the facade for pages that look through much, during a ``with`` block: no other page waits for them."""
        with self._locks[2]:
            paths.check(self.directory)
            self._seeking.queries.newest_alone = self._looking.queries.newest_alone
            with self._seeking.look_once() as now:
                now.survey = self._counted()
                yield now

    @contextmanager
    def lock_for_acting(self) -> Iterator[Looking]:
        """Lock the facade for acting during a ``with`` block."""
        with self._locks[1]:
            paths.check(self.directory)
            yield self._acting

    def is_cold(self) -> bool:
        """Return whether warming will take noticeably long."""
        return self._looking.is_cold()

    def prepare_index(self, done: Callable[[bool], None]) -> None:
        """Build what ``warm_caches`` builds in a thread of its own; call ``done`` with its answer.

        Until then pages look through the newest mail alone. A process that ends meanwhile leaves a file that is built
        again.
        """
        self._looking.queries.newest_alone = True

        def build_index() -> None:
            built = False
            try:
                built = Looking(self.directory).queries.prepare()
                self.advance_cursor()
            except (MailboxError, OSError):
                pass  # a page shows why
            self._looking.queries.newest_alone = False
            done(built)

        threading.Thread(target=build_index, name="index", daemon=True).start()

    def warm_caches(self) -> bool:
        """Build the index, the control fold and the person's cursor. Return whether an index is available, without
        which a large mailbox is slow."""
        with self.lock_for_reading() as now:
            control_log.of(now.mailbox)
            self.advance_cursor()
            now.notes.list_current(now.roster)
            return now.queries.prepare()

    def advance_cursor(self) -> None:
        """Advance the person's cursor past read mail after many writes, so that the next page reads only news. Marks
        nothing as read."""
        try:
            with self.lock_for_acting() as now:
                inode, size = now.mailbox.logs.ends()[0]
                if inode == self._followed[0] and size - self._followed[1] < STEP:
                    return
                self._followed = inode, size
                now.mailbox.deliver(USER, lambda _: ())
        except (MailboxError, OSError):
            pass  # the cursor is derived; pages only get slower. The mailbox may be gone for a while
