"""The sessions that a lead or a policy binds, from the user's own records.

Belongs here: reading them. ``stamps`` writes them.
"""

from __future__ import annotations

from . import system
from .stamps import BOUND


def everyone(state: str) -> dict[str, list[str]]:
    """Return the sessions that are bound, each with the real paths of its mailboxes."""
    directory = system.join(state, BOUND)
    found = {}
    try:
        for session_id in system.listdir(directory):
            path = system.join(directory, session_id)
            with system.stream(path, "r", encoding="utf-8", errors="surrogateescape") as file:
                found[session_id] = file.read(1 << 16).splitlines()
    except OSError:
        pass
    return found


def here(state: str, directory: str) -> list[str]:
    """Return the sessions that are bound in the mailbox."""
    return sorted(session_id for session_id, places in everyone(state).items() if directory in places)
