"""What was proven of who wrote a record: the words for it, and for whom each speaks.

Belongs here: those words. Who proves what is ``identity.callers``; how a record carries it is ``core.seals``. None
means that nothing was proven: such a record is mail, and decides nothing.
"""

from __future__ import annotations

from .records import USER

TERMINAL, CONSOLE, STEWARD = "user@terminal", "user@console", "steward"
"""The person at a terminal of their own, and on the console's page; the maintenance job."""
ADOPTED = "adopted"
"""The person confirmed the line by ``init --adopt``, with the writer that it names."""
BEFORE = "before"
"""The line was there before the mailbox had seals: nothing is proven of it, and as mail it counts as it did."""
SESSION = "session:"
"""What stands before a session's id: a process of its client wrote."""


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
    """Return who is proven to speak in a record that names ``claimed`` as its writer: ``user``, or a session's id.

    None means nobody: also for the steward, who decides nothing.
    """
    if is_person(proof):
        return USER
    if proof == ADOPTED:
        return claimed
    if proof is not None and proof.startswith(SESSION):
        return proof.removeprefix(SESSION)
    return None
