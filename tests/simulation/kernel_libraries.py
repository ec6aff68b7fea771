"""What libraries make of the calls: Python's buffers, and portalocker's lock.

Belongs here: these, each of whose steps is a simulated call.
"""

from __future__ import annotations

import io
import os
from typing import Any

from portalocker import LockException

from agent_mailbox.store.files.system import LOCK_EX, LOCK_NB, LOCK_UN


class Raw(io.RawIOBase):
    """A file as Python's buffers want it, each of whose steps is a simulated call."""

    def __init__(self, doors: dict[str, Any], fd: int) -> None:
        super().__init__()
        self._doors = doors
        self._fd = fd
        self._at = 0

    def readable(self) -> bool:
        """It may be."""
        return True

    def writable(self) -> bool:
        """It may be."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def readinto(self, buffer: Any) -> int:
        """Read once."""
        data = self._doors["pread"](self._fd, len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:
        """Write once."""
        done: int = self._doors["pwrite"](self._fd, bytes(data), self._at)
        self._at += done
        return done

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move."""
        size = self._doors["fstat"](self._fd).st_size if whence == 2 else 0
        self._at = offset + (0, self._at, size)[whence]
        return self._at

    def tell(self) -> int:
        """The position."""
        return self._at

    def close(self) -> None:
        """Close once."""
        if not self.closed:
            super().close()
            if self._doors["world"].running is not None and not self._doors["world"].running.dead:
                self._doors["close"](self._fd)


class LibraryLock:
    """What portalocker does: try, sleep, try again until the time-out; the errors are its own."""

    def __init__(self, doors: dict[str, Any], path: str, wait: float) -> None:
        self._doors = doors
        self._path = path
        self._wait = wait
        self._fd = -1

    def acquire(self) -> None:
        """Get the lock, or raise ``LockException``."""
        self._fd = self._doors["open"](self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        until = self._doors["monotonic"]() + self._wait
        while True:
            try:
                self._doors["flock"](self._fd, LOCK_EX | LOCK_NB)
                return
            except OSError as error:
                if self._doors["monotonic"]() >= until:
                    self._doors["close"](self._fd)
                    raise LockException(error) from None
            self._doors["sleep"](0.25)

    def release(self) -> None:
        """Give it back."""
        self._doors["flock"](self._fd, LOCK_UN)
        self._doors["close"](self._fd)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
