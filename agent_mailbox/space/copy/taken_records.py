"""The effects of records that come from the order, before they are written: whose quiet stamps end, whom they bind."""

from __future__ import annotations

from ...core import codec, reach
from ...core.address import ALL
from ...core.line_forms import may_have, may_release
from ...core.records import BadLine, Message
from ...core.roster import DEAD
from ...store.log.stamps import EVERYONE
from ...store.user_state import bindings
from ..order.order import MESSAGES, ROSTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...store.log.logs import Logs
    from ..order.order import Ordered

CROWD = 100
"""Messages at once above which everybody's quiet stamp ends."""


def disturbed_sessions(logs: Logs, kind: str, records: Iterable[Ordered]) -> set[str] | None:
    """Return the sessions whose quiet stamps the records end; None: everyone's."""
    if kind == MESSAGES:
        lines = [record.line for record in records]
        is_crowd = len(lines) > CROWD  # as a machine joins: to look at each costs more than everybody's next look
        looked = [line for line in lines if may_have(line, b"control")] if is_crowd else lines
        messages = [one for one in map(codec.message, looked) if isinstance(one, Message)]
        for message in messages:
            if message.type == "control":
                _bind_by(logs, message)
        return EVERYONE if is_crowd else reach.find_concerned(messages, logs.read_roster())
    if kind == ROSTER:
        for record in records:
            event = codec.roster_event(record.line)
            if not isinstance(event, BadLine) and event.lead is not None:
                _note_bound(logs, [event.session_id])
        return EVERYONE
    return EVERYONE if any(may_release(record.line) for record in records) else set()


def _bind_by(logs: Logs, message: Message) -> None:
    """Note whom an order may bind: it holds even if the log is cut before they look."""
    from ...core.control import message_text, messages  # what most mail is spared

    orders = messages.ModeSet, messages.PolicyUpdate, messages.TaskAssignment
    if isinstance(message_text.parse(message.content), orders):
        _note_bound(logs, None if ALL in message.recipients else message.recipients)


def _note_bound(logs: Logs, sessions: Sequence[str] | None) -> None:
    """Note that these sessions (None: all) may be bound, if they ever lived on this machine and are not dead."""
    roster = logs.read_roster()
    for session_id in logs.last_seen() if sessions is None else sessions:
        if roster.state(session_id) != DEAD and logs.last_seen([session_id]):
            bindings.bind(logs.stamp_files, session_id)
