"""The word to a session that goes on after its end in the roster: it gets no mail, and how it comes back.

Belongs here: the words, and that they are said once for each end. A hook registers no such session by itself: it may
have left, or somebody may have sent it away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import frame
from ...core.text import clipped, neutral, typed
from ...store.files import small_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...mailbox.open_mailbox import OpenMailbox

KEPT = "retired"
"""The derived directory that holds, for each session, the end of which it was told."""
_VERB = "roster retire"


def tell_once(desk: OpenMailbox, session_id: str, program: str, command: str, write: Callable[[str], None]) -> None:
    """Write the line for a retired session, unless it was told already, or this ``command`` of its own retired it."""
    roster = desk.logs.read_roster()
    agent, told = roster.get(session_id), desk.logs.cache(KEPT, session_id)
    if agent is None or small_files.load_derived(told) == b"%d" % agent.changed or _VERB in command:
        return
    heirs = [heir for heir in roster.heirs(session_id) if heir != session_id]
    goes = f"{frame.name_of(heirs[-1], roster)} continues it" if heirs else "its mail waits for nobody"
    why = f" ({clipped(neutral(agent.reason), 100)})" if agent.reason else ""
    back = f"`{program} roster register --session-id {typed(session_id)}`"
    write(
        f"agent-mailbox: this session, {frame.name_of(session_id, roster)}, was retired on"
        f" {frame.when(agent.changed)}{why}. It gets no mail, and {goes}. To come back: {back}"
    )
    small_files.save_derived(told, b"%d" % agent.changed)
