"""The owner of a terminal, if ancestors do not tell: multiplexers, and systems without ``/proc``.

Belongs here: the checks that start a program. Neither hooks nor a session's mail use them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..store.files import programs
from ..store.files.small_files import list_names, read_if_possible
from ..store.user_state import processes
from ..store.user_state.processes import Process
from .client_processes import is_client, started_by_client

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 5.0
"""Seconds a multiplexer may take to answer."""


def doubt_about(line: Sequence[Process]) -> str:
    """Return why the terminal of these processes, the caller first, may not be the person's; empty for no doubt.

    A multiplexer's terminal is the person's if somebody is attached, from a clean terminal.
    """
    for process in line[1:]:
        if process.name.startswith("tmux"):
            return _check_attached("tmux", process, _tmux_clients(process))
        if process.name.lower().startswith("screen"):
            return _check_attached("screen", process, _screen_clients(process))
    return ""


def _check_attached(what: str, server: Process, attached: Sequence[int]) -> str:
    if not attached:
        return f"nobody is attached to the {what} it runs in (process {server.pid})"
    for pid in attached:
        line = [*processes.line(pid)]
        if not line or not line[0].terminal:
            return f"process {pid}, attached to its {what}, has no terminal"
        if unclean := next(filter(None, map(_why_unclean, line)), ""):
            return f"process {pid}, attached to its {what}, is not the person's: {unclean}"
        if any(above.pid == server.pid for above in line):
            return f"process {pid}, attached to its {what}, runs in that itself"
    return ""


def _why_unclean(process: Process) -> str:
    if is_client(process):
        return f"process {process.pid} ({process.name}) is a client"
    return started_by_client(process)


def _tmux_clients(server: Process) -> list[int]:
    """Return the processes attached to this tmux server. Ask each socket it listens on: the environment's word on the
    socket is the caller's."""
    for socket in _tmux_sockets(server):
        words = [processes.executable(server.pid), "-S", socket, "list-clients", "-F", "#{pid} #{client_pid}"]
        lines = [line.split() for line in _run_program(words).splitlines()]
        if lines and all(len(one) == 2 and one[0] == str(server.pid) for one in lines):
            return [int(one[1]) for one in lines]
    return []


def _tmux_sockets(server: Process) -> list[str]:
    """Return the sockets that the server listens on, by the kernel's list of them."""
    inodes = set()
    for name in list_names(f"/proc/{server.pid}/fd"):
        target = processes.link_target(f"/proc/{server.pid}/fd/{name}")
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    table = (read_if_possible("/proc/net/unix", 1 << 24) or b"").decode("utf-8", "surrogateescape").splitlines()
    rows = [row.split(None, 7) for row in table[1:]]
    return list(dict.fromkeys(row[7] for row in rows if len(row) == 8 and row[6] in inodes and row[7].startswith("/")))


def _screen_clients(server: Process) -> list[int]:
    """Return the ``screen`` processes with a terminal, of this server or another: screen does not tell which, so each
    must be clean."""
    own = [p for p in processes.all_of_them() if p.name.lower() == "screen" and p.pid != server.pid and p.terminal]
    return [process.pid for process in own if processes.is_ours(process.pid)]


def _run_program(words: Sequence[str]) -> str:
    """Return a program's output; empty on failure. It gets nothing of the caller's environment."""
    try:
        return programs.ask(words, PATIENCE, environ={}).out.decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def by_ps(pid: int) -> list[Process] | None:
    """Return the process and its ancestors by ``ps``, for a system without ``/proc``; None on failure.

    Not run live: no macOS was available.
    """
    if sys.platform != "darwin":
        return None
    rows = {}
    for row in _run_program(["/bin/ps", "-axo", "pid=,ppid=,tty=,lstart=,comm="]).splitlines():
        words = row.split(None, 8)
        if len(words) == 9 and words[0].isdigit() and words[1].isdigit():
            started = " ".join(words[3:8]).replace(" ", "_")
            name = words[8].rpartition("/")[2]
            rows[int(words[0])] = Process(int(words[0]), int(words[1]), started, int(words[2] != "??"), name)
    line: list[Process] = []
    while pid in rows and len(line) < processes.DEPTH:
        line.append(rows[pid])
        pid = rows[pid].parent
    return line or None
