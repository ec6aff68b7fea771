"""Writing to standard output: whole, flushed, and not for ever.

Belongs here: what "shown" means. Mail counts as shown when every byte has been taken; a reader that takes none for
two seconds (a pager left open) must not hold up others, so the writer gives up and nothing is recorded.
"""

from __future__ import annotations

import posix
import select
import sys
import time

from ..errors import Busy, StorageFailed

PATIENCE = 2.0
"""Seconds all waiting for the reader may add up to."""
_CHUNK = 4096  # PIPE_BUF: what poll(2) calls writable takes this much without blocking


def write_out(text: str) -> None:
    """Write and flush; raises ``Busy`` for a reader that does not read, ``StorageFailed`` for one that is gone."""
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
        _write(fd, data)
    except OSError as error:
        raise StorageFailed(
            f"cannot write the output: {error.strerror}", "nothing was recorded as read", code="output"
        ) from None


def _write(fd: int, data: bytes) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    patience = PATIENCE
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        while piece:
            before = time.monotonic()
            if not poll.poll(patience * 1000):
                raise Busy(
                    "the reader of the output does not read; nothing was recorded as read",
                    "to page, use `agent-mailbox check --peek`; to mark as read, let the output run through",
                    code="output_blocked",
                )
            patience = max(patience - (time.monotonic() - before), 0)
            piece = piece[posix.write(fd, piece) :]
