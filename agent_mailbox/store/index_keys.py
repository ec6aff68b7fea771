"""The numbers that the search index keeps of a message: its place, and the terms that find it.

Belongs here: how a place and a term are made, and nothing of SQLite. A change here changes ``index.VERSION``.

    place of position 812 in 2026-03.jsonl = 202603 << 43 | 812

Anyone chooses the ids, parties and lines that are looked up here. So their numbers are digests. With a checksum, or the
beginning of an id, a stranger could give one number to thousands of messages. Each look-up would read them all.
"""

from __future__ import annotations

try:  # see ``keys``
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[int, int, int]
    """A candidate: timestamp, place, number of its line."""


class Doubt(Exception):
    """The index differs from the logs, or from what we left."""


NEWS = 4 << 20
"""Bytes of logs that the index takes in about as fast as a scan reads a million messages."""
BITS = 43
POSITION = (1 << BITS) - 1
LIVE = (1 << 20) - 1 << BITS
"""The place of the live log's first byte. A place is one number with the log in its upper bits: archives in the order
of their months, then the live log.
"""
NEVER, EVER = -(1 << 62), 1 << 62
PARENT, PARTY, EVERYONE, ID = range(1, 5)
"""Kinds of terms; those of the beginnings of ids, which ``prefix_term`` makes, are of kind 0."""
_DIGITS = (1 << 56) - 1


def first_place(month: str) -> int:
    digits = month[:4] + month[5:]
    if not (digits.isascii() and digits.isdigit()):
        raise Doubt(f"{month} is no month")
    return int(digits) << BITS


def month_of(place: int) -> str:
    """Return the month of an archived place, as ``first_place`` took it."""
    return f"{(place >> BITS) // 100:04}-{(place >> BITS) % 100:02}"


def rank(place: int) -> tuple[bool, int]:
    """Return the sort key of records with the same id: the lowest counts, the live one, else the first written."""
    return place < LIVE, place


def number_of(data: bytes) -> int:
    """Return the number of a line or an id (SQLite holds 63 bits)."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def term_of(kind: int, text: str = "") -> int:
    """Return the number by which a message is looked up; by chance, two texts may share one."""
    return kind << 56 | number_of(text.encode("utf-8", "surrogatepass")) & _DIGITS


def prefix_term(message_id: str, pad: bytes = b"\0") -> int:
    """Return the beginning of an id as a number: ids with a common prefix are neighbours; case does not count."""
    return int.from_bytes(message_id.casefold().encode("utf-8", "surrogatepass")[:7].ljust(7, pad), "big")
