"""The proofs of a record's writer: the words for them, and for whom each speaks.

Belongs here: those words. ``identity.callers`` decides which proof a process has; ``core.seals`` puts it into a record.
A record without a proof is only mail: it decides nothing.
"""

from __future__ import annotations

from .records import USER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Message

TERMINAL, CONSOLE, STEWARD = "user@terminal", "user@console", "steward"
"""The person at a terminal of their own, and on the console's page; the maintenance job."""
ADOPTED = "adopted"
"""The person confirmed the line by ``init --adopt``, with the writer that it names."""
BEFORE = "before"
"""The line is older than the mailbox's seals: nothing is proven of it, and as mail it still counts."""
SESSION = "session:"
"""The prefix of a session's id: a process of its client wrote."""
WAITS = "waits"
"""Another machine's seal is on the line, and the person has not said yet that it counts: nothing is proven."""
_ELSEWHERE = "/"
"""It parts the name of another machine, whose word a proof is, from the proof."""


def of_session(session_id: str) -> str:
    """Return the proof that a process of that session's client wrote."""
    return SESSION + session_id


def of_machine(machine: str, proof: str) -> str:
    """Return the proof as another machine's word: that machine saw the writer, and the person lets it say so."""
    return machine + _ELSEWHERE + proof


def machine(proof: str | None) -> str | None:
    """Return the other machine whose word the proof is; None for a proof of this one."""
    name, parted, _ = (proof or "").partition(_ELSEWHERE)
    return name if parted else None


def _seen(proof: str) -> str:
    """Return the proof as the machine gave it that saw the writer."""
    return proof.rpartition(_ELSEWHERE)[2]


def is_person(proof: str | None) -> bool:
    """Return whether the person is proven to have written."""
    return proof is not None and _seen(proof) in (TERMINAL, CONSOLE)


def proves(proof: str | None) -> bool:
    """Return whether anything is proven of the writer."""
    return proof is not None and proof != BEFORE


def told(message: Message) -> str | None:
    """Return what programs are told of the proof of a message's writer; None: nothing proves who wrote it."""
    proof = message.written_by if message.proof is None else message.proof
    return proof if proves(proof) else None


def speaker(proof: str | None, claimed: str) -> str | None:
    """Return the proven speaker of a record that names ``claimed`` as its writer: ``user``, or a session's id.

    None if there is none; the steward is none, since it decides nothing.
    """
    if is_person(proof):
        return USER
    if proof == ADOPTED:
        return claimed
    if proof is not None and _seen(proof).startswith(SESSION):
        return _seen(proof).removeprefix(SESSION)
    return None
