"""What the search index keeps of a message instead of the message: numbers for its place and for what it is found by.

Belongs here: how a place and a term are made, and nothing of SQLite. Who changes how one is made
changes ``index.VERSION``.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[int, int, int]
    """Of a candidate: timestamp, place, checksum of its line."""


class Doubt(Exception):
    """The index is not what the logs say, or not what we left."""


BITS = 43
POSITION = (1 << BITS) - 1
LIVE = (1 << 20) - 1 << BITS
"""A place is one number, the log's in its upper bits: archives in the order of their months, then the live log."""
NEVER, EVER = -(1 << 62), 1 << 62
PARENT, PARTY, EVERYONE = range(1, 4)
"""Kinds of terms; those of ids, which ``id_term`` makes, are of kind 0."""


def first_place(month: str) -> int:
    digits = month[:4] + month[5:]
    if not (digits.isascii() and digits.isdigit()):
        raise Doubt(f"{month} is no month")
    return int(digits) << BITS


def month_of(place: int) -> str:
    """The month of an archived place, as ``first_place`` took it."""
    return f"{(place >> BITS) // 100:04}-{(place >> BITS) % 100:02}"


def rank(place: int) -> tuple[bool, int]:
    """Of records with the same id the live one counts, else the first written; the lowest rank wins."""
    return place < LIVE, place


def term_of(kind: int, text: str = "") -> int:
    """What a message can be looked up by, as a number; several texts may share one."""
    return kind << 56 | zlib.crc32(text.encode("utf-8", "surrogatepass"))


def id_term(message_id: str, pad: bytes = b"\0") -> int:
    """The beginning of an id, so that ids with a common prefix stand together; case does not count."""
    return int.from_bytes(message_id.casefold().encode("utf-8", "surrogatepass")[:7].ljust(7, pad), "big")
