"""The checksum that tells whether a log still holds what it held up to a position.

Belongs here: that checksum, and the one of any bytes.
"""

from __future__ import annotations

from . import system

TAIL = 512
"""Bytes before a position that are compared: inodes are reused, and a restored file may have the same size."""


def tail(fd: int, end: int) -> int:
    """Return the checksum of the bytes before a position of an open log."""
    start = max(0, end - TAIL)
    return checksum(system.pread(fd, end - start, start))


def checksum(data: bytes) -> int:
    """Return a number that changes with any flipped, lost or added byte: the data modulo a prime.

    A CRC would cost the import of ``zlib``, 0.35 ms.
    """
    return (int.from_bytes(data, "little") * 257 + len(data)) % 1_073_741_789
