"""The console's thread that reaches the person elsewhere, while its page may be open or not.

Belongs here: when it looks: after a change, when a notice is due, and never twice within ``REST``.
"""

from __future__ import annotations

import logging
import threading

from ..errors import MailboxError
from ..mailbox.facade import Mailbox
from ..upkeep import notify, waker

REST = 2.0
"""Seconds between two looks at least: a burst is one look."""
TROUBLE = 60.0
_LOG = logging.getLogger(__name__)


class Notifier:
    """The thread. It has a mailbox of its own, so that a slow server delays no page."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._changed.set()
        self._thread.start()

    def changed(self) -> None:
        """Have it look, from any thread."""
        self._changed.set()

    def stop(self) -> None:
        """End the thread; one that waits for a server ends with the process."""
        self._ended.set()
        self._changed.set()

    def _run(self) -> None:
        wait: float | None = None
        while not self._ended.is_set():
            self._changed.wait(wait)
            self._changed.clear()
            if not self._ended.is_set():
                wait = self._look()
            self._ended.wait(REST)

    def _look(self) -> float | None:
        """Look once; return the seconds until the next look, None to wait for a change."""
        try:
            mailbox = Mailbox(self._directory)
            looked = notify.look(mailbox)
            started = waker.look(mailbox)
        except (MailboxError, OSError) as error:
            self._complain(f"{error}")
            return TROUBLE
        for session_id, why in started.items():
            self._complain(f"wake {session_id}: {why}" if why else "")
        for way, why in looked.ways.items():
            self._complain(f"notify by {way}: {why}" if why else "")
        return None if looked.again is None else max((looked.again - mailbox.now()) / 1000, REST)

    def _complain(self, what: str) -> None:
        if what and what != self._said:
            _LOG.error("%s", what)
        self._said = what or self._said
