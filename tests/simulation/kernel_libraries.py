"""What libraries make of the calls: Python's buffers, portalocker's lock, and SQLite.

Belongs here: these, each of whose steps is a simulated call.
"""

from __future__ import annotations

import io
import os
from typing import Any

from portalocker import LockException

from agent_mailbox.store.files.system import LOCK_EX, LOCK_NB, LOCK_UN
from agent_mailbox.store.projection.projection_file import sqlite3

PAGE = 512
"""Bytes of a database's page: the least there are."""


class Raw(io.RawIOBase):
    """A file as Python's buffers want it, each of whose steps is a simulated call."""

    def __init__(self, doors: dict[str, Any], fd: int) -> None:
        super().__init__()
        self._doors = doors
        self._fd = fd
        self._at = 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def readinto(self, buffer: Any) -> int:
        data = self._doors["pread"](self._fd, len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:
        done: int = self._doors["pwrite"](self._fd, bytes(data), self._at)
        self._at += done
        return done

    def seek(self, offset: int, whence: int = 0) -> int:
        size = self._doors["fstat"](self._fd).st_size if whence == 2 else 0
        self._at = offset + (0, self._at, size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
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
        self._doors["flock"](self._fd, LOCK_UN)
        self._doors["close"](self._fd)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Database:
    """SQLite on a simulated file: it is read as it is opened, and what changed is written at each commit."""

    def __init__(self, doors: dict[str, Any], path: str) -> None:
        self._doors = doors
        self._fd = doors["open"](path, os.O_RDWR)
        self._data = b""
        while more := doors["pread"](self._fd, 1 << 20, len(self._data)):
            self._data += more
        self._real = sqlite3.connect(":memory:", isolation_level=None)
        if self._data:
            self._real.deserialize(self._data)
        else:
            self._real.execute(f"PRAGMA page_size={PAGE}")
        self.executemany = self._real.executemany

    def execute(self, text: str, *given: Any) -> Any:
        """Run a statement; a commit writes."""
        done = self._real.execute(text, *given)
        if text == "COMMIT":
            self._write()
        return done

    def executescript(self, text: str) -> None:
        """Run the statements of a schema."""
        self._real.executescript(text)
        self._write()

    def _write(self) -> None:
        """Write the pages from the first to the last changed one, the first page last, as it counts the changes."""
        data, before = self._real.serialize(), self._data.ljust(1, b"\0")
        places = range(PAGE, len(data), PAGE)
        changed = [at for at in places if data[at : at + PAGE] != before[at : at + PAGE]]
        if changed:
            self._put(data[changed[0] : changed[-1] + PAGE], changed[0])
        self._put(data[:PAGE], 0)
        self._data = data

    def _put(self, data: bytes, start: int) -> None:
        try:
            while data:
                done = self._doors["pwrite"](self._fd, data, start)
                data, start = data[done:], start + done
        except OSError as error:
            raise sqlite3.OperationalError("database or disk is full") from error

    def close(self) -> None:
        """Close the file; what was not committed is gone."""
        self._real.close()
        self._doors["close"](self._fd)
