"""The proofs of a record's writer: the words for them, for whom each speaks, and the seal that puts one on a line.

Belongs here: those words, and the form of a sealed line. ``identity.callers`` decides which proof a process has. Keys
and positions are the store's (``store.log.keys``, ``store.log.custody``). A record without a proof is only mail: it
decides nothing.

A proof has three parts: the machine whose word it is, its kind, and a session's id. Nothing else takes its text apart:
``parse`` does so once, and takes only what ``_made`` could have made.

A seal is the last key of the line's object:

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

from .address import is_id
from .records import USER, Proof, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Message

MAX_MACHINE = 32
_MACHINE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
SESSION = "session"
"""The kind of a session's proof: a process of its client wrote."""
_ELSEWHERE = "/"
"""It parts the name of another machine, whose word a proof is, from the proof. Neither a name nor an id has one."""
_MOST = 1000
"""Texts that are kept taken apart: a log has few, and each on many lines."""


def _made(kind: str, session_id: str | None = None, machine: str | None = None) -> Proof:
    text = kind if session_id is None else f"{kind}:{session_id}"
    proof = Proof(text if machine is None else machine + _ELSEWHERE + text)
    proof.machine, proof.kind, proof.id = machine, kind, session_id
    return proof


TERMINAL, CONSOLE, STEWARD = _made("user@terminal"), _made("user@console"), _made("steward")
"""The person at a terminal of their own, and on the console's page; the maintenance job."""
GATEWAY = "swarm-gateway"
"""The sender of the gateway's notices."""
OURS = ("steward", GATEWAY)
"""The senders of what our own jobs tell. Only these jobs send so, with the proof ``STEWARD``."""
ADOPTED = _made("adopted")
"""The person confirmed the line by ``init --adopt``, with the writer that it names."""
BEFORE = _made("before")
"""The line is older than the mailbox's seals: nothing is proven of it, and as mail it still counts."""
WAITS = _made("waits")
"""Another machine's seal is on the line, and the person has not said yet that it counts: nothing is proven."""
UNPROVEN = _made("unproven")
"""Another machine wrote the line, and nothing is proven of who wrote it there (``is_bare_word``)."""
CARRIED = _made("swarm")
"""A gateway took the mail in, by a signature of a swarm's member: its sender is that member, and nobody here."""
_SEEN = {str(one): one for one in (TERMINAL, CONSOLE, STEWARD, CARRIED)}
"""The kinds that a machine sees itself, beside a session's."""
_SEALED = {**_SEEN, str(WAITS): WAITS, str(UNPROVEN): UNPROVEN}
"""The kinds that are in a seal of this machine's."""
_parsed: dict[bytes, Proof | None] = {}


def of_session(session_id: str) -> Proof:
    """Return the proof that a process of that session's client wrote."""
    return _made(SESSION, session_id)


def of_machine(machine: str, proof: Proof) -> Proof:
    """Return the proof as another machine's word: that machine saw the writer, and the person lets it say so."""
    return _made(proof.kind, proof.id, machine)


def parse(text: bytes) -> Proof | None:
    """Return the proof of this text in a seal; None for any other text."""
    if text not in _parsed:
        if len(_parsed) >= _MOST:
            _parsed.clear()
        _parsed[text] = _taken_apart(text.decode("ascii", "replace"))
    return _parsed[text]


def _taken_apart(text: str) -> Proof | None:
    machine, parted, rest = text.partition(_ELSEWHERE)
    if not parted:
        machine, rest = "", text
    elif not is_machine(machine):
        return None
    kind, colon, session_id = rest.partition(":")
    if colon and kind == SESSION and is_id(session_id) and session_id not in (USER, *OURS):
        return _made(SESSION, session_id, machine or None)
    known = _SEALED.get(rest)
    return known if known is None or not machine else of_machine(machine, known)


def is_seen_here(proof: Proof | None) -> bool:
    """Return whether a machine may say this of a writer that it saw itself."""
    return proof is not None and proof.machine is None and (proof.kind == SESSION or proof.kind in _SEEN)


