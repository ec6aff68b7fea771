"""Effects of control messages as they are sent, and as they reach a reader.

Belongs here: telemetry of each; telling the lead about a message whose sender had no right to it; marking messages for
their reader. A control message is in force because it is in the log (``core.control.state``): no other step is needed,
so none can be forgotten or repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import frame
from ..core.address import ALL, derived_uuid
from ..core.compose import Draft
from ..core.control import authority, messages, verdicts
from ..core.records import USER
from ..errors import MailboxError
from ..store.user_state import bindings
from . import control_log, standing

ORDERS = tuple(kind.kind for kind in (messages.ModeSet, messages.PolicyUpdate, messages.TaskAssignment))
"""The messages by which a lead binds an agent unasked."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.control.state import ControlState
    from ..core.control.verdicts import Verdict
    from ..core.inbox import Item
    from ..core.records import Message
    from ..mailbox.open_mailbox import OpenMailbox

    Send = Callable[[Draft], object]


def sent(desk: OpenMailbox, those: Sequence[Message], send: Send) -> None:
    """Tell the outcome of control messages that were just sent; a failure here undoes no sending. ``send`` reports."""
    try:
        to_all = any(ALL in message.recipients for message in those)
        fold = control_log.of(desk) if to_all else control_log.of_messages(desk, [message.id for message in those])
        for message in those:
            if (verdict := fold.verdicts.get(message.id)) is not None:
                if verdict.kind in ORDERS:
                    _bind(desk, message, fold)
                _tell(desk, message, fold, "sending", message.sender, send)
    except MailboxError:
        pass


def _bind(desk: OpenMailbox, message: Message, fold: ControlState) -> None:
    """Note among the user's own records whom an order binds: it holds even if the log is cut before they look."""
    to_all = ALL in message.recipients
    bound = fold if to_all else control_log.of_agents(desk, message.recipients)
    for session_id in fold.roster.agents if to_all else message.recipients:
        if standing.binds(standing.of(bound, session_id), bound.roster.get(session_id)):
            bindings.bind(desk.logs.stamp_files, session_id)


def judged(desk: OpenMailbox, me: str, items: Sequence[Item], send: Send | None) -> list[Item]:
    """Return the items as ``me`` is shown them, control messages with their outcome; with ``send`` it is reported."""
    fold = control_log.of_messages(desk, [item.message.id for item in items if item.message.type == "control"])
    found = []
    for item in items:
        verdict = fold.apply(item.message)
        if verdict is None:
            found.append(item)
            continue
        if send is not None:
            _tell(desk, item.message, fold, me, me, send)
        found.append(item.replace(note=_note(item.message, verdict, fold, me, desk.now())))
    return found


def _note(message: Message, verdict: Verdict, fold: ControlState, me: str, now: int) -> str:
    if verdict.outcome == verdicts.APPLIED and not fold.is_for(message, me):
        return f"not for you, whom {frame.name_of(message.sender, fold.roster)} does not lead"
    request = fold.requests.get(verdict.request_id)
    if request is not None and request.message_id == message.id:
        if not request.is_open:
            return f"{request.state.replace('_', ' ')}, by {frame.name_of(request.by, fold.roster)}{request.doubt}"
        if moot := request.why_moot(fold.roster, now):
            return moot
    return verdicts.told(verdict)


def _tell(desk: OpenMailbox, message: Message, fold: ControlState, at: str, me: str, send: Send) -> None:
    verdict = fold.verdicts[message.id]
    request = fold.requests.get(verdict.request_id)
    asked = request.asked if request is not None and request.message_id != message.id else None
    step = {"from": verdict.before, "to": verdict.after, "cause": verdict.why, "requestId": verdict.request_id}
    latency = None if asked is None else max(message.timestamp - asked, 0)
    more = {**step, "latency_ms": latency, "message_id": message.id, "at": at}
    control_log.note_step(desk, message.sender, verdict.kind or "unknown", verdict.outcome, verdict.about, more)
    if verdict.outcome == verdicts.REFUSED and verdict.forbidden:
        _report(message, verdict, fold, me, send)


def _report(message: Message, verdict: Verdict, fold: ControlState, me: str, send: Send) -> None:
    """Tell the lead, once: the report's id follows from the message's, so a second report is refused."""
    lead = authority.lead_of(verdict.about, fold.roster) if ":" not in verdict.about else USER
    if lead in (me, message.sender) or lead in message.recipients:
        return  # the lead sees the message itself, or sent it
    name, about = frame.name_of(message.sender, fold.roster), frame.party(verdict.about, fold.roster)
    draft = Draft(
        sender=me,
        to=(lead,),
        subject=f"Refused: {verdict.kind} from {name}",
        content=f"{name} sent {verdict.kind} {verdict.request_id}".rstrip()
        + f", which is not theirs to send: {verdict.why}. It concerns {about}. Nothing changed.",
        type="notification",
        id=derived_uuid(f"refused {message.id}"),
    )
    try:
        send(draft)
    except MailboxError:
        pass  # another process told it before, or the lead is gone; telemetry has it
