"""The one door to the operating system: system calls, locks, clocks, sleep, watches, random numbers, environment.

Belongs here: ``posix``, from where Python keeps it, and the few functions beside it. ``os`` is the same with a layer on
top, whose import costs 1.2 ms, a third of a poll's budget.

The rooms of the mailbox ask the system only as ``system.NAME``, so whoever replaces a name here replaces it for all of
them. The simulation does so with every name (docs/internals/simulation.md). Functions below look up each other and the
system calls in this module, too. ``tests/test_layers.py`` holds that nothing bypasses the door.
"""

from __future__ import annotations

import builtins
import posix
from fcntl import LOCK_EX as LOCK_EX
from fcntl import LOCK_NB as LOCK_NB
from fcntl import LOCK_SH as LOCK_SH
from fcntl import LOCK_UN as LOCK_UN
from fcntl import flock as flock
from fcntl import ioctl as ioctl
from posix import *  # noqa: F403 - this module is their name; ``system.open`` is the system's open, not Python's
from posix import (
    close,
    environ,
    fsync,
    geteuid,
    listdir,
    lstat,
    mkdir,
    readlink,
    rmdir,
    stat,
    stat_result,
    unlink,
    write,
)
from posix import open as open
from time import clock_gettime_ns
from time import monotonic as monotonic
from time import sleep as sleep
from time import time_ns as time_ns

try:
    from time import CLOCK_BOOTTIME as _UP
except ImportError:  # macOS
    from time import CLOCK_MONOTONIC as _UP

if not hasattr(posix, "fdatasync"):  # macOS
    from posix import fsync as fdatasync  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO, Any

    import portalocker

S_IFMT, S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK, S_IFLNK = 0o170000, 0o100000, 0o040000, 0o010000, 0o140000, 0o120000
"""The bits of ``st_mode`` that tell a file's kind (inode(7))."""
_CHANGES = 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""IN_MODIFY, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF (inotify(7))."""


def booted() -> int:
    """Return when this machine started, by its present clock: ns since 1970."""
    return time_ns() - clock_gettime_ns(_UP)


def encoded(path: str) -> bytes:
    """Return a path in the system's bytes."""
    return path.encode("utf-8", "surrogateescape")


def environment() -> dict[str, str]:
    """Return the environment as text (``os.environ`` would be the first to import ``os``)."""
    return {
        key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for key, value in environ.items()
    }


def join(*names: str) -> str:
    """Return the names as one path; an absolute one replaces all before it, as in ``os.path.join``."""
    path = ""
    for name in names:
        path = name if not path or name.startswith("/") else f"{path.rstrip('/')}/{name}"
    return path


def dirname(path: str) -> str:
    """Return everything before the last slash."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def basename(path: str) -> str:
    """Return everything after the last slash."""
    return path.rpartition("/")[2]


def exists(path: str) -> bool:
    """Return whether anything is at the path, even a broken link."""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def size(path: str) -> int:
    """Return the bytes of the file at the path; 0 for none."""
    try:
        return stat(path).st_size
    except (OSError, ValueError):
        return 0


def is_same(one: stat_result, other: stat_result) -> bool:
    """Return whether two looks met one file."""
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def identity(path: str) -> tuple[int, int] | None:
    """Return by what a file or directory is known, whatever its path; None if there is none."""
    try:
        there = stat(path)
    except (OSError, ValueError):
        return None
    return there.st_dev, there.st_ino


def is_directory(path: str) -> bool:
    """Return whether the path is a directory, or a link to one."""
    try:
        return stat(path).st_mode & S_IFMT == S_IFDIR
    except (OSError, ValueError):
        return False


def real_directory(path: str) -> str:
    """Return a directory's path, absolute and without links, as far as it exists."""
    try:
        fd = open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    except OSError:
        return real_path(path)
    try:
        return readlink(f"/proc/self/fd/{fd}")
    except OSError:  # no /proc, as on macOS
        return real_path(path)
    finally:
        close(fd)


def real_path(path: str) -> str:
    """Return a path, absolute and without links, as far as it exists."""
    from os.path import realpath

    return realpath(path)


def absolute(path: str) -> str:
    """Return a path, absolute and without ``.`` and ``..``."""
    from os.path import abspath

    return abspath(path)


_homes: dict[int, str] = {}
"""By the user's number: a command asks several times, and the database reads its files each time."""


def home() -> str:
    """Return the user's home by the password database; empty if that lacks the user, as in some containers."""
    uid = geteuid()
    if uid not in _homes:
        import pwd

        try:
            _homes[uid] = pwd.getpwuid(uid).pw_dir
        except KeyError:
            _homes[uid] = ""
    return _homes[uid]


def at_home(path: str) -> str:
    """Return a path with the user's home in the place of a leading ``~``."""
    from os.path import expanduser

    return expanduser(path)


def marks(path: str) -> str:
    """Return the marks of chattr(1) that refuse writes: ``i`` immutable, ``a`` append-only; empty if none is known."""
    from array import array
    from fcntl import ioctl  # FS_IOC_GETFLAGS, of Linux alone

    try:
        fd = open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError:
        return ""
    flags = array("L", [0])
    try:
        ioctl(fd, 0x80006601 | flags.itemsize << 16, flags)
    except OSError:
        return ""
    finally:
        close(fd)
    return ("i" if flags[0] & 0x10 else "") + ("a" if flags[0] & 0x20 else "")


