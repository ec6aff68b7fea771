"""Sessions that a command names and nobody knows.

Belongs here: the refusal of one that is nearly an agent's. Must not import click.
"""

from __future__ import annotations

from ..core.text import typed
from ..errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..mailbox.opened import OpenMailbox


def refuse_misspelt(me: str, desk: OpenMailbox) -> None:
    """Raise ``NotFound`` for a session that nobody knows and whose id nearly is, or begins, an agent's id or name."""
    roster = desk.logs.read_roster()
    if roster.get(me) is not None:
        return
    from ..core import misspelt  # serves only mistakes

    if meant := misspelt.nearly_agent(me, roster):
        raise NotFound(
            f"no agent {me!r} is known",
            f"did you mean {' or '.join(meant)}? For a new session, first run"
            f" `agent-mailbox roster register --session-id {typed(me)}`",
        )
