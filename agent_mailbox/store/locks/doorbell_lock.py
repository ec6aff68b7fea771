"""The one process that waits for a session's mail: its lock, and its words to the next one.

Belongs here: the file by which a second process finds the first, its lock, and its two lines. The first line is for the
shell guard, which can read but not lock: the process, and the client it waits for. The second is for the next waiting
process. The file is derived like all of ``.cache``: losing it costs one needless process.
"""

from __future__ import annotations

from typing import Self

from ...errors import Busy
from ..files import system
from ..files.paths import DOORBELL
from ..files.small_files import Storing, read_if_possible
from .existing_lock import DirectoryLock
from .lock import FileLock

NOBODY, OFF = "-", "off"
"""In the place of a process: none waits; none is wanted."""
_MOST = 1 << 16


class DoorbellLock:
    """A session's lock, for a ``with`` block after ``take``.

    ``cache`` is the mailbox's ``.cache``, ``client`` the number of the client's process.
    """

    def __init__(self, cache: str, session_id: str, client: int) -> None:
        self.directory = system.join(cache, DOORBELL)
        self.left: tuple[str, ...] = ()
        """The words that the process before left."""
        self._client = str(client)
        self._lock = FileLock(system.join(self.directory, session_id), 0)

    def take(self, *, replace: bool = True) -> bool:
        """Become the waiting process; return False if another one waits for the same client. Raise ``MailboxError``.

        A process that waits for another client of the session is replaced (it finds its file gone), unless ``replace``
        is False.
        """
        with Storing("make", self.directory):
            system.make_directory(self.directory)
        with DirectoryLock(self.directory):
            if self._lock.fd >= 0:
                self._lock.release()
            try:
                self._lock.take()
            except Busy:
                words = self._lines()[0]
                if not replace or not words or words[-1] == self._client:
                    return False
                system.unlink(self._lock.path)
                self._lock.take()
            self.left = self._lines()[1]
            self._write(str(system.getpid()), self.left)
        return True

    def stands(self) -> bool:
        """Return whether this is still the process that others find."""
        return self._lock.stands()

    def removed(self) -> bool:
        """Return whether the file is gone and no other process has made one; ``take`` makes it again."""
        return not system.exists(self._lock.path)

    def leave(self, who: str, words: tuple[str, ...], time: int | None = None) -> None:
        """Go, and leave these words for the next process; ``who`` is NOBODY or OFF.

        ``time`` (ns) is that of the configuration which wants none: the guard compares the two.
        """
        self._write(who, words)
        if time is not None:
            system.utime(self._lock.fd, ns=(time, time))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _lines(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        text = (read_if_possible(self._lock.path) or b"").decode("utf-8", "surrogateescape")
        first, _, second = text.partition("\n")
        return tuple(first.split()), tuple(second.split())

    def _write(self, who: str, words: tuple[str, ...]) -> None:
        text = f"{who} {self._client}\n{' '.join(words)}\n".encode("utf-8", "surrogateescape")
        system.ftruncate(self._lock.fd, 0)
        system.write(self._lock.fd, text[:_MOST])
