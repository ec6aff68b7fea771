"""Notes of which session last wrote which file, and the note that a lease may hold: for the guard before a tool.

Belongs here: these derived files (``.cache/edits``). The shim reads and writes them by builtins, in this form. A note's
name is the file's real path with ``:`` for each slash. Its first line is the session and that path; its second names
the sessions that were told of each other. The note ``leased`` says that a lease may hold. Without the directory the
shim asks Python, which makes it: to delete all of ``.cache`` loses no warning of a lease.
"""

from __future__ import annotations

from ..core.records import Record
from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .logs import Logs

EDITS, TOLD = "edits", "leases-told"
_LEASED = "leased"
RECENT = 10 * 60 * 1000
"""Milliseconds within which two sessions that write one file are told of each other."""
_OLD = 3600 * 1_000_000_000
_MOST = 64 * 1024
"""Bytes of what a session was told; after that it is told again."""


class Edit(Record):
    """The last write of a file: the session, its time (ms), and the sessions that were told of each other."""

    session_id: str
    when: int
    told: tuple[str, ...]


class Edits:
    """The notes of one mailbox."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._directory = logs.cache(EDITS)
        self._leased = logs.cache(EDITS, _LEASED)

    def is_ready(self) -> bool:
        """Return whether the directory is there, so that ``leased`` tells what the shim needs."""
        return system.is_own_directory(self._directory)

    def is_leased(self) -> bool:
        """Return whether a lease may hold."""
        return not self.is_ready() or system.exists(self._leased)

    def leased(self) -> None:
        """Note that a lease may hold. Its writer does so before it writes the lease, and again after."""
        self._write(self._leased, b"")

    def settle(self, *, holds: bool) -> None:
        """Note whether any lease holds; the caller holds the lock of the messages log since it looked."""
        try:
            system.make_directory(self._directory)
            if holds:
                self.leased()
            elif system.exists(self._leased):
                system.unlink(self._leased)
        except OSError:
            pass

    def last(self, real: str) -> Edit | None:
        """Return the last noted write of a file; None if there is none that is sound."""
        path = self._note(real)
        try:
            made = system.lstat(path)
        except (OSError, ValueError):
            return None
        first, _, rest = _read(path).partition("\n")
        session_id, _, named = first.partition(" ")
        if made.st_mode & system.S_IFMT != system.S_IFREG or named != real or not session_id:
            return None
        return Edit(session_id, made.st_mtime_ns // 1_000_000, tuple(rest.split()))

    def note(self, real: str, session_id: str, told: tuple[str, ...] = ()) -> None:
        """Note that a session writes a file now."""
        if "\n" not in real and self.is_ready():
            text = f"{session_id} {real}\n" + (f"{' '.join(told)}\n" if told else "")
            self._write(self._note(real), system.encoded(text))

    def was_told(self, session_id: str, what: str) -> bool:
        """Return whether the session was told of this."""
        return what in _read(self._logs.cache(TOLD, session_id)).split("\n")

    def tell(self, session_id: str, what: str) -> None:
        """Note that the session was told of this."""
        path = self._logs.cache(TOLD, session_id)
        known = _read(path) if system.size(path) < _MOST else ""
        self._write(path, system.encoded(f"{known}{what}\n"))

    def sweep(self, now: int) -> None:
        """Remove notes of writes that no longer count; ``now`` in ms."""
        try:
            names = system.listdir(self._directory) if self.is_ready() else []
        except OSError:
            return
        for name in names:
            path = system.join(self._directory, name)
            try:
                if name != _LEASED and system.lstat(path).st_mtime_ns < now * 1_000_000 - _OLD:
                    system.unlink(path)
            except OSError:
                pass

    def _note(self, real: str) -> str:
        return system.join(self._directory, real.replace("/", ":"))

    def _write(self, path: str, data: bytes) -> None:
        flags = system.O_WRONLY | system.O_CREAT | system.O_TRUNC | system.O_CLOEXEC
        flags |= system.O_NOFOLLOW | system.O_NONBLOCK
        try:
            try:
                fd = system.open(path, flags, 0o600)
            except FileNotFoundError:
                if system.dirname(path) == self._directory:
                    return  # ``settle`` makes it, and looks for leases then
                system.make_directory(system.dirname(path))
                fd = system.open(path, flags, 0o600)
            try:
                system.write_whole(fd, data)
            finally:
                system.close(fd)
        except (OSError, ValueError):
            pass


def _read(path: str) -> str:
    """Return the text of a small file; empty if it cannot be read."""
    try:
        fd = system.open(path, system.O_RDONLY | system.O_NOFOLLOW | system.O_NONBLOCK | system.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        return system.read(fd, _MOST + 4096).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        system.close(fd)
