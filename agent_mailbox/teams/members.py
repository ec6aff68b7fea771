"""The members of a team as agents here, and their end.

Belongs here: finding a team's members in the roster, and retiring them; ``mirror`` enters them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import NotFound, Refused

if TYPE_CHECKING:
    from ..mailbox.mailbox import Mailbox


def members_here(mailbox: Mailbox, tag: str) -> list[str]:
    """Return the ids of a team's members (by its tag) that are in the roster and not dead."""
    ending = f"@{tag.partition(':')[2]}"
    agents = mailbox.logs.read_roster().carriers(tag)
    return [a.session_id for a in agents if a.session_id.endswith(ending)]


def retire_members(mailbox: Mailbox, tag: str) -> None:
    """Retire the members of a team (by its tag) that is over; unread mail goes back to its roles."""
    for session_id in members_here(mailbox, tag):
        retire_member(mailbox, session_id, f"{tag} is over")


def retire_member(mailbox: Mailbox, session_id: str, why: str) -> None:
    """Retire a member; idempotent."""
    try:
        mailbox.end(session_id, "retire", session_id, why)
    except (NotFound, Refused):
        pass
