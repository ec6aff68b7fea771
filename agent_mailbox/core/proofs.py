"""The proofs of a record's writer: the words for them, and for whom each speaks.

Belongs here: those words. ``identity.callers`` decides which proof a process has; ``core.seals`` puts it into a record.
A record without a proof is only mail: it decides nothing.
"""

from __future__ import annotations

from .records import USER

TERMINAL, CONSOLE, STEWARD = "user@terminal", "user@console", "steward"
"""The person at a terminal of their own, and on the console's page; the maintenance job."""
ADOPTED = "adopted"
"""The person confirmed the line by ``init --adopt``, with the writer that it names."""
BEFORE = "before"
"""The line is older than the mailbox's seals: nothing is proven of it, and as mail it still counts."""
SESSION = "session:"
"""The prefix of a session's id: a process of its client wrote."""


def of_session(session_id: str) -> str:
    """Return the proof that a process of that session's client wrote."""
    return SESSION + session_id


def is_person(proof: str | None) -> bool:
    """Return whether the person is proven to have written."""
    return proof in (TERMINAL, CONSOLE)


def proves(proof: str | None) -> bool:
    """Return whether anything is proven of the writer."""
    return proof is not None and proof != BEFORE


def speaker(proof: str | None, claimed: str) -> str | None:
    """Return the proven speaker of a record that names ``claimed`` as its writer: ``user``, or a session's id.

    None if there is none; the steward is none, since it decides nothing.
    """
    if is_person(proof):
        return USER
    if proof == ADOPTED:
        return claimed
    if proof is not None and proof.startswith(SESSION):
        return proof.removeprefix(SESSION)
    return None
