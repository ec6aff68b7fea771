"""A sender's rate in the last moments, from the log's end alone."""

from __future__ import annotations

from ..core import codec
from ..core.records import Message
from . import system
from .lines import lines_of

WINDOW = 1 << 16
"""Bytes read first; doubled until they begin before the moments in question."""


def count(fd: int, sender: str, since: int, until: int) -> int:
    """Return how many of the sender's messages the open messages log holds between two instants (ms, both included).

    A clock that was set back leaves messages from the future there; they do not count.
    """
    size = system.fstat(fd).st_size
    window = WINDOW
    while True:
        start = max(size - window, 0)
        messages = [m for m in (codec.message(line) for _, line in lines_of(fd, start)) if isinstance(m, Message)]
        if start == 0 or (messages and messages[0].timestamp < since):
            return sum(m.sender == sender and since <= m.timestamp <= until for m in messages)
        window *= 2
