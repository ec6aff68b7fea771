"""The seal at a line's end: what was proven of its writer.

Belongs here: the form of a sealed line, putting it together, and taking it apart. Keys and positions are the store's
(``store.log.keys``, ``store.log.custody``). A seal is the last key of the line's object:

    {"id":"…","sender":"user",…,"seal":"1 3f2a9c01 0 4711 user@terminal 0123456789abcdef0123456789abcdef"}

Its words, in this order:

- the version of the form
- the id of the key
- the generation of the log, and the position in it, at which the line was written
- the proof
- a MAC (32 hex digits) over the mailbox, the log and every byte before the MAC

So a line counts in its own mailbox, in its own log, at its own place, and once.
"""

from __future__ import annotations

from . import proofs
from .records import Proof, Record

VERSION = b"1"
MAC = 32
"""Hex digits of a MAC: 128 bits."""
SEALED = b',"seal":"'
"""The beginning of every seal of ours: these bytes are in each sealed line."""
_END = b'"}'
_LONGEST = 320
"""Bytes of the longest seal with its key: the longest session id has 128."""


class Seal(Record):
    """A seal, taken apart but not verified: ``signed`` is what its MAC covers, beside the mailbox and the log.

    ``proof`` is None for a word that is no proof: the seal proves nothing."""

    key_id: bytes
    generation: int
    position: int
    proof: Proof | None
    signed: bytes
    mac: bytes


def begun(line: bytes, key_id: bytes, generation: int, position: int, proof: str) -> bytes:
    """Return the line (an object without newline) with its seal up to the MAC, which covers these bytes."""
    return b"%s%s%s %s %d %d %s " % (line[:-1], SEALED, VERSION, key_id, generation, position, proof.encode())


def ended(signed: bytes, mac: bytes) -> bytes:
    """Return the sealed line, without newline."""
    return signed + mac + _END


def of(line: bytes) -> Seal | None:
    """Return the seal of a line; None if it has none of this form."""
    line = line.rstrip(b" \t\r\n")
    place = line.rfind(SEALED, -_LONGEST)
    if place < 0 or not line.endswith(_END):
        return None
    words = line[place + len(SEALED) : -len(_END)].split(b" ")
    if len(words) != 6 or words[0] != VERSION or len(words[5]) != MAC:
        return None
    _, key_id, generation, position, proof, mac = words
    if not (generation.isdigit() and position.isdigit() and len(generation) < 20 and len(position) < 20):
        return None
    signed = line[: -len(_END) - MAC]
    return Seal(key_id, int(generation), int(position), proofs.parse(proof), signed, mac)


def without(line: bytes) -> bytes:
    """Return a sealed line as it was before it was sealed."""
    line = line.rstrip(b" \t\r\n")
    return line[: line.rfind(SEALED, -_LONGEST)] + b"}"
