"""The one lock discipline: ``flock`` on the file that is at the path, with a bounded wait that names the holder.

The kernel frees a dead process's lock; a stopped holder makes others ``Busy``. A forked process holds nothing: it
closes the descriptors that it inherited. The portalocker library takes the same lock (``flock``), where its import may
cost eight interpreter starts; a test holds that the two exclude each other.

Order, to be taken only from left to right: session delivery, messages, reads, roster.
"""

from __future__ import annotations

from _thread import _local  # ``threading`` would cost more than the lock

from ...errors import Busy, StorageFailed
from ..files import system
from ..files.small_files import OpenFile, open_file, storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

WAIT = 10.0
"""Seconds a command waits for a lock: longer than any append, and than the 2 s of a blocked reader of ours."""
SOON = 0.25
"""Seconds to wait for a lock under which only derived files are written: whoever looks at mail is not held up. A
lock that others ask about (``is_held``) needs that patience, too."""
_TURNS = 10
"""Retries that only yield the processor: an append holds a lock for some 0.1 ms. To start a thread takes as long."""

_held: set[FileLock] = set()


class _Bound(_local):
    """The monotonic instant beyond which a thread waits for no lock (``Patience``); None if there is none."""

    until: float | None = None


_bound = _Bound()


def _forked() -> None:
    while _held:
        lock = _held.pop()
        system.close(lock.fd)
        lock.fd = -1
    while system.waiting:
        system.close(system.waiting.pop())


system.register_at_fork(after_in_child=_forked)


class Patience:
    """Bound all waits for locks in a ``with`` block by one instant: some seconds from now, None: as before.

    A caller with a time-out keeps it, however many locks are taken on the way.
    """

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else system.monotonic() + seconds

    def __enter__(self) -> None:
        self._before, mine = _bound.until, self._until
        _bound.until = mine if self._before is None else self._before if mine is None else min(self._before, mine)

    def __exit__(self, *_: object) -> None:
        _bound.until = self._before


def deadline(seconds: float) -> float:
    """Return the monotonic instant until which a lock is waited for."""
    until, wanted = _bound.until, system.monotonic() + seconds
    return wanted if until is None else min(until, wanted)


class FileLock:
    """An exclusive lock on a file (made if missing), for a ``with`` block."""

    def __init__(self, path: str, wait: float = WAIT) -> None:
        self.path = path
        self.fd = -1
        self._wait = wait

    def take(self) -> Self:
        """Get the lock, perhaps ahead of a ``with`` block that gives it back; raise ``Busy`` at the time-out."""
        if self.fd >= 0:
            return self
        until = None
        while True:
            fd = self._open()
            try:
                until = acquire(fd, self.path, self._wait, until)
                if self._is_at_path(fd):
                    self.fd = fd
                    _held.add(self)
                    return self
            except BaseException:
                system.close(fd)
                raise
            system.close(fd)  # replaced meanwhile: the lock on the new file counts

    def release(self, *_: object) -> None:
        """Give the lock back. Closing alone would keep it if a process started in between has the descriptor too."""
        if self.fd >= 0:
            try:
                system.flock(self.fd, system.LOCK_UN)
            except OSError:
                pass  # the work under it is done
            _held.discard(self)
            fd, self.fd = self.fd, -1
            system.close(fd)

    __enter__, __exit__ = take, release

    def stands(self) -> bool:
        """Return whether the locked file is still the one at the path."""
        return self.fd >= 0 and self._is_at_path(self.fd)

    def _open(self) -> int:
        try:
            return open_file(self.path, system.O_RDWR | system.O_APPEND | system.O_CREAT)
        except FileNotFoundError as error:
            raise storage_failed("make", self.path, error) from None

    def _is_at_path(self, fd: int) -> bool:
        try:
            there = system.stat(self.path)
        except FileNotFoundError:
            return False
        here = system.fstat(fd)
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)


def is_held(path: str) -> bool:
    """Return whether any process holds the lock on the file at the path at this moment.

    Two that ask at once share a reader's lock, so neither takes the other for the holder. NFS gives a file that is open
    for reading no other kind. One that takes the lock meets it for a moment, and waits for that (``SOON``).
    """
    try:
        with OpenFile(open_file(path, system.O_RDONLY)) as fd:
            system.flock(fd, system.LOCK_SH | system.LOCK_NB)
            system.flock(fd, system.LOCK_UN)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def acquire(fd: int, path: str, wait: float, until: float | None = None) -> float | None:
    """Lock the open file; after ``wait`` seconds raise ``Busy``, which names the holder. Return the monotonic instant
    until which it would have waited; None if it need not wait. ``until``: that instant, if it is known."""
    turns = _TURNS
    while True:
        try:
            system.flock(fd, system.LOCK_EX | system.LOCK_NB)
            return until
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            raise StorageFailed(
                f"cannot lock {path}: {error.strerror}",
                "move the mailbox to a local disk: this file system has no working locks",
            ) from None
        if turns:
            turns -= 1
            system.sched_yield()
            continue
        until = deadline(wait) if until is None else until
        left = until - system.monotonic()
        if left > 0 and system.flock_within(fd, left):
            return until
        from .holder import holder_of  # only to explain a time-out

        raise Busy(f"{path} is locked{holder_of(fd)}", "try again; nothing was changed")
