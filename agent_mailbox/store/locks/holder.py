"""The process that holds a lock, as far as the system tells: for the error after a vain wait."""

from __future__ import annotations

from ...core import instant
from ...errors import StorageFailed
from ..files import system
from ..files.small_files import OpenFile, open_file, read_if_possible

STOPPED = ", stopped: "
"""The words behind a stopped process; what follows has it go on."""


def holder_of(fd: int) -> str:
    """Return `` by pid N (command, since T)`` for an open file's lock if the system tells (Linux: proc(5)), else
    nothing.

    T is when the process started. For a stopped process, the text names the command that continues it.
    """
    inode = f":{system.fstat(fd).st_ino} "
    locks = _text("/proc/locks").split("\n")
    held = [line.split() for line in locks if inode in line and " FLOCK " in line and "->" not in line]
    if not held or len(held[0]) < 5:
        return ""
    pid = held[0][4]
    if not pid.isdigit() or pid == "0":
        return " by a process of another container"
    return f" by pid {pid} ({_process(pid)})"


def holder_at(path: str) -> str:
    """Return the same for the lock of the file at a path; nothing if there is none that can be opened."""
    try:
        with OpenFile(open_file(path, system.O_RDONLY)) as fd:
            return holder_of(fd)
    except (FileNotFoundError, StorageFailed):
        return ""


def _text(path: str) -> str:
    return (read_if_possible(path) or b"").decode("utf-8", "replace")


def _process(pid: str) -> str:
    words = _text(f"/proc/{pid}/cmdline")[:1000].split("\0")
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()  # from the third on: the second may hold anything
    uptime = _text("/proc/uptime").split()
    if len(fields) < 20 or not uptime:
        return "ended"
    state, age = fields[0], float(uptime[0]) - int(fields[19]) / system.sysconf("SC_CLK_TCK")
    words = ["…" if before == "-c" else word for before, word in zip(["", *words], words, strict=False)]  # not code
    command = " ".join(" ".join(words).split())[:200]
    since = instant.text(int((system.time_ns() / 1e9 - age) * 1000))[:19] + "Z"
    stopped = f"{STOPPED}`kill -CONT {pid}` has it go on" if state in "Tt" else ""
    return f"{command or 'no command'}, since {since}{stopped}"
