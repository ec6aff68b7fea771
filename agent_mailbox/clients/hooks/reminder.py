"""The reminder for a session that lost its context or was away: who it is, what it owes, what it asked.

Belongs here: the words. ``core.obligations`` knows what is owed. A session that owes nothing and waits for nothing gets
no reminder.
"""

from __future__ import annotations

from ...core import frame, obligations
from ...store.projection import open_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.inbox import InboxState
    from ...core.records import Message
    from ...mailbox.open_mailbox import OpenMailbox

MOST = 5
"""Messages named in each list: enough to go on, and ``status`` has the rest."""


def reminder_lines(desk: OpenMailbox, session_id: str, program: str, *, is_known: bool) -> list[str]:
    """Return the reminder; empty if there is nothing to remind of. A session that ``is_known`` was not just told who it
    is."""
    state, now = open_ends.read_asks(desk.logs, session_id, desk.config.ttls), desk.now()
    owed, asked = obligations.obligations(session_id, state), obligations.unanswered(session_id, state)
    told = []
    if owed:
        told += [
            f"You owe an answer ({program} reply ID, or ack ID):",
            *_list_messages(owed, state, now, program, "from"),
        ]
    if asked:
        told += ["You asked, and nobody answered yet:", *_list_messages(asked, state, now, program, "to")]
    me = f"agent-mailbox: this session is {frame.identity(session_id, state.roster)}"
    return [*([me] if is_known else []), *told] if told else []


def _list_messages(messages: Sequence[Message], state: InboxState, now: int, program: str, way: str) -> list[str]:
    shown = []
    for m in messages[-MOST:]:
        who = frame.sender_of(m, state.roster) if way == "from" else frame.target_of(m, state.roster)
        stale = obligations.staleness(m, state, now)
        shown.append(f'{frame.short(m.id)} {way} {who}: "{frame.title(m)}"' + (f" ({stale})" if stale else ""))
    more = len(messages) - len(shown)
    return [*shown, *([f"{more} more: {program} status"] if more else [])]