def machine(proof: Proof | None) -> str | None:
    """Return the other machine whose word the proof is; None for a proof of this one."""
    return None if proof is None else proof.machine


def is_person(proof: Proof | None) -> bool:
    """Return whether the person is proven to have written."""
    return proof is not None and proof.kind in (TERMINAL, CONSOLE)


def is_our_job(proof: Proof | None) -> bool:
    """Return whether one of our own jobs is proven to have written, which send by the names ``OURS``."""
    return proof is not None and proof.kind in (STEWARD, ADOPTED)


def proves(proof: Proof | None) -> bool:
    """Return whether anything is proven of a writer here."""
    return proof is not None and proof.kind not in (BEFORE, WAITS, UNPROVEN, CARRIED)


def is_carried(proof: Proof | None) -> bool:
    """Return whether a member of a swarm is proven to have written, by its signature."""
    return proof is not None and proof.kind == CARRIED


def is_bare_word(proof: Proof | None) -> bool:
    """Return whether the line is another machine's word, which proves nothing.

    A roster event of this kind brings a session of that machine; mail of this kind names a sender of another one."""
    return proof is not None and proof.machine is not None and proof.kind in (WAITS, UNPROVEN)


def decides(proof: Proof | None) -> bool:
    """Return whether the line decides about the sessions of whoever wrote it: proven, or as another machine's word."""
    return proves(proof) or is_bare_word(proof)


def told(message: Message) -> str | None:
    """Return what programs are told of the proof of a message's writer; None: nothing proves who wrote it."""
    proof = message.written_by if message.proof is None else message.proof
    return str(proof) if proof is not None and proves(proof) else None


def speaker(proof: Proof | None, claimed: str) -> str | None:
    """Return the proven speaker of a record that names ``claimed`` as its writer: ``user``, or a session's id.

    None if there is none; the steward is none, since it decides nothing.
    """
    if proof is None:
        return None
    if is_person(proof):
        return USER
    if proof.kind == ADOPTED:
        return claimed if is_id(claimed) else None
    return proof.id


def is_machine(name: str) -> bool:
    """Return whether a machine may have that name: lower-case letters, digits and ``-``, at most ``MAX_MACHINE``."""
    return 0 < len(name) <= MAX_MACHINE and _MACHINE.issuperset(name)


# -- the seal ----------------------------------------------------------------------------------------------------------

_FORM = b"1"
MAC_DIGITS = 32
"""Hex digits of a MAC: 128 bits."""
SEALED = b',"seal":"'
"""The beginning of every seal of ours: these bytes are in each sealed line."""
SEAL_END = b'"}'
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


def begin_seal(line: bytes, key_id: bytes, generation: int, position: int, proof: str) -> bytes:
    """Return the line (an object without newline) with its seal up to the MAC, which covers these bytes. The MAC and
    ``SEAL_END`` follow."""
    return b"%s%s%s %s %d %d %s " % (line[:-1], SEALED, _FORM, key_id, generation, position, proof.encode())


def parse_seal(line: bytes) -> Seal | None:
    """Return the seal of a line; None if it has none of this form."""
    line = line.rstrip(b" \t\r\n")
    place = line.rfind(SEALED, -_LONGEST)
    if place < 0 or not line.endswith(SEAL_END):
        return None
    words = line[place + len(SEALED) : -len(SEAL_END)].split(b" ")
    if len(words) != 6 or words[0] != _FORM or len(words[5]) != MAC_DIGITS:
        return None
    _, key_id, generation, position, proof, mac = words
    if not (generation.isdigit() and position.isdigit() and len(generation) < 20 and len(position) < 20):
        return None
    signed = line[: -len(SEAL_END) - MAC_DIGITS]
    return Seal(key_id, int(generation), int(position), parse(proof), signed, mac)


def remove_seal(line: bytes) -> bytes:
    """Return a sealed line as it was before it was sealed."""
    line = line.rstrip(b" \t\r\n")
    return line[: line.rfind(SEALED, -_LONGEST)] + b"}"
