"""The checksum that tells whether a log still holds what it held up to a position.

Belongs here: that checksum.
"""

from __future__ import annotations

from . import system

TAIL = 512
"""Bytes before a position that are compared: inodes are reused, and a restored file may have the same size."""


def tail(fd: int, end: int) -> int:
    """Return the checksum of the bytes before a position of an open log."""
    start = max(0, end - TAIL)
    return system.checksum(system.pread(fd, end - start, start))
