"""All parts of control in one mailbox, as a scene of a test wants them under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.control import requests, steps
from agent_mailbox.control.orders import Orders
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.control_plane import control_log
from agent_mailbox.control_plane.standing import find_standing
from agent_mailbox.core.control.messages import TaskAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from agent_mailbox.control_plane.standing import Standing
    from agent_mailbox.core.control.control_requests import ControlRequest
    from agent_mailbox.core.control.messages import Payload
    from agent_mailbox.core.control.state import ControlState
    from agent_mailbox.core.control.verdicts import Verdict
    from agent_mailbox.core.records import Message
    from agent_mailbox.mailbox.open_mailbox import OpenMailbox
    from agent_mailbox.mailbox.sending import Sent


class ControlDesk(requests.Requests):
    """Requests, orders and tasks of an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        super().__init__(box)
        self.set_mode, self.set_policy = Orders(box).set_mode, Orders(box).set_policy
        self.tasking = Tasking(box)
        self.report, self.claim_task, self.add_task = (
            self.tasking.report,
            self.tasking.claim_task,
            self.tasking.add_task,
        )

    def request(self, me: str, payload: Payload, *, to: str | None = None) -> ControlRequest:
        """Ask, or add a task for one agent."""
        if isinstance(payload, TaskAssignment):
            return self.add_task(me, (to or "",), payload).task
        return super().request(me, payload, to=to)

    def plane(self) -> ControlState:
        """Return the fold of all control messages."""
        return control_log.of(self.box)

    def standing(self, session_id: str) -> Standing:
        """Return the agent's standing."""
        return find_standing(self.box, session_id)

    def find(self, word: str) -> ControlRequest:
        """Return a request."""
        return steps.find_request(self.box, word)

    def post(self, me: str, payload: Payload, to: Sequence[str], **given: Any) -> Sent:
        """Send one control message."""
        return steps.post_message(self.box, me, payload, to, **given)

    def log(self, request_id: str | None = None) -> list[tuple[Message, Verdict]]:
        """Return the control messages, each with its outcome."""
        return control_log.history(self.box, request_id)

    def deciders(self, request: ControlRequest) -> list[str]:
        """Return who decides a request."""
        return request.list_deciders(self.box.logs.read_roster())

    def always(self, request: ControlRequest) -> tuple[Any, ...]:
        """Return the field ``updates`` of an approval for good."""
        return requests.always_updates(request)
