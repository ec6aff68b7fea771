"""What was proven of who wrote a record: the words for it, and for whom each speaks.

Belongs here: those words. Who proves what is ``callers``; how a record carries it is ``core.seals``. None means that
nothing was proven: such a record is mail, and decides nothing.
"""

from __future__ import annotations

from .records import USER

TERMINAL, CONSOLE, STEWARD = "user@terminal", "user@console", "steward"
"""The person at a terminal of their own, and on the console's page; the maintenance job."""
SESSION = "session:"
"""What stands before a session's id: a process of its client wrote."""


def of_session(session_id: str) -> str:
    """Return the proof that a process of that session's client wrote."""
    return SESSION + session_id


def is_person(proof: str | None) -> bool:
    """Return whether the person is proven to have written."""
    return proof in (TERMINAL, CONSOLE)


def speaker(proof: str | None) -> str | None:
    """Return who is proven to speak: ``user``, a session's id; None for nobody, and for the steward, who decides
    nothing."""
    if is_person(proof):
        return USER
    if proof is not None and proof.startswith(SESSION):
        return proof.removeprefix(SESSION)
    return None
