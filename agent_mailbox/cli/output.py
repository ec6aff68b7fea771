"""Write to standard output: everything, flushed, with a time-out.

Belongs here: the meaning of "shown". Mail counts as shown once the reader has taken every byte. A reader that takes
none for two seconds (an open pager) must not block other writers, so the write fails and records nothing.
"""

from __future__ import annotations

import posix
import sys
import time

from ..errors import Busy, StorageFailed
from ..store import system

PATIENCE = 2.0
"""Seconds to wait for the reader while holding a lock."""
_CHUNK = 4096  # PIPE_BUF: what poll(2) calls writable takes this much without blocking


def write_out(text: str, patience: float | None = None) -> None:
    """Write and flush. Raises ``StorageFailed`` if the reader is gone, ``Busy`` after waiting ``patience`` seconds in
    total for one that does not read (None: wait for ever)."""
    data = text.encode("utf-8", "backslashreplace")
    if sys.stdout is None:
        raise StorageFailed("standard output is closed", "nothing was marked as read; give it an output", code="output")
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # not a real file
        sys.stdout.write(text)
        return
    try:
        sys.stdout.flush()
        done = _write_at_once(fd, data)
        if done < len(data):
            _write(fd, data[done:], patience)
    except OSError as error:
        raise StorageFailed(
            f"cannot write the output: {error.strerror}", "nothing was marked as read; run it again", code="output"
        ) from None


def _write_at_once(fd: int, data: bytes) -> int:
    """Write to a pipe without waiting; return the bytes it took, mostly all.

    Uses a descriptor of its own (Linux: proc(5)), because other processes may share the given one.
    """
    if posix.fstat(fd).st_mode & system.S_IFMT != system.S_IFIFO:
        return 0
    try:
        free = posix.open(f"/proc/self/fd/{fd}", posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return posix.write(free, data)
    except BlockingIOError:
        return 0
    finally:
        posix.close(free)


def _write(fd: int, data: bytes, patience: float | None) -> None:
    import select  # costs an eightieth of a bare start; only full pipes and other files need it

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        while piece:
            before = time.monotonic()
            if not poll.poll(None if patience is None else patience * 1000):
                raise Busy(
                    "the reader of the output does not read; nothing was marked as read",
                    "use `agent-mailbox check --peek` with a pager; let a plain `check` print to its end",
                    code="output_blocked",
                )
            if patience is not None:
                patience = max(patience - (time.monotonic() - before), 0)
            piece = piece[posix.write(fd, piece) :]