def write_whole(fd: int, data: bytes) -> None:
    """Write all of the data: a single write may take a part."""
    while data:
        data = data[write(fd, data) :]


CACHE, HEARTBEATS, ARCHIVE = ".cache", "agent-heartbeats", "agent-mailbox-archive"
"""Directories of a mailbox. If that is gone they are not made again: the next send would take them for it."""


def make_directory(path: str, mode: int = 0o700, parents: int = 0o700) -> None:
    """Make a directory and its missing parents, each with no more rights than these, whatever the umask. Above a
    directory of a mailbox nothing is made."""
    try:
        _make(path, mode)
    except FileNotFoundError:
        above = dirname(path)
        if above in ("", path) or basename(path) in (CACHE, HEARTBEATS, ARCHIVE):
            raise  # the working directory was removed, or the mailbox
        make_directory(above, parents, parents)
        _make(path, mode)  # once: a directory of the system's own, such as /proc, refuses it with the same error


def _make(path: str, mode: int) -> None:
    try:
        mkdir(path, mode)
    except FileExistsError:
        if not is_directory(path):
            raise


def sync_directory(path: str) -> None:
    """Make a new or renamed name in a directory durable."""
    fd = open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        fsync(fd)
    finally:
        close(fd)


def sync_way(path: str) -> None:
    """Make the names on the way to a directory durable, as far as this user may."""
    while True:
        try:
            sync_directory(path)
        except PermissionError:
            pass
        above = dirname(path)
        if above == path:
            return
        path = above


def empty(path: str) -> None:
    """Remove everything in a directory; follow no link."""
    for name in listdir(path):
        below = join(path, name)
        if is_own_directory(below):
            empty(below)
            rmdir(below)
        else:
            unlink(below)


def tree(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each directory from a path downwards, with the names in it that are no directories; follow no link."""
    try:
        names = listdir(path)
    except OSError:
        return
    below = [name for name in names if is_own_directory(join(path, name))]
    yield path, [name for name in names if name not in below]
    for name in below:
        yield from tree(join(path, name))


def is_own_directory(path: str) -> bool:
    """Return whether a directory is at the path, and no link to one."""
    try:
        return lstat(path).st_mode & S_IFMT == S_IFDIR
    except OSError:
        return False


def stream(file: str | int, mode: str = "rb", **text: Any) -> IO[Any]:
    """Open a path or a descriptor as Python's own ``open`` does, with a buffer; ``text``: how to decode."""

    return builtins.open(file, mode, **text)


def library_lock(path: str, wait: float) -> portalocker.Lock:
    """Return the lock of an existing file as portalocker has it, which waits so many seconds."""
    import portalocker  # 70 ms, only for maintenance

    return portalocker.Lock(path, mode="a", timeout=wait, flags=portalocker.LOCK_EX | portalocker.LOCK_NB)


waiting: set[int] = set()
"""The descriptors of threads that wait for a lock; a forked process closes them."""
_MOST_WAITING = 8


def flock_within(fd: int, seconds: float) -> bool:
    """Lock an open file that others hold, at most that many seconds later; return whether it is locked.

    flock(2) has no time-out, and a signal could be the program's. So a thread waits in the kernel's queue, with a
    descriptor of its own. If the lock comes too late, the thread gives it back at once: after False the caller closes
    the file.
    """
    from _thread import allocate_lock, start_new_thread

    over, deciding = allocate_lock(), allocate_lock()
    decided: list[bool] = []
    over.acquire()
    mine = posix.dup(fd)
    waiting.add(mine)

    def wait() -> None:
        try:
            flock(mine, LOCK_EX)
            with deciding:
                if decided:
                    flock(mine, LOCK_UN)
                decided.append(True)
        except OSError:
            pass  # the caller meets it, too
        finally:
            waiting.discard(mine)
            close(mine)
            over.release()

    try:
        if len(waiting) > _MOST_WAITING:
            raise RuntimeError
        start_new_thread(wait, ())
    except RuntimeError:  # no more threads
        waiting.discard(mine)
        close(mine)
        return _flock_by_turns(fd, seconds)
    try:
        over.acquire(timeout=min(seconds, 1e6))
    finally:
        with deciding:
            decided.append(False)
    return decided[0]


def _flock_by_turns(fd: int, seconds: float) -> bool:
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        try:
            flock(fd, LOCK_EX | LOCK_NB)
            return True
        except OSError:
            sleep(0.002)
    return False


def watched(places: Iterable[str]) -> int:
    """Return a descriptor that becomes readable when a directory or file changes; -1 if the system gives none.

    inotify(7) comes through ``ctypes``: the standard library has no binding, and three calls do not justify a
    dependency.
    """
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        fd: int = libc.inotify_init1(posix.O_NONBLOCK | posix.O_CLOEXEC)
        if fd >= 0 and any(libc.inotify_add_watch(fd, encoded(place), _CHANGES) < 0 for place in places):
            close(fd)
            return -1
        return fd
    except (OSError, AttributeError):
        return -1


def readable(fds: Sequence[int], seconds: float | None) -> list[int]:
    """Block until data is in one of the descriptors, at most that many seconds; return those with data."""
    from select import select

    return select(fds, [], [], seconds)[0]


def is_broken(fd: int) -> bool:
    """Return whether the other end of a pipe is gone, or that of a socket with data that it did not take (POLLERR)."""
    from select import POLLERR, poll  # costs an eightieth of a bare start

    states = poll()
    states.register(fd, 0)
    return any(state & POLLERR for _, state in states.poll(0))
