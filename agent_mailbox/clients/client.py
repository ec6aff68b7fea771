"""The client's process, as seen by one that waits beside it: does it live, and what is its session doing?

Belongs here: the life of that process, and what its line in the client's registry says (``session_registry``).
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Self

from ..identity.session_registry import read_entry, registry_directory
from ..known_clients.every_client import USUAL
from . import switched_off

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ..known_clients.known_client import KnownClient

IDLE = ("idle", "shell")
"""Between turns: nothing runs, or only commands in the background."""
BUSY = ("busy", "waiting")
"""In a turn, or in a dialog of one."""


def client_number(environ: Mapping[str, str], kind: KnownClient | None = None) -> int | None:
    """Return the client's process; None if it is unknown, or no person sits at it. Claude Code (``-p``) waits then at
    its start or end for hooks in the background (seen with 2.1.329). Our plugin in OpenCode starts no doorbell where no
    person sits."""
    kind = kind or USUAL
    pid = environ.get(kind.process_variable, "") if kind.is_attended(environ) else ""
    return int(pid) if pid.isascii() and pid.isdigit() and 0 < len(pid) < 10 and pid != "0" else None


class Client:
    """A client's process, for a ``with`` block. Raises ``ProcessLookupError`` if it is gone. ``idle``: a session known
    to be idle as long as this runs; the plugin in OpenCode ends its doorbell as a turn begins. ``project``: the
    directory of a session of Claude Code."""

    def __init__(self, pid: int, environ: Mapping[str, str], idle: str | None = None, project: str = "") -> None:
        self._idle = idle
        self.notice = USUAL.wake_tokens if idle is None else 0
        """Tokens that the client adds to the line of a wake."""
        home = USUAL.find_home(environ)
        self.pid = pid
        self._settings = switched_off.settings_of(home, project) if project else ()
        self._is_named = switched_off.names_us(self._settings)
        self._directory = registry_directory(environ)
        self._file = os.path.join(self._directory, f"{pid}.json")
        self.ends: tuple[int, ...] = ()
        """Descriptors that become readable once it ended; none on a system without pidfds."""
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

    def is_alive(self) -> bool:
        """Return whether it still runs."""
        if self.ends:
            return not select.select(self.ends, [], [], 0)[0]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def session_and_status(self) -> tuple[str | None, str | None]:
        """Return (session, status), each None if unknown."""
        if self._idle is not None:
            return self._idle, IDLE[0]
        return read_entry(self._file)

    def may_be_left(self) -> bool:
        """Return whether a turn of the session may run out of its person's sight: then nothing wakes it."""
        return False

    def is_switched_off(self, heart: str) -> bool:
        """Return whether its settings let it call our hooks no more, since the one that made this file's time."""
        return switched_off.is_switched_off(self._settings, heart, named=self._is_named)

    def watched_settings(self) -> tuple[str, ...]:
        """Return the files and directories on which that shows."""
        return self._settings

    def watched_path(self) -> str | None:
        """Return the path on which a change shows: the file, else the directory it will be in."""
        places = (self._file, self._directory) if self._idle is None else ()
        return next((path for path in places if os.path.exists(path)), None)
