"""The proofs of a record's writer: the words for them, and for whom each speaks.

Belongs here: those words. ``identity.callers`` decides which proof a process has; ``core.seals`` puts it into a record.
A record without a proof is only mail: it decides nothing.

A proof has three parts: the machine whose word it is, its kind, and a session's id. Nothing else takes its text apart:
``parse`` does so once, and takes only what ``_made`` could have made.
"""

from __future__ import annotations

from .address import is_id
from .records import USER, Proof

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
_SEEN = {str(one): one for one in (TERMINAL, CONSOLE, STEWARD)}
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
    """Return whether anything is proven of the writer."""
    return proof is not None and proof.kind not in (BEFORE, WAITS, UNPROVEN)


def is_bare_word(proof: Proof | None) -> bool:
    """Return whether the line is another machine's word, which proves nothing.

    A roster event of this kind brings a session of that machine; mail of this kind names a sender of another one."""
    return proof is not None and proof.machine is not None and proof.kind in (WAITS, UNPROVEN)


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
