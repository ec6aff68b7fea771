"""Writing to standard output: whole, flushed, and not for ever.

Belongs here: what "shown" means. Mail counts as shown when every byte has been taken; a reader that takes none for
two seconds (a pager left open) must not hold up others, so the writer gives up and nothing is recorded.
"""

from __future__ import annotations

import posix
import sys
import time

from ..errors import Busy, StorageFailed
from ..store import system

PATIENCE = 2.0
"""Seconds of waiting for the reader while others may be waiting for us."""
_CHUNK = 4096  # PIPE_BUF: what poll(2) calls writable takes this much without blocking


def write_out(text: str, patience: float | None = None) -> None:
    """Write and flush; raises ``StorageFailed`` for a reader that is gone and, with ``patience`` (seconds that waiting
    for it may add up to), ``Busy`` for one that does not read."""
    data = text.encode("utf-8", "backslashreplace")
    if sys.stdout is None:
        raise StorageFailed("there is no standard output", "nothing was recorded as read", code="output")
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # somebody's stand-in for a file
        sys.stdout.write(text)
        return
    try:
        sys.stdout.flush()
        done = _write_at_once(fd, data)
        if done < len(data):
            _write(fd, data[done:], patience)
    except OSError as error:
        raise StorageFailed(
            f"cannot write the output: {error.strerror}", "nothing was recorded as read", code="output"
        ) from None


def _write_at_once(fd: int, data: bytes) -> int:
    """Write to a pipe what it takes without waiting, as it mostly takes all; returns how many bytes that was.

    Through a descriptor of its own (Linux: proc(5)), for others may share the one that was given.
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
    import select  # an eightieth of a bare start, for what is not a pipe or is full

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        while piece:
            before = time.monotonic()
            if not poll.poll(None if patience is None else patience * 1000):
                raise Busy(
                    "the reader of the output does not read; nothing was recorded as read",
                    "to page, use `agent-mailbox check --peek`; to mark as read, let the output run through",
                    code="output_blocked",
                )
            if patience is not None:
                patience = max(patience - (time.monotonic() - before), 0)
            piece = piece[posix.write(fd, piece) :]
