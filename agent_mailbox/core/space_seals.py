"""The seal that a machine puts on a line for the other machines of its space: a signature (Ed25519, RFC 8032).

Belongs here: the form of such a line, putting it together, and taking it apart. ``space.trust.machine_keys`` signs,
``space.trust.space_judge`` tells whether a seal counts. It is on the line in the order:

    {"id":"…","sender":"user",…,"seal":"2 north 1764000000000000 BASE64KEY= user@terminal BASE64SIGNATURE=="}

Its words, in this order:

- the version of the form
- the machine
- a number, which grows with every line that the machine publishes
- the machine's public key
- the proof, as the machine saw the writer (``core.proofs``)
- the signature, of the space, the log and every byte before it

So a line counts in its own space, in its own log, from its own machine, and once.
"""

from __future__ import annotations

from . import proofs
from .proofs import is_machine
from .records import Proof, Record

_KEY = b',"seal":"2 '
_END = b'"}'
_IGNORED = b'{"ignored":"'
"""The beginning of a line that counts for nothing here, though its form is good."""
_LONGEST = 420
"""Bytes of the longest seal with its key: the longest session id has 128, a machine's name 32."""
PUBLIC, SIGNATURE = 44, 88
"""Characters of a public key and of a signature, in Base64."""


class SpaceSeal(Record):
    """A seal, taken apart but not verified: ``signed`` is what its signature covers, beside the space and the log.

    ``proof`` is None for a word that is no proof: the seal proves nothing."""

    machine: str
    number: int
    key: bytes
    proof: Proof | None
    signed: bytes
    signature: bytes


def sequence(log: str, machine: str) -> str:
    """Return the name of the sequence of numbers that a machine's lines have in a log of the order.

    Each log has its own: the network may hold one line until later ones of other logs are there. Within a log a
    machine publishes a line only once the earlier ones are there."""
    return f"{log} {machine}"


def begun(line: bytes, machine: str, number: int, key: bytes, proof: str) -> bytes:
    """Return the line (an object without newline) with its seal up to the signature, which covers these bytes."""
    return b"%s%s%s %d %s %s " % (line[:-1], _KEY, machine.encode(), number, key, proof.encode())


def ended(signed: bytes, signature: bytes) -> bytes:
    """Return the sealed line, without newline."""
    return signed + signature + _END


def covered(space: str, log: str, signed: bytes) -> bytes:
    """Return the bytes that the signature signs."""
    parts = (b"agent-mailbox space seal", space.encode(), log.encode(), signed)
    return b"".join([b"%d:%s" % (len(part), part) for part in parts])


def of(line: bytes) -> SpaceSeal | None:
    """Return the seal at a line's end; None if there is none of this form."""
    place = line.rfind(_KEY, -_LONGEST)
    if place < 0 or not line.endswith(_END):
        return None
    words = line[place + len(_KEY) : -len(_END)].split(b" ")
    if len(words) != 5 or len(words[2]) != PUBLIC or len(words[4]) != SIGNATURE:
        return None
    machine, number, key, proof, signature = words
    if not number.isdigit() or len(number) >= 20:
        return None
    signed = line[: -len(_END) - SIGNATURE]
    return SpaceSeal(machine.decode("ascii", "replace"), int(number), key, proofs.parse(proof), signed, signature)


def may_be_sealed(line: bytes) -> bool:
    """Return whether a machine may have sealed the line."""
    return _KEY in line


def without(line: bytes) -> bytes:
    """Return a line that has such a seal as it was before."""
    return line[: line.rfind(_KEY, -_LONGEST)] + b"}"


def ignored(line: bytes, machine: str) -> bytes:
    """Return a line as it is kept if it tells of sessions that are not its machine's: no reader takes it for a record.

    {"ignored":"north"}{"event":"retire","session_id":"x1",…}
    """
    return b'%s%s"}%s' % (_IGNORED, machine.encode(), line)


def is_ignored(line: bytes) -> bool:
    """Return whether a line is kept in that way."""
    return line.startswith(_IGNORED)


def ignored_of(line: bytes) -> str:
    """Return the machine of a line that is ignored."""
    return line[len(_IGNORED) :].partition(b'"}')[0].decode("utf-8", "replace")


def heeded(line: bytes) -> bytes:
    """Return a line without the mark that it is ignored."""
    while line.startswith(_IGNORED):
        machine, end, rest = line[len(_IGNORED) :].partition(b'"}')
        if not end or not is_machine(machine.decode("ascii", "replace")):
            return line
        line = rest
    return line


def unsealed(line: bytes) -> bytes:
    """Return a line without any seal or mark of ours, of whichever machine: this is what all machines have alike."""
    if line.startswith(_IGNORED):
        line = heeded(line)
    if proofs.SEALED not in line:  # as most lines are, of which there may be millions
        return line
    while True:
        if proofs.parse_seal(line) is not None:
            line = proofs.remove_seal(line)
        elif of(line) is not None:
            line = without(line)
        else:
            return line
