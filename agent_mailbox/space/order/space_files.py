"""The files that messages of a shared mailbox bring, as an engine hands them from machine to machine.

Belongs here: what each engine does alike for that: names, digests and parts. Must not know any engine. A file is known
by its SHA-256. Each machine ships, and takes back, in its own name alone; so what comes is another's word until its
digest was compared.
"""

from __future__ import annotations

from ...core.proofs import is_machine
from ...errors import Malformed

PART = 256 << 10
"""Bytes of one part: an engine takes only so many at once."""
MOST_PARTS = 64
"""Parts of one file: as many as the largest has (``attachment_files.MOST_BYTES``)."""


def parts_of(data: bytes) -> list[bytes]:
    """Return a file's parts; an empty file has one."""
    return [data[start : start + PART] for start in range(0, len(data), PART)] or [b""]


def check_names(*names: str) -> None:
    """Raise ``Malformed`` for a name of a space, or of a machine, that could say something else to an engine."""
    for name in names:
        if not is_machine(name):
            raise Malformed(f"name is not lower-case letters, digits and -: {name}", "choose another")


def digest_of_id(message_id: str) -> str:
    """Return the short form of a message's id: a foreign program may choose any text."""
    return _sha256_of(message_id.encode("utf-8", "surrogatepass"))[:32]


def checksum_of(line: bytes) -> str:
    """Return the checksum that goes with what is kept in an engine."""
    return _sha256_of(line)[:16]


def _sha256_of(data: bytes) -> str:
    from hashlib import sha256  # who finds no engine is spared OpenSSL

    return sha256(data).hexdigest()
