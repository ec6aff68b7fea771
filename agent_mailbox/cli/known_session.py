"""The session that a command names, before its mail is looked at: nobody may know it, and mail may be late.

Belongs here: the refusal of one that is nearly an agent's, and what else is told before its mail is looked at. Must not
import click.
"""

from __future__ import annotations

from ..core.text import typed
from ..errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..mailbox.opened import OpenMailbox
    from .context import Context


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


def warn_late(app: Context, desk: OpenMailbox) -> None:
    """Warn, before a look at a mailbox that several machines share, if nobody brings the others' mail."""
    from ..mailbox import space as spaces  # a mailbox of one machine is spared it

    if why := spaces.why_late(desk.logs):
        app.warn(why)
