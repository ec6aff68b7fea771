"""Check the derived files: do they agree with the logs?

Belongs here: asking each file its question, and asking the logs the same. Readers ignore a file with a bad checksum, so
that is a note. A file with a good checksum and a wrong answer is a problem. The worst are wrong stamps, if the guard
believes them. A quiet one hides unread mail; an unbound one lets every tool call of a bound session through.

Writers continue during the checks. So a difference is checked again under the logs' locks before it is reported.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from ...control_plane import control_log, standing
from ...core import inbox, roster_cache
from ...core.findings import REMOVE_DERIVED, Problem
from ...core.records import IDLE, NOW
from ...core.roster import DEAD, Roster
from ...core.roster_cache import RosterCache
from ...errors import MailboxError, StorageFailed
from ...mailbox.open_mailbox import OpenMailbox
from ...store.files import small_files, system
from ...store.files.lines import lines_of
from ...store.files.small_files import list_names, read_if_possible
from ...store.locks.lock import Patience
from ...store.log import stamps
from ...store.log.logs import Logs, OpenLogs, parse_roster, read_head
from ...store.polling.poll import CURSORS, Poll
from ...store.user_state import bindings
from . import obstacles, search_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...core.inbox import InboxState, Item
    from ...mailbox.mailbox import Mailbox
    from ...store.log.log import Log
    from ...store.log.proof_view import ProofView
    from ...store.polling.poll import Cursor

PATIENCE = 1.0
"""Seconds that a check waits for each log's lock; ``use_checks`` tells who keeps one."""
FOLDED = 8 << 20
"""Bytes of live logs up to which one fold serves all sessions; above it each session's mail is folded again, to bound
memory."""


class LogsOnly(Logs):
    """The logs without their derived files: the truth for these checks."""

    def __init__(self, logs: Logs) -> None:
        super().__init__(logs.directory, logs.wait, logs.custody)
        self.derives = False

    def _folded_roster(self, fd: int, end: int, view: ProofView | None) -> Roster:
        return Roster(parse_roster(lines_of(fd, 0, end), view))


class CursorlessPoll(Poll):
    """A poll without a cursor."""

    def _load(self) -> Cursor | None:
        return None


class UnusedCursorError(Exception):
    """A poll would begin at the logs, so nothing follows from the cursor."""


class CursorPoll(Poll):
    """A poll from the session's cursor alone. After the steward archived, no cursor is used once more."""

    def _caught_up(self, cursor: Cursor, logs: OpenLogs, now: int) -> list[Item]:
        if cursor.messages[1] == 0:
            raise UnusedCursorError
        return super()._caught_up(cursor, logs, now)


class UnreadToCheck:
    """A session's unread mail by the logs alone."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self.logs = LogsOnly(mailbox.logs)
        self._state: InboxState | None = None

    def unread_by_logs(self, session_id: str) -> list[Item]:
        """Return the session's unread mail in the order of showing; nothing for a dead one."""
        config, now = self._mailbox.config, self._mailbox.now()
        if self.logs.read_roster().state(session_id) == DEAD:
            return []
        if self._is_small():
            if self._state is None:
                self._state = self.logs.state(config.ttls)
            return inbox.unread(session_id, self._state, now)
        return self.unread_by_poll(CursorlessPoll, session_id)

    def unread_by_poll(self, kind: type[Poll], session_id: str) -> list[Item]:
        """Return the unread mail that a poll of this kind finds."""
        return kind(self.logs, session_id, self._mailbox.config).unread(self._mailbox.now(), adopt=False)

    def by_cursor(self, session_id: str) -> list[Item] | None:
        """Return the unread mail that a poll finds from the session's cursor; None if the cursor is unreadable. Raises
        ``UnusedCursorError``."""
        if self.logs.read_roster().state(session_id) == DEAD:
            return []
        try:
            return self.unread_by_poll(CursorPoll, session_id)
        except (TypeError, ValueError, IndexError, KeyError):
            return None

    def _is_small(self) -> bool:
        with OpenLogs(self.logs) as logs:
            return logs.messages_end + logs.reads_end <= FOLDED


