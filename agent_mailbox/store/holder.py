"""The process that holds a lock, as far as the system tells: for the error after a vain wait."""

from __future__ import annotations

import os
import time

from ..core import instant


def holder_of(fd: int) -> str:
    """Return `` by pid N (command, since T)`` for an open file's lock if the system tells (Linux: proc(5)), else
    nothing.

    T is when the process started. For a stopped process, the text names the command that continues it.
    """
    try:
        inode = f":{os.fstat(fd).st_ino} "
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            pid = next(line.split()[4] for line in locks if inode in line and " FLOCK " in line and "->" not in line)
    except (OSError, StopIteration, IndexError):
        return ""
    if not pid.isdigit() or pid == "0":
        return " by a process of another container"
    return f" by pid {pid} ({_process(pid)})"


def _process(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = " ".join(file.read(200).replace(b"\0", b" ").decode("utf-8", "replace").split())
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # from the third on: the second may hold anything
        state, ticks = fields[0], int(fields[19])
        with open("/proc/uptime", encoding="ascii") as file:
            age = float(file.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return "ended"
    since = instant.text(int((time.time() - age) * 1000))[:19] + "Z"
    stopped = f", stopped: `kill -CONT {pid}` has it go on" if state in "Tt" else ""
    return f"{command or 'no command'}, since {since}{stopped}"
