"""The end of an agent that agreed to it: its entry is retired, and the configured command cleans up after it.

Belongs here: those two steps; both are idempotent.
"""

from __future__ import annotations

from ..core.control.state import SHUT_DOWN
from ..core.text import filled
from ..mailbox.open_mailbox import OpenMailbox
from ..mailbox.registry import Registry
from ..store.files import programs


def carry_out(desk: OpenMailbox, session_id: str, actor: str, *, pane: str, vouched: bool) -> None:
    """Retire the agent, then start the person's ``[control] cleanup`` without waiting: it may close our own terminal.

    ``vouched``: the user made or named the mailbox; a stranger's configuration starts no program.
    """
    Registry(desk).end(session_id, "retire", actor, SHUT_DOWN)
    words = desk.own.cleanup
    if not words or not vouched:
        return
    try:
        programs.leave(filled(words, {"session": session_id, "pane": pane, "dir": desk.directory}))
    except OSError:
        pass  # it is retired all the same; a terminal that stays open is the person's to close
