"""The mailbox as the console uses it: one facade for looking, one for acting, each behind a lock.

Belongs here: opening it, getting it warm, and the person's own position. Requests run in threads, and a facade keeps
what it folded: so one at a time. Acting has a facade of its own, for a page that takes long must not hold up a
decision.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core import proofs
from ..core.records import USER
from ..errors import MailboxError
from ..mailbox.facade import Mailbox
from ..mailbox.paging import Browsing
from ..store.index import FILE
from . import presenters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..control.requests import ControlRequest
    from ..core.inbox import Item
    from ..core.roster import Roster
    from .presenters import Receipt


MUCH = 64 << 20
"""Bytes of mail that take some seconds to be indexed."""


STEP = 1 << 20
"""Bytes of new mail that a look may go through: some milliseconds."""


def prove(session_id: str) -> str | None:
    """Prove that the person acts: only they have the link, and only they start the console."""
    return proofs.CONSOLE if session_id == USER else None


class Looking:
    """What a page is made of, at one moment."""

    def __init__(self, directory: str) -> None:
        self.mailbox = Mailbox(directory, prove=prove)
        self.control = self.mailbox.control
        self.library = Browsing(self.mailbox)

    @property
    def roster(self) -> Roster:
        """The roster now."""
        return self.mailbox.logs.read_roster()

    def letters(self) -> list[Item]:
        """The person's unread mail but for control messages, which ``requests`` shows as what they are."""
        return [item for item in self.mailbox.peek(USER) if item.message.type != "control"]

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """How far these messages have come; those that are none are left out."""
        messages, reads = self.library.known(ids)
        return {m.id: presenters.receipt(m, reads, self.roster) for m in messages}

    def requests(self) -> list[ControlRequest]:
        """What is open of everyone, oldest first."""
        return self.control.pending(USER, everyones=True)


class Desk:
    """The mailbox's facades, behind locks."""

    def __init__(self, directory: str) -> None:
        self._looking = Looking(directory)
        self._acting = Looking(directory)
        self._locks = threading.Lock(), threading.Lock()
        self._followed = 0, 0
        self.directory = self._looking.mailbox.directory

    @contextmanager
    def looking(self) -> Iterator[Looking]:
        """For a ``with`` block: nobody else looks meanwhile."""
        with self._locks[0]:
            yield self._looking

    @contextmanager
    def acting(self) -> Iterator[Looking]:
        """For a ``with`` block: nobody else acts meanwhile."""
        with self._locks[1]:
            yield self._acting

    def is_cold(self) -> bool:
        """Will getting warm take long enough to be said? (There is much mail, and no index yet.)"""
        logs, archive = self._looking.mailbox.logs, self._looking.mailbox.archive
        files = [logs.messages.path, *(archive.log(month).path for month in archive.months())]
        return sum(map(os.path.getsize, files)) > MUCH and not os.path.exists(logs.cache(FILE))

    def warm(self) -> bool:
        """Read once what later only grows: the index, the control plane, the person's cursor. False where there is no
        index to be had, without which a large mailbox is slow."""
        with self.looking() as now:
            now.control.plane()
            self.follow()
            return now.library.prepare()

    def follow(self) -> None:
        """Move the person's cursor on past what was read, where much was written since, so that the next look costs
        what is new; shows nothing."""
        with self.acting() as now:
            inode, size = now.mailbox.logs.ends()[0]
            if inode == self._followed[0] and size - self._followed[1] < STEP:
                return
            self._followed = inode, size
            try:
                now.mailbox.deliver(USER, lambda _: ())
            except MailboxError:
                pass  # derived: without it looking takes longer
