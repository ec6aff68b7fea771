"""The client's process, as seen by one that waits beside it: does it live, what is its session doing, does it call us?

Belongs here: the life of that process, what its line in the client's registry says (``session_registry``), and what its
settings say. A session of Claude Code that runs may call no hook of ours any more: somebody wrote ``disableAllHooks``,
or took our hooks out by hand. The client reads its settings while it runs. Hooks that none of these files holds (a
plugin's, those of ``--settings``) only the switch takes away.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Self

from ..identity.session_registry import read_entry, registry_directory
from ..known_clients.every_client import USUAL
from ..store.files.small_files import read_if_possible, time_of
from . import places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..known_clients.known_client import KnownClient

IDLE = ("idle", "shell")
"""Between turns: nothing runs, or only commands in the background."""
BUSY = ("busy", "waiting")
"""In a turn, or in a dialog of one."""
_SWITCH = b'"disableAllHooks"'
_UNDERWAY = 10 * 10**9
"""Nanoseconds within which a change may be older than the last hook: the client had called that before."""
_CALLS = (b"agent-mailbox-hook", b"agent-mailbox hook", b"agent_mailbox", b"check-mailbox.sh", b"session-start.sh")
"""Words of a command that calls us; a rule of permission has none of them."""


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
        self.pid = pid
        own = (USUAL.managed[0], os.path.join(project, USUAL.directory))
        self.settings = (*places.settings_files(project, environ), *own) if project else ()
        """The files that decide of the session's hooks, and the directory in which one may be made."""
        self._is_named = self._names_us()
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

    def __exit__(self, *_: object) -> None:
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
        """Return whether its settings changed since the session's last hook, and let it call ours no more. ``heart`` is
        the file whose time is that of the last hook."""
        last = time_of(heart)
        if last is None or not any((time_of(path) or 0) > last - _UNDERWAY for path in self.settings):
            return False
        return any(map(_switches_off, self._texts())) or (self._is_named and not self._names_us())

    def _names_us(self) -> bool:
        """Return whether a file calls us; else a plugin does, or a file that a switch of the client names."""
        return any(word in text for text in self._texts() for word in _CALLS)

    def _texts(self) -> list[bytes]:
        return [read_if_possible(path, through_links=True) or b"" for path in self.settings[:-1]]

    def watched_path(self) -> str | None:
        """Return the path on which a change shows: the file, else the directory it will be in."""
        places = (self._file, self._directory) if self._idle is None else ()
        return next((path for path in places if os.path.exists(path)), None)


def _switches_off(text: bytes) -> bool:
    name, _, value = text.partition(_SWITCH)[2].partition(b":")
    return bool(value) and not name.strip() and value.lstrip().startswith(b"true")
