"""The one process that waits on a session's behalf: who it is, and what it leaves for the next.

Belongs here: the file by which a second one finds out that there is one, its lock, and its two lines. The first line is
for the shell guard, which can read but not lock: the process, the client it waits for. The second is for whoever
waits next. Derived like all of ``.cache``: without it a process is started that need not have been.
"""

from __future__ import annotations

from ..errors import Busy
from . import system
from .lock import FileLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

DOORBELL = "doorbell"
NOBODY, OFF = "-", "off"
"""Instead of a process: none waits; none is wanted."""
_MOST = 1 << 16


class Vigil:
    """A session's vigil, for a ``with`` block once it was taken; ``cache`` is the mailbox's ``.cache``, ``client`` the
    number of the client's process."""

    def __init__(self, cache: str, session_id: str, client: int) -> None:
        self.directory = system.join(cache, DOORBELL)
        self.left: tuple[str, ...] = ()
        """What the one before left, word by word."""
        self._client = str(client)
        self._lock = FileLock(system.join(self.directory, session_id), 0)

    def take(self, *, replace: bool = True) -> bool:
        """Become the one. False if another is, for the same client; one that waits for another client of the session
        is replaced (it finds itself without its file), unless ``replace`` is False. Raises ``MailboxError``."""
        system.make_directory(self.directory)
        with FileLock(self.directory, 5.0):
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
        """Is this still the one that everybody finds?"""
        return self._lock.stands()

    def removed(self) -> bool:
        """Is the file gone, and nobody's place taken? ``take`` makes it anew."""
        return not system.exists(self._lock.path)

    def leave(self, who: str, words: tuple[str, ...]) -> None:
        """Go, and leave this for the next; ``who``: NOBODY or OFF."""
        self.left = words
        self._write(who, words)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def _lines(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            fd = system.open(self._lock.path, system.O_RDONLY | system.O_CLOEXEC)
        except OSError:
            return (), ()
        try:
            first, _, second = system.read(fd, _MOST).decode("utf-8", "surrogateescape").partition("\n")
        finally:
            system.close(fd)
        return tuple(first.split()), tuple(second.split())

    def _write(self, who: str, words: tuple[str, ...]) -> None:
        text = f"{who} {self._client}\n{' '.join(words)}\n".encode("utf-8", "surrogateescape")
        system.ftruncate(self._lock.fd, 0)
        system.write(self._lock.fd, text[:_MOST])
