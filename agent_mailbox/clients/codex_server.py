"""Codex's background server, as seen by a doorbell: does it run the session, what is that doing, and what wakes it?

Belongs here: what Codex 0.169.0 was seen to do. A plain ``codex`` starts one server for the user, which runs the
sessions of all terminals. ``codex queue`` puts a prompt behind a session, on the disk. The server begins a turn with it
at once if it has the session loaded and that is idle. After Escape it waits for the person's next prompt. It unloads a
session a minute after the last terminal left it. ``codex exec``, and a terminal with options of its own (``-c``,
``--no-daemon``), run their sessions themselves, and take nothing from outside.

The session's file says how its last turn ended: ``task_started``, ``task_complete``, ``turn_aborted``. The process that
has a session loaded keeps a file of its name open, and locked. A terminal has one connection to the server, and makes a
file for each session that it opens. The client may change all of them any time; what is missing there is unknown, never
guessed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..identity.client_processes import is_client, is_server
from ..store.files import programs
from ..store.user_state import processes
from .client import BUSY, IDLE, Client
from .transcript import event_of, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

HELD = BUSY[1]
"""The status of a session whose turn was broken off: Codex keeps its queue until the person's next prompt."""
_STATES = {"task_started": BUSY[0], "task_complete": IDLE[0], "turn_aborted": HELD}
_TAIL = 1 << 17
"""Bytes at the end of a session's file in which its last turn's end is, if that is over."""
_LOCKS, _CONNECTED = "thread-writer-locks", "03"
PATIENCE = 60.0
"""Seconds that ``codex queue`` may take."""


def server_above() -> int:
    """Return the server that runs this process; 0 if none does."""
    found = next(filter(is_client, processes.line(os.getpid())), None)
    return found.pid if found is not None and is_server(found.pid) else 0


def turn_status(rollout: str) -> str | None:
    """Return the status of the session with that file; None if it cannot be read."""
    try:
        with open(rollout, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            lines = file.read(_TAIL).split(b"\n")
    except (OSError, ValueError):
        return None
    for line in reversed(lines):
        if b'"event_msg"' not in line:
            continue
        event = event_of(line)
        told = {} if event.get("type") != "event_msg" else fields_of(event.get("payload"))
        if state := _STATES.get(str(told.get("type"))):
            return state
    return BUSY[0]


def is_loaded(rollout: str, session_id: str, server: int) -> bool | None:
    """Return whether the server has the session loaded; None if that cannot be told.

    Its open files tell. The system's table of locks does not: its lines move while it is read, and some get lost.
    """
    home = rollout.rpartition("/sessions/")[0]
    try:
        known = bool(home) and os.path.exists(os.path.join(home, _LOCKS, f"{session_id}.lock"))
        return session_id in _loaded_sessions(home, server) if known else None
    except (OSError, ValueError):
        return None


def may_be_left(rollout: str, server: int) -> bool:
    """Return whether the server has more sessions of terminals loaded than there are terminals at it. Then their person
    left one, by ``/clear`` or with its terminal, less than a minute ago. Nothing tells which one it is."""
    home = rollout.rpartition("/sessions/")[0]
    try:
        opened = set(os.listdir(os.path.join(home, "tui-thread-reference-capabilities")))
        return len(opened & _loaded_sessions(home, server)) > count_terminals(home)
    except (OSError, ValueError):
        return False  # this version of Codex tells neither


def _loaded_sessions(home: str, server: int) -> set[str]:
    opened, place = f"/proc/{server}/fd", os.path.realpath(os.path.join(home, _LOCKS))
    found = (processes.link_target(f"{opened}/{name}").rpartition("/") for name in os.listdir(opened))
    return {name.removesuffix(".lock") for directory, _, name in found if directory == place}


def socket_of(home: str) -> str:
    """Return the server's socket in the client's directory."""
    return os.path.join(home, "app-server-control", "app-server-control.sock")


def count_terminals(home: str) -> int:
    """Return the connections to the server's socket, by the system's table."""
    socket = os.path.realpath(socket_of(home))
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        rows = (line.rstrip("\n").split(maxsplit=7) for line in file)
        return sum(row[5:6] == [_CONNECTED] and row[7:] == [socket] for row in rows)


class ServerSession(Client):
    """A session that the server runs, for a ``with`` block. ``rollout`` is its file."""

    def __init__(self, server: int, environ: Mapping[str, str], session_id: str, rollout: str) -> None:
        super().__init__(server, environ, session_id)
        self._session = session_id
        self._rollout = rollout

    def is_alive(self) -> bool:
        """Return whether the server still runs, and has the session loaded as far as that can be told."""
        return super().is_alive() and is_loaded(self._rollout, self._session, self.pid) is not False

    def session_and_status(self) -> tuple[str | None, str | None]:
        """Return (session, status); the status is None if it is unknown."""
        return self._session, turn_status(self._rollout)

    def may_be_left(self) -> bool:
        """Return whether a turn of it may run out of its person's sight."""
        return may_be_left(self._rollout, self.pid)

    def watched_path(self) -> str | None:
        """Return the session's file."""
        return self._rollout if os.path.exists(self._rollout) else None

    def wake_with(self, line: str) -> str:
        """Queue the line, with which the session begins a turn; return why that failed, or nothing. It is the server's
        own program that queues it."""
        words = [processes.executable(self.pid), "queue", "--thread", self._session, "--message", line]
        if not self.is_alive():
            return "Codex does not have the session loaded any more"
        why = programs.why_failed(words, PATIENCE)
        return why and f"codex queue: {why}"
