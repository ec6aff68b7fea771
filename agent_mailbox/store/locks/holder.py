"""The process that holds a lock, as far as the system tells: for the error after a vain wait."""

from __future__ import annotations

from ...core import instant
from ...errors import StorageFailed
from ..files import system
from ..files.small_files import open_file

STOPPED = ", stopped: "
"""The words behind a stopped process; what follows has it go on."""


def holder_of(fd: int) -> str:
    """Return `` by pid N (command, since T)`` for an open file's lock if the system tells (Linux: proc(5)), else
    nothing.

    T is when the process started. For a stopped process, the text names the command that continues it.
    """
    try:
        inode = f":{system.fstat(fd).st_ino} "
        with system.stream("/proc/locks", "r", encoding="ascii", errors="replace") as locks:
            pid = next(line.split()[4] for line in locks if inode in line and " FLOCK " in line and "->" not in line)
    except (OSError, StopIteration, IndexError):
        return ""
    if not pid.isdigit() or pid == "0":
        return " by a process of another container"
    return f" by pid {pid} ({_process(pid)})"


def holder_at(path: str) -> str:
    """Return the same for the lock of the file at a path; nothing if there is none that can be opened."""
    try:
        fd = open_file(path, system.O_RDONLY)
    except (FileNotFoundError, StorageFailed):
        return ""
    try:
        return holder_of(fd)
    finally:
        system.close(fd)


def _process(pid: str) -> str:
    try:
        with system.stream(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(1000).decode("utf-8", "replace").split("\0")
        with system.stream(f"/proc/{pid}/stat", "r", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # from the third on: the second may hold anything
        state, ticks = fields[0], int(fields[19])
        with system.stream("/proc/uptime", "r", encoding="ascii") as file:
            age = float(file.read().split()[0]) - ticks / system.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return "ended"
    words = ["…" if before == "-c" else word for before, word in zip(["", *words], words, strict=False)]  # not code
    command = " ".join(" ".join(words).split())[:200]
    since = instant.text(int((system.time_ns() / 1e9 - age) * 1000))[:19] + "Z"
    stopped = f"{STOPPED}`kill -CONT {pid}` has it go on" if state in "Tt" else ""
    return f"{command or 'no command'}, since {since}{stopped}"
