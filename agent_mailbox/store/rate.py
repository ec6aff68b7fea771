"""What a log's end tells of the last moments, without reading what came before."""

from __future__ import annotations

from ..core import codec
from ..core.records import Message
from . import system
from .lines import lines_of

WINDOW = 1 << 16
"""Bytes looked at first; doubled until they begin before the moments asked about."""


def count(fd: int, sender: str, since: int, until: int) -> int:
    """How many messages of the sender the open messages log holds from between two instants (ms, both within): after a
    clock was set back it holds some of the future, which say nothing of this moment."""
    size = system.fstat(fd).st_size
    window = WINDOW
    while True:
        start = max(size - window, 0)
        messages = [m for m in (codec.message(line) for _, line in lines_of(fd, start)) if isinstance(m, Message)]
        if start == 0 or (messages and messages[0].timestamp < since):
            return sum(m.sender == sender and since <= m.timestamp <= until for m in messages)
        window *= 2
