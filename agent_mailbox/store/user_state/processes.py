"""Processes and their ancestors, as the system tells them.

Belongs here: reading ``/proc`` (proc(5)). ``identity.callers`` says what follows from it. The tick that a process
started at, in this boot, tells it from a later one with its number.
"""

from __future__ import annotations

from ...core.records import Record
from ..files import system
from ..files.small_files import list_names, read_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 64
"""Ancestors looked at: a longer chain was made on purpose, and counts as unreadable."""
_STREAM, _UNIX, _SOCKET, _PEERCRED = 1, 1, 1, 17
"""``SOCK_STREAM``, ``AF_UNIX``, ``SOL_SOCKET``, ``SO_PEERCRED`` (unix(7))."""


class Process(Record):
    """A process: number, parent's number, the tick it started at, its controlling terminal (0: none), its name.

    ``is_over``: it has ended, and its parent did not ask yet how (a zombie).
    """

    pid: int
    parent: int
    start: str
    terminal: int
    name: str
    is_over: bool = False


def parsed(pid: int, data: bytes) -> Process | None:
    """Return the process on a line of ``/proc/PID/stat``; None for any other line. A name may hold anything."""
    head, _, tail = data.rpartition(b") ")
    words = tail.split()
    if len(words) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    is_over = words[0] in (b"Z", b"X") and words[17] in (b"0", b"1")  # else other threads of it still run
    return Process(pid, int(words[1]), words[19].decode("ascii"), int(words[4]), name, is_over)


def read(pid: int) -> Process | None:
    """Return the process with that number; None if there is none, or it cannot be read."""
    data = read_if_possible(f"/proc/{pid}/stat", 1)  # the first read returns all of it
    return None if data is None else parsed(pid, data)


def line(pid: int) -> Iterator[Process]:
    """Yield the process and its ancestors, nearest first, as far as they can be read.

    A parent that started after its child is another process that got the number: there the line ends.
    """
    child: Process | None = None
    for _ in range(DEPTH):
        process = read(pid) if pid > 0 else None
        if process is None or (child is not None and int(process.start) > int(child.start)):
            return
        yield process
        child, pid = process, process.parent


def is_whole(process: Process) -> bool:
    """Return whether no process is above this one: it is the first, or the first of its namespace."""
    return process.parent == 0


def lives(pid: int, start: str) -> bool | None:
    """Return whether the process that started at that tick lives; None if it may live, and is invisible."""
    process = read(pid)
    if process is not None:
        return process.start == start and not process.is_over
    try:
        system.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return None


def has_ended(pid: int, start: str) -> bool:
    """Return whether the process that started at that tick has certainly ended. An invisible process has not."""
    return lives(pid, start) is False


def are_shown() -> bool:
    """Return whether ``/proc`` is that of this process's own namespace; another's numbers mean other processes."""
    try:
        return system.readlink("/proc/self") == str(system.getpid())
    except OSError:
        return False


def is_anothers(pid: int) -> bool:
    """Return whether the process is there and another user's: some systems hide it from everybody else."""
    try:
        system.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def executable(pid: int) -> str:
    """Return the path of a process's program; empty if it cannot be read."""
    try:
        return system.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def words(pid: int) -> list[str]:
    """Return the words a process was started with; none if they cannot be read."""
    data = read_if_possible(f"/proc/{pid}/cmdline") or b""
    return [word.decode("utf-8", "replace") for word in data.split(b"\0")[:-1]]


def variables(pid: int) -> dict[str, str] | None:
    """Return the environment a process was started with; None if it cannot be read."""
    data = read_if_possible(f"/proc/{pid}/environ")
    if data is None:
        return None
    pairs = (pair.decode("utf-8", "surrogateescape").partition("=") for pair in data.split(b"\0"))
    return {name: value for name, is_one, value in pairs if is_one}


def is_ours(pid: int) -> bool:
    """Return whether this user may read the process: it is this user's and did not close itself."""
    try:
        return system.stat(f"/proc/{pid}").st_uid == system.geteuid()
    except OSError:
        return False


def here() -> str:
    """Return the words for this boot and this namespace of process numbers: a number says nothing in another."""
    boot = (read_if_possible("/proc/sys/kernel/random/boot_id", 64) or b"").strip().decode("ascii", "replace")
    try:
        namespace = system.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{boot or '-'} {namespace or '-'}"


def all_of_them() -> list[Process]:
    """Return every process that can be read."""
    numbers = [int(name) for name in list_names("/proc") if name.isdigit()]
    return [process for process in map(read, numbers) if process is not None]


def maker(fd: int) -> int | None:
    """Return the process that made the socket pair of which this file is one end; None for any other file.

    The kernel keeps the caller of ``socketpair``, and no other process can change that. An end that is bound, or whose
    peer is, was connected instead: the client's own listening socket has the same credentials.
    """
    try:
        if system.fstat(fd).st_mode & system.S_IFMT != system.S_IFSOCK:
            return None
        from _socket import SocketType as Socket  # only if a client calls a hook through one

        end = Socket(fileno=system.dup(fd))
    except (OSError, ImportError):
        return None
    try:
        if end.family != _UNIX or end.type != _STREAM or end.getsockname() or end.getpeername():
            return None
        pid = int.from_bytes(end.getsockopt(_SOCKET, _PEERCRED, 4), "little")
        return pid or None
    except OSError:
        return None
    finally:
        end.close()
