"""Whether mail can be kept now: the answer of ``/swarm/health`` and of the local API.

Belongs here: real writes and real opens, seldom (``FRESH``), and the outcome of the last mail that was to be kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..store.files.small_files import open_file, replace_file
from . import home as names
from .ledger import Ledger

FRESH = 1.0
"""Seconds for which a look counts: strangers who ask cost no more."""
REMEMBERED = 60.0
"""Seconds for which a failed write counts, if nothing was kept since."""
PROBE = "probe"
BLOCK = b"\0" * 4096


class Readiness:
    """Looks for a reason why a gateway cannot keep mail; thread-safe.

    One mailbox that fails makes a gateway with several no worse for the others: peers of its swarms are told.
    """

    def __init__(
        self, mailboxes: Sequence[Mailbox], ledger: Ledger, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.mailboxes, self._ledger, self._clock = list(mailboxes), ledger, clock
        self._lock = threading.Lock()
        self._looked, self._found = float("-inf"), ""
        self._failed: tuple[float, str] | None = None

    def note_kept(self) -> None:
        """Note that mail was kept."""
        self._failed = None

    def note_failed(self, code: str) -> None:
        """Note that mail could not be kept."""
        self._failed = self._clock(), code

    def current_problem(self) -> str:
        """Return why nothing can be kept, for the machine's own eyes; empty if mail can be kept."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= FRESH:
                self._found = next(self._find_problems(), "")
                self._looked = self._clock()
        failed = self._failed
        if not self._found and failed is not None and self._clock() - failed[0] < REMEMBERED:
            return f"the last message could not be kept: {failed[1]}"
        return self._found

    def _find_problems(self) -> Iterator[str]:
        home = self._ledger.home
        try:
            home.check_modes()
            if not self._ledger.read_knowledge().agent_id:
                yield f"the ledger is gone: {home.path_of(names.LEDGER)}"
            for path in (home.path_of(names.KEY), home.path_of(names.LEDGER)):
                _check_opens(path, os.O_RDONLY if path.endswith(names.KEY) else os.O_WRONLY | os.O_APPEND)
            _check_writable(home.path_of(PROBE))
            _check_appendable(home.path_of(names.OUTBOX))
        except MailboxError as error:
            yield error.what
        except OSError as error:
            yield f"{error.filename or home.directory}: {error.strerror}"
        found = [next(_of_mailbox(mailbox), "") for mailbox in self.mailboxes]
        if all(found):
            yield found[0]

    def unusable_mailboxes(self) -> dict[str, str]:
        """Return the mailboxes that cannot keep mail, each with the reason."""
        found = {mailbox.directory: next(_of_mailbox(mailbox), "") for mailbox in self.mailboxes}
        return {place: why for place, why in found.items() if why}


def _of_mailbox(mailbox: Mailbox) -> Iterator[str]:
    try:
        _check_appendable(mailbox.logs.messages.path)
    except MailboxError as error:
        yield error.what
    except OSError as error:
        yield f"{error.filename or mailbox.directory}: {error.strerror}"
    yield from _check_room(mailbox.directory)


def _check_appendable(path: str) -> None:
    if os.path.lexists(path):
        _check_opens(path, os.O_WRONLY | os.O_APPEND)


def _check_opens(path: str, flags: int) -> None:
    os.close(open_file(path, flags))


def _check_writable(path: str) -> None:
    replace_file(path, BLOCK)
    os.unlink(path)


def _check_room(directory: str) -> Iterator[str]:
    """Yield why a directory takes no new lines."""
    try:
        free = os.statvfs(directory)
    except OSError as error:
        yield f"{directory}: {error.strerror}"
        return
    if not os.access(directory, os.W_OK | os.X_OK) or free.f_flag & os.ST_RDONLY:
        yield f"{directory}: cannot be written"
    elif free.f_blocks and free.f_bavail == 0:
        yield f"{directory}: no space is left"
