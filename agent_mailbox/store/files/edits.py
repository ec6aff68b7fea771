"""Notes of which session wrote which file when, and the note that a lease may hold: for the guard before a tool.

Belongs here: these derived files (``.cache/edits``). Each session has a directory of empty files. A file's name is the
written file's real path with ``:`` for each slash, its time is that of the last write. The shim looks for the same name
in all of them, by builtins. An empty file is set to a new time without a write to the disk. The note ``.leased`` says
that a lease may hold. Without the directory the shim asks Python, which makes it: to delete all of ``.cache`` loses no
warning before a tool that writes files. Before a command it does, until the next such tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.records import Record
from . import system
from .small_files import list_names, note_time, read_if_possible, write_if_possible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..log.logs import Logs

EDITS, TOLD = "edits", "leases-told"
_LEASED = ".leased"
"""No session's id begins with a dot."""
RECENT = 10 * 60 * 1000
"""Milliseconds within which two sessions that write one file are told of each other."""
_MOST = 64 * 1024
"""Bytes of what a session was told; after that it is told again."""


class Edit(Record):
    """The last write of a file by a session, and its time (ms)."""

    session_id: str
    when: int


class Edits:
    """The notes of one mailbox."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._directory = logs.cache(EDITS)
        self._leased = logs.cache(EDITS, _LEASED)

    def is_ready(self) -> bool:
        """Return whether the directory is there, so that ``.leased`` tells what the shim needs."""
        return system.is_own_directory(self._directory)

    def is_leased(self) -> bool:
        """Return whether a lease may hold."""
        return not self.is_ready() or system.exists(self._leased)

    def leased(self) -> None:
        """Note that a lease may hold. Its writer does so before it writes the lease, and again after. Before a command
        the shim asks Python only where it finds this note."""
        write_if_possible(self._leased, b"")

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

    def others(self, real: str, me: str, now: int) -> list[Edit]:
        """Return the writes of a file by other sessions in the last minutes, latest first; drop older notes."""
        found = []
        for session_id in self._sessions():
            path = self._note(real, session_id)
            try:
                when = system.lstat(path).st_mtime_ns // 1_000_000 if session_id != me else -1
                if when >= 0 and abs(now - when) < RECENT:  # one may come between our time and our look
                    found.append(Edit(session_id, when))
                elif when >= 0:
                    system.unlink(path)
            except (OSError, ValueError):
                pass
        return sorted(found, key=lambda edit: -edit.when)

    def note(self, real: str, me: str, now: int) -> None:
        """Note that a session writes a file now (ms)."""
        if self.is_ready() and system.size(path := self._note(real, me)) == 0:
            note_time(path, now)

    def was_told(self, session_id: str, what: str) -> bool:
        """Return whether the session was told of this."""
        return system.encoded(what) in (read_if_possible(self._logs.cache(TOLD, session_id)) or b"").split(b"\n")

    def tell(self, session_id: str, what: str) -> None:
        """Note that the session was told of this."""
        path = self._logs.cache(TOLD, session_id)
        is_long = system.size(path) >= _MOST
        write_if_possible(path, system.encoded(f"{what}\n"), system.O_TRUNC if is_long else system.O_APPEND)

    def sweep(self, now: int) -> None:
        """Remove notes of writes that no longer count; ``now`` in ms."""
        for session_id in self._sessions():
            here = system.join(self._directory, session_id)
            try:
                for path in (system.join(here, name) for name in system.listdir(here)):
                    if now - system.lstat(path).st_mtime_ns // 1_000_000 >= RECENT:
                        system.unlink(path)
                system.rmdir(here)
            except OSError:
                pass  # most often others are in it

    def _sessions(self) -> Iterator[str]:
        for name in list_names(self._directory) if self.is_ready() else ():
            if system.is_own_directory(system.join(self._directory, name)):
                yield name

    def _note(self, real: str, session_id: str) -> str:
        return system.join(self._directory, session_id, real.replace("/", ":"))
