"""The numbers that the projection keeps of a message: its place, and the numbers and terms that find it.

Belongs here: how a place and a term are made, and what all users of the projection share; nothing of SQLite. A change
here changes ``projection_file.VERSION``.

    place of position 812 in 2026-03.jsonl = 202603 << 43 | 812
    start of the id 16904521-6b5c-46f0-…   = b"16904521"

Anyone chooses the ids, parties and lines that are looked up here. So their numbers are digests. With a checksum, or the
beginning of an id, a stranger could give one number to thousands of messages. Each look-up would read them all.
"""

from __future__ import annotations

try:  # see ``store.log.keys``
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[int, int, int]
    """A candidate: timestamp, place, number of its line."""


class Doubt(Exception):
    """The index differs from the logs, or from what we left."""


FILE, LOCK = "projection.sqlite", "projection.lock"
PATIENCE = 2.0
"""Seconds to wait for another process that uses the projection; then everything is read."""
HASTE = 0.2
"""The same while others wait for the log's lock."""
NEWS = 4 << 20
"""Bytes of logs that the index takes in about as fast as a scan reads a million messages."""
BITS = 43
POSITION = (1 << BITS) - 1
LIVE = (1 << 20) - 1 << BITS
"""The place of the live log's first byte. A place is one number with the log in its upper bits: archives in the order
of their months, then the live log.
"""
NEVER, EVER = -(1 << 62), 1 << 62
PARENT, PARTY = 1, 2
"""Kinds of terms."""
LONELY, TAKEN, DOUBTFUL = 0, 1, 2
"""States of live mail: nobody has a record of it, surely somebody took it, or its records and its lines tell."""
TAKES, DOUBTS, MARKED, OF_ASK = 1, 2, 4, 8
"""Bits of a read record. Its mail is taken; it is to be judged with all others of its message; it has a nonce, or
gives mail back. The last one says that its mail asks for an ack."""
_DIGITS = (1 << 56) - 1
BEGINNING = 8
"""Bytes of an id by which it is found from its beginning, in lower case."""


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


def term_of(kind: int, text: str) -> int:
    """Return the number by which a message is looked up; by chance, two texts may share one."""
    return kind << 56 | number_of(text.encode("utf-8", "surrogatepass")) & _DIGITS


def number_of_id(message_id: str) -> int:
    """Return the number of a message's id."""
    return number_of(message_id.encode("utf-8", "surrogatepass"))


def term_of_answer(number: int) -> int:
    """Return the term of the answers to the message whose id has this number: the id itself need not be read."""
    return PARENT << 56 | number & _DIGITS


def start_of(message_id: str) -> bytes:
    """Return the beginning of an id: ids that begin alike are neighbours."""
    return _beginning(message_id).ljust(BEGINNING, b"\0")


def starts_from(word: str, *, prefix: bool) -> tuple[bytes, bytes]:
    """Return the first and the last start of the ids equal to a word in any case, or (``prefix``) that begin with
    it."""
    begin = _beginning(word)
    return begin.ljust(BEGINNING, b"\0"), begin.ljust(BEGINNING, b"\xff" if prefix else b"\0")


def _beginning(word: str) -> bytes:
    return word.casefold().encode("utf-8", "surrogatepass")[:BEGINNING]
