"""The shell's prompt: whether the person typed this command there, and who else could answer on the terminal.

Belongs here: what the processes above a command of the person's tell. Any program that the person starts has the
person's terminal, and an agent may have written it: a git hook, a Makefile, a script. ``cli.widening`` asks then.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..store.user_state import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..store.user_state.processes import Process

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
    looked at before (``identity.terminals``). The first process of all adopts orphans, and its terminal says nothing.
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
