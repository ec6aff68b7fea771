"""A terminal: whose it is if ancestors do not tell, whether the person typed this command there, who else could answer.

Belongs here: the checks that start a program, and what the processes above a command of the person's tell. Any program
that the person starts has the person's terminal, and an agent may have written it: a git hook, a Makefile, a script.
``cli.widening`` asks then. Neither hooks nor a session's mail use this.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..store.files.small_files import list_names, read_if_possible
from ..store.user_state import processes
from ..store.user_state.processes import Process
from .client_processes import is_client, started_by_client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    from ..store.files import programs  # a multiplexer, or a system without /proc

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


# -- the shell's prompt -----------------------------------------------------------------------------------------------


SHELLS = "/etc/shells"
"""The system's list of shells; only its administrator writes it."""
OURS = ("agent-mailbox", "agent_mailbox", "agent_roster", "python")
"""The beginnings of the names of programs that start this one."""
_VALUED = ("--rcfile", "--init-file", "-o", "+o", "-O", "+O")
"""Options of shells that take the next word."""
_MULTIPLEXERS = ("tmux", "screen")


def is_typed(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal's interactive shell itself started this process.

    It leads the terminal's session, reads the terminal, and gives each job a process group of its own. Whatever cannot
    be read means no. The shell names the program that it starts in ``_``. A script that replaced itself by this program
    has its own name there, unless it lies.
    """
    me, shell = processes.read(os.getpid()), processes.read(os.getppid())
    if me is None or shell is None or not me.terminal or shell.terminal != me.terminal:
        return False
    try:
        leads = shell.pid == os.getsid(0) and os.getpgid(shell.pid) != os.getpgrp()
        with open(SHELLS, encoding="utf-8", errors="replace") as file:
            listed = {os.path.realpath(name.strip()) for name in file.read().splitlines() if name.startswith("/")}
        reads = _device_number(os.stat(f"/proc/{shell.pid}/fd/0").st_rdev) == me.terminal
    except OSError:
        return False
    named = os.path.basename(environ.get("_", "")).startswith(OURS)
    is_shell = processes.executable(shell.pid) in listed and _is_interactive(processes.words(shell.pid))
    return leads and reads and is_shell and named and terminal_holder() is None


def terminal_holder() -> Process | None:
    """Return the program that holds the other end of this terminal and runs at another one; None if there is none.

    It could answer any question here. Programs of another user are the system's own (``sudo``). A multiplexer was
    looked at before (``doubt_about``). The first process of all adopts orphans, and its terminal says nothing.
    """
    line = [*processes.line(os.getpid())]
    terminal = line[0].terminal if line else 0
    outer = next((place for place, one in enumerate(line) if one.terminal != terminal), len(line))
    for process in line[outer:]:
        if process.name.lower().startswith(_MULTIPLEXERS):
            return None
        if process.terminal not in (0, terminal) and processes.is_ours(process.pid) and not processes.is_whole(process):
            return line[outer]
    return None


def starting_programs() -> list[Process]:
    """Return the programs of this terminal between its shell and this process, the nearest last.

    If this process is its terminal's first, it is what made that terminal."""
    line = [*processes.line(os.getpid())]
    return [one for one in line[1:] if line[0].terminal and one.terminal == line[0].terminal][::-1] or line[1:2]


def _is_interactive(words: Sequence[str]) -> bool:
    """Return whether a shell that was started so reads its terminal: it got neither a command nor a script."""
    left = [*words[1:]]
    while left:
        word = left.pop(0)
        if word in _VALUED:
            del left[:1]
            continue
        if not word.startswith(("-", "+")) or word.startswith("--command"):
            return False
        if word[1:2] != "-" and "c" in word:
            return False
    return bool(words)


def _device_number(number: int) -> int:
    """Return a device's number as ``/proc/PID/stat`` writes it (``new_encode_dev``)."""
    major, minor = os.major(number), os.minor(number)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)
