"""The refusal of a session that is nearly an agent's, and the warning that an unknown one was registered.

Belongs here: their words. Must not import click.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import misspelt

if TYPE_CHECKING:
    from ..core.roster import Roster


def refuse_misspelt(me: str, roster: Roster) -> None:
    """Raise ``NotFound`` for a session that nobody knows and whose id nearly is, or begins, an agent's id or name."""
    if misspelt.nearly_agent(me, roster):
        raise misspelt.unknown_agent(me, roster)


def registered_text(me: str, by: str) -> str:
    """Return the warning that a command, ``by``, registered a session that it was to know: it may be mistyped."""
    return (
        f"no agent {me} was known, and this {by} registered it: `agent-mailbox roster list` shows all,"
        f" `agent-mailbox roster retire {me}` removes this one"
    )
