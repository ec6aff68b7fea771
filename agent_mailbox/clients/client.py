"""The client's process, as seen by one that waits beside it: does it live, and what is its session doing?

Belongs here: the client's registry of its sessions, one file a process, which it writes over at every change (seen
with 2.1.329: ``sessionId``, and ``status``). It is the client's own business and may change: what
cannot be found there is unknown, never guessed.
"""

from __future__ import annotations

import os

from ..core import codec
from ..core.records import BadLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

IDLE = ("idle", "shell")
"""Between turns: nothing runs, or commands in the background only."""
BUSY = ("busy", "waiting")
"""In a turn, or in a dialog of one."""
_MOST = 1 << 16


def number(environ: Mapping[str, str]) -> int | None:
    """The client's process, if it tells; None for a client nobody sits at: that waits for what its hooks leave in the
    background, at its start or at its end (seen with 2.1.329, ``-p``)."""
    pid = environ.get("CLAUDE_PID", "")
    attended = environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"
    return int(pid) if attended and pid.isascii() and pid.isdigit() and 1 < len(pid) < 10 else None


class Client:
    """A client's process, for a ``with`` block. Raises ``ProcessLookupError`` if it is gone."""

    def __init__(self, pid: int, environ: Mapping[str, str]) -> None:
        home = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME") or "/", ".claude")
        self._pid = pid
        self._directory = os.path.join(home, "sessions")
        self._file = os.path.join(self._directory, f"{pid}.json")
        self.ends: tuple[int, ...] = ()
        """Descriptors with something to read once it ended; none where the system has no such thing."""
        if hasattr(os, "pidfd_open"):
            self.ends = (os.pidfd_open(pid),)
        else:
            os.kill(pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self.ends:
            os.close(fd)

    def lives(self) -> bool:
        """Has it not ended?"""
        import select

        if self.ends:
            return not select.select(self.ends, [], [], 0)[0]
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return False
        return True

    def doing(self) -> tuple[str | None, str | None]:
        """(session, status), each None where it is not known."""
        try:
            with open(self._file, "rb") as file:
                entry = codec.parse(file.read(_MOST), _MOST, ours=False)
        except OSError:
            return None, None
        if isinstance(entry, BadLine):  # read while it was written: there is another change to come
            return None, None
        session, status = entry.get("sessionId"), entry.get("status")
        return session if isinstance(session, str) else None, status if isinstance(status, str) else None

    def place(self) -> str | None:
        """Where a change of that shows: the file, else the directory it will come into."""
        return next((path for path in (self._file, self._directory) if os.path.exists(path)), None)