def check_derived(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the derived files that disagree with the logs."""
    truth = UnreadToCheck(mailbox)  # one for both: to fold the roster of some thousand agents takes most of the time
    for part in (
        _check_ends(mailbox),
        _check_roster_cache(mailbox),
        _check_stamps(mailbox, truth),
        _check_unbound(mailbox),
        _check_cursors(mailbox, truth),
        search_checks.check_projection(mailbox),
    ):
        with suppress(StorageFailed):  # log_checks reports an unreadable log
            yield from part


def _is_still_wrong(mailbox: Mailbox, wrong: Callable[[], object]) -> bool:
    """Return whether it is wrong under the logs' locks, too; without write access, just check once more."""
    with ExitStack() as stack:
        try:
            for log in (mailbox.logs.messages, mailbox.logs.reads, mailbox.logs.roster):
                if system.exists(log.path):
                    with Patience(PATIENCE):
                        stack.enter_context(log.held())
        except MailboxError:
            stack.close()
        return bool(wrong())


# -- the guard's ------------------------------------------------------------------------------------------------------


def _check_stamps(mailbox: Mailbox, truth: UnreadToCheck) -> Iterator[Problem]:
    def count_hidden(truth: UnreadToCheck) -> int:
        return len(inbox.due(truth.unread_by_logs(session_id), NOW, IDLE))

    def is_hiding(truth: UnreadToCheck) -> bool:
        return mailbox.logs.stamp_files.believed(session_id, mailbox.now()) is not None and count_hidden(truth) > 0

    for session_id in list_names(mailbox.logs.cache(stamps.QUIET)):
        if is_hiding(truth) and _is_still_wrong(mailbox, lambda: is_hiding(UnreadToCheck(mailbox))):
            count = count_hidden(truth)
            what = f"says that {session_id} has no unread mail, but it has {count} unread, which its hooks hide"
            yield Problem(mailbox.logs.cache(stamps.QUIET, session_id), None, what, REMOVE_DERIVED)


def _check_unbound(mailbox: Mailbox) -> Iterator[Problem]:
    def is_wrong(desk: OpenMailbox) -> bool:
        agent = control_log.of(desk).roster.get(session_id)
        freed = bindings.frees(mailbox.logs.stamp_files, session_id, mailbox.now())
        return freed and standing.binds(standing.find_standing(desk, session_id), agent)

    desk = _open_underived(mailbox)
    for session_id in bindings.unbound(mailbox.logs.stamp_files):
        path = mailbox.logs.stamp_files.kept(stamps.UNBOUND, session_id)
        if is_wrong(desk) and _is_still_wrong(mailbox, lambda: is_wrong(_open_underived(mailbox))):
            what = f"says that nothing binds {session_id}, but it has a lead or a policy, which its tool calls bypass"
            yield Problem(path, None, what, REMOVE_DERIVED)


def _open_underived(mailbox: Mailbox) -> OpenMailbox:
    box = OpenMailbox(mailbox.directory, clock=mailbox.now)
    box.logs = LogsOnly(mailbox.logs)
    return box


def _check_ends(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield notes of logs that end elsewhere than our last writer left them; that is safe, but another wrote."""
    if mailbox.logs.custody is not None and mailbox.logs.custody.broken() is not None:
        return  # a log that was cut is not harmless; ``proof_checks`` tells of it
    # Where our writers can note no end, nobody can tell that (``use_checks`` tells why).
    if any(obstacles.to_create(mailbox.logs.cache(*name)) for name in ((), (stamps.ENDS,), (stamps.QUIET,))):
        return
    for log in (mailbox.logs.messages, mailbox.logs.reads, mailbox.logs.roster):
        if _ended_elsewhere(mailbox, log) and _is_still_wrong(mailbox, partial(_ended_elsewhere, mailbox, log)):
            what = f"{_ended_elsewhere(mailbox, log)}; harmless, the next writer notices"
            yield Problem(log.path, None, what, note=True)


def _ended_elsewhere(mailbox: Mailbox, log: Log) -> str | None:
    left = mailbox.logs.stamp_files.ended(log.path)
    try:
        at = system.stat(log.path)
    except OSError:
        return None
    if left is None or left[:2] == (at.st_ino, at.st_size):
        return None
    if left[0] != at.st_ino:
        return "another program replaced the file since our last write"
    gap = at.st_size - left[1]
    if gap > 0:
        return f"{gap} bytes longer than after our last write: another program wrote them"
    return f"{-gap} bytes shorter than after our last write: the writer was killed, or the log was cut"


# -- the polls' -------------------------------------------------------------------------------------------------------


def _check_roster_cache(mailbox: Mailbox) -> Iterator[Problem]:
    view = mailbox.logs.roster.view()
    path = mailbox.logs.rollbook
    body = small_files.load_derived(path)
    if body is None:
        yield from _note_unsound(path)
        return
    head, _, text = body.partition(b"\n")
    fd = mailbox.logs.roster.open()
    try:
        at, counted = read_head(head)
        if fd is None or not small_files.holds_mark(fd, at) or (view is not None and view.counted is None):
            return  # of another log: unused
        told = Roster(parse_roster(lines_of(fd, 0, at[1]), view))
        if view is not None and view.counted != counted:
            return
        if text != roster_cache.written(told) and _is_different(RosterCache(text), told):
            yield Problem(path, None, "holds another roster than the log", REMOVE_DERIVED)
    except (ValueError, IndexError, TypeError, KeyError):
        yield Problem(path, None, "cannot be read", REMOVE_DERIVED)
    finally:
        if fd is not None:
            system.close(fd)


def _is_different(written: RosterCache, told: Roster) -> bool:
    same_lineages = all(written.lineage(i) == told.lineage(i) for i in told.agents)
    return written.agents != told.agents or written.roles_ever != told.roles_ever or not same_lineages


def _check_cursors(mailbox: Mailbox, truth: UnreadToCheck) -> Iterator[Problem]:
    def has_drifted(truth: UnreadToCheck) -> bool:
        try:
            found = truth.by_cursor(session_id)
        except UnusedCursorError:
            return False
        return found is None or [i.message.id for i in found] != [
            i.message.id for i in truth.unread_by_logs(session_id)
        ]

    for session_id in list_names(mailbox.logs.cache(CURSORS)):
        path = mailbox.logs.cache(CURSORS, session_id)
        if small_files.load_derived(path) is None:
            yield from _note_unsound(path)
        elif has_drifted(truth) and _is_still_wrong(mailbox, lambda: has_drifted(UnreadToCheck(mailbox))):
            what = f"makes {session_id} see other unread mail than the log holds"
            yield Problem(path, None, what, REMOVE_DERIVED)


def _note_unsound(path: str) -> Iterator[Problem]:
    """Yield a note of a derived file with a bad checksum; it counts as missing and is rebuilt."""
    if (head := read_if_possible(path, 64)) is None:
        return  # ``use_checks`` tells what is in the place of this file
    version, known = head.split(b" ")[:2], small_files.VERSION.split(b" ")
    if len(version) == 2 and version[0] == known[0] and version[1] != known[1]:
        what = f"of another version ({version[1].decode('ascii', 'replace')})"
    else:
        what = "changed since it was written (another program wrote, or a writer was killed)"
    yield Problem(path, None, f"{what}; it counts as missing and is rebuilt", note=True)
