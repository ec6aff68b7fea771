"""The console's thread that reaches the person elsewhere, while its page may be open or not.

Belongs here: when it looks: after a change, when a notice is due, and never twice within ``REST``.
"""

from __future__ import annotations

import logging
import threading

from ..control_plane import task_reports
from ..core.records import USER
from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..store.files.board import TASKS, Board
from ..upkeep import notify, waker
from .desk import prove_person

REST = 2.0
"""Seconds between two looks at least: a burst is one look."""
TASKS_REST = 60.0
"""Seconds between two looks while there are tasks: that a holder is silent changes no file."""
TROUBLE = 60.0
_LOG = logging.getLogger(__name__)


class Notifier:
    """The thread. It has a mailbox of its own, so that a slow server delays no page."""

    def __init__(self, directory: str, link: str = "") -> None:
        self._directory = directory
        self._link = link
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._notify_forever, name="notify", daemon=True)

    def start_notifying(self) -> None:
        self._changed.set()
        self._thread.start()

    def note_change(self) -> None:
        """Have it look, from any thread."""
        self._changed.set()

    def stop_notifying(self) -> None:
        """End the thread; one that waits for a server ends with the process."""
        self._ended.set()
        self._changed.set()

    def _notify_forever(self) -> None:
        wait: float | None = None
        while not self._ended.is_set():
            self._changed.wait(wait)
            self._changed.clear()
            if not self._ended.is_set():
                wait = self._look_once()
            self._ended.wait(REST)

    def _look_once(self) -> float | None:
        """Look once; return the seconds until the next look, None to wait for a change."""
        try:
            mailbox = Mailbox(self._directory, prove=prove_person)
            task_reports.tell(mailbox, USER)
            looked = notify.notify_if_due(mailbox, self._link)
            started = waker.start_waited_for(mailbox)
        except (MailboxError, OSError) as error:
            self._complain_once(f"{error}")
            return TROUBLE
        for session_id, why in started.items():
            self._complain_once(f"wake {session_id}: {why}" if why else "")
        for way, why in looked.ways.items():
            self._complain_once(f"notify by {way}: {why}" if why else "")
        waits = [] if looked.again is None else [max((looked.again - mailbox.now()) / 1000, REST)]
        waits += [TASKS_REST] if Board(mailbox.logs.stamp_files, TASKS).is_used() else []
        return min(waits, default=None)

    def _complain_once(self, what: str) -> None:
        if what and what != self._said:
            _LOG.error("%s", what)
        self._said = what or self._said
