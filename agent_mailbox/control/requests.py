"""Asking and answering on the control plane: requests, decisions, waiting for them.

Belongs here: the order of those steps. A message is appended, then the log is asked what became of it: of two that
decide one request at the same instant the log's order says which counts, to everyone alike. The rules are
``core.control``.
"""

from __future__ import annotations

from ..core import frame
from ..core.control import authority, message_text, messages, transitions
from ..core.control.state import REFUSED, UNPROVEN, ControlRequest
from ..core.records import USER, Read, Record
from ..core.roster import DEAD
from ..errors import Malformed, Refused
from ..store import system
from .control_log import ControlStep, note
from .orders import Coordination, written
from .standing import Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..core.control.messages import Payload

__all__ = ["Beside", "Control", "ControlRequest", "Standing", "overdue"]

PREFIXES = {
    messages.PlanRequest: "plan",
    messages.PermissionRequest: "perm",
    messages.SandboxRequest: "net",
    messages.ShutdownRequest: "shutdown",
    messages.TaskAssignment: "task",
}
_FOLLOWS = ("mode", "updated_input", "updates", "scope", "hosts")
"""Fields of an answer that do something: one that says them otherwise is not the same again."""
_ASKS = (messages.PlanRequest, messages.PermissionRequest, messages.SandboxRequest)


class Beside(Record):
    """What may end a wait beside a decision: ``why`` (empty: nothing yet), and the files or directories whose changes
    are a reason to ask it again."""

    places: tuple[str, ...]
    why: Callable[[], str]


class Control(Coordination):
    """The part of the facade that coordinates: all of it."""

    # -- asking -------------------------------------------------------------------------------------------------------

    def request(self, me: str, payload: Payload, *, to: str | None = None) -> ControlRequest:
        """Ask: a worker its lead (the person, if it has none), a lead its worker (``to``: a shutdown, a task).

        Without a ``request_id`` one is made; the same id again with the same words is the same request. Raises
        ``Refused`` where the sender may not ask this, else as ``send``.
        """
        roster = self.logs.read_roster()
        if isinstance(payload, _ASKS):
            if me == USER:
                raise Refused("the person asks nobody for leave", "requests are an agent's, with --session ID")
            to = authority.lead_of(me, roster)
        elif to is None:
            raise Malformed("nobody to ask", "name the agent with --to")
        else:
            to = roster.find(to).session_id
            if isinstance(payload, messages.ShutdownRequest) or (
                isinstance(payload, messages.TaskAssignment) and payload.plan_required
            ):
                self.refuse_other(me, to, messages.name(payload))
        request_id = payload.request_id or f"{PREFIXES[type(payload)]}-{system.urandom(6).hex()}"
        sent = self.post(me, payload.replace(request_id=request_id), (to,))
        fold = self.plane()
        found = (fold.requests if type(payload) in transitions.FLOWS and not _is_task(payload) else fold.tasks).get(
            request_id
        )
        verdict = fold.verdicts.get(sent.message.id)
        if found is None or (verdict is not None and verdict.outcome == REFUSED):
            raise Refused(
                f"{request_id}: {verdict.why if verdict else 'it vanished'}", "leave the id out for a new one"
            )
        return found

    # -- answering ----------------------------------------------------------------------------------------------------

    def pending(self, me: str, *, everyones: bool = False) -> list[ControlRequest]:
        """The open requests that ``me`` is to decide, oldest first; ``everyones``: that anybody is. Not those whose
        asker waits no longer."""
        now = self.now()
        found = [request for request in self.plane().open_requests() if not overdue(request, now)]
        return [request for request in found if everyones or me in self.deciders(request)]

    def deciders(self, request: ControlRequest) -> list[str]:
        """Who is to decide a request: the worker a shutdown, its lead the rest; the person where there is no lead. Of
        a task: who has it."""
        roster = self.plane().roster
        if request.answerer:
            return roster.heirs(request.answerer) or [request.answerer]
        return [authority.lead_of(request.asker, roster)]

    def answer(self, me: str, word: str, approved: bool, **said: Any) -> ControlRequest:
        """Decide a request. ``said`` are fields of the response's type (``notes``, ``mode``, ``updated_input``,
        ``updates``, ``scope``, ``hosts``; ``pane``, ``backend``, ``reason``).

        The same decision again is no error and changes nothing. Raises ``NotFound``; ``Refused``: who may not decide
        it, what is decided otherwise, what its asker no longer waits for; ``Malformed``.
        """
        request = self.find(word)
        self._refuse_decider(me, request, approved)
        if _stands(request, approved, said):
            return request
        _refuse_decided(request)
        if overdue(request, self.now()):
            raise Refused(
                f"{request.id} was not answered in time; who asked waits no longer",
                "nothing is changed by it now",
                code="too_late",
            )
        sent = self.post(me, _response(request, approved, said), (request.asker,), thread=request.message_id)
        request = self.find(request.id)
        if request.answer_id != sent.message.id and not _stands(request, approved, said):
            _refuse_decided(request)
            self.refuse_unapplied(sent)
        return request

    def _refuse_decider(self, me: str, request: ControlRequest, approved: bool) -> None:
        if request.flow == transitions.TASK:
            raise Refused(f"{request.id} is a task, which nobody approves", "`agent-mailbox send` tells its assignee")
        now = self.plane()
        if (now.may_answer if approved else now.may_deny)(me, request, self.now()):
            if approved and not request.proven:
                raise Refused(
                    f"{request.id} is {UNPROVEN}",
                    f"`agent-mailbox control deny {request.id}`, or have it asked again",
                    code="unverified",
                )
            return
        who = " or ".join(dict.fromkeys([*self.deciders(request), *([] if _is_shutdown(request) else [USER])]))
        why = "no agent decides its own requests" if me == request.asker else f"{me} is not its lead"
        note(self, ControlStep(me, "answer", REFUSED, request.worker, request.id, request.state, request.state, why))
        raise Refused(f"{request.id} is not {me}'s to decide: {why}", f"only {who} may", code="not_lead")

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, me: str, word: str, timeout: float | None, beside: Beside | None = None) -> ControlRequest:
        """Block until the request is decided, at most ``timeout`` seconds; how it stands then.

        If ``me`` asked, the time-out is a decision, appended before this returns: what comes later changes nothing. So
        is that nobody waits for the answer any more (``beside``). Who only looks on decides nothing, and gets an open
        request. Raises ``NotFound``.
        """
        request = self.find(word)
        if _waits(request):
            from ..store import watch  # ctypes, which only who waits needs

            with watch.Watch([self.directory, *(beside.places if beside else ())]) as changes:
                until = watch.deadline(timeout)
                while _waits(request := self.find(request.id)) and not (beside and beside.why()):
                    if not changes.wait(until):
                        break
        if request.is_open and authority.is_same(me, request.asker, self.now(), self.plane().roster):
            request = self.give_up(me, request, beside.why() if beside else "")
        return request

    def give_up(self, me: str, request: ControlRequest, why: str = "") -> ControlRequest:
        """Decide a request of one's own by waiting no longer; how it stands then (an answer may have come first)."""
        if request.is_open:
            response = _response(request, False, {"cause": messages.TIMEOUT, "notes": why})
            to = self.deciders(request)[-1]
            if self.plane().roster.state(to) == DEAD:
                to = USER  # who was to decide is gone: nobody else is left to be told
            self.post(me, response, (to,), thread=request.message_id)
        return self.find(request.id)

    def consume(self, me: str, request: ControlRequest) -> None:
        """Record the answer as read by ``me``, who acted on it: it is not shown as mail once more."""
        from ..core import codec

        if request.answer_id and request.by != me:
            read = Read(message_id=request.answer_id, session_id=me, timestamp=self.now(), via=me)
            self.logs.reads.append([codec.read_line(read)], (), [self.prove(me)])


def overdue(request: ControlRequest, now: int) -> bool:
    """Is the time over until which the asker of an open request said it would wait?"""
    expires = request.payload.expires if isinstance(request.payload, messages.Ask) else None
    return request.is_open and expires is not None and now >= expires


def _waits(request: ControlRequest) -> bool:
    return request.state in transitions.UNFINISHED


def _is_task(payload: Payload) -> bool:
    return transitions.FLOWS.get(type(payload)) == transitions.TASK


def _is_shutdown(request: ControlRequest) -> bool:
    return request.flow == transitions.SHUTDOWN


def _stands(request: ControlRequest, approved: bool, said: dict[str, Any]) -> bool:
    """Is it decided so already, and with what follows from that?"""
    follows = {key: said[key] for key in _FOLLOWS if said.get(key) not in (None, "", ())}
    same = all(getattr(request.answer, key, None) == value for key, value in follows.items())
    return same and request.state == (transitions.APPROVED if approved else transitions.DENIED)


def _refuse_decided(request: ControlRequest) -> None:
    if not request.is_open:
        state = request.state.replace("_", " ")
        raise Refused(
            f"{request.id} is decided: {state}, by {frame.word(request.by)}",
            "the first decision counts; nothing was changed",
            code="decided",
        )


def _response(request: ControlRequest, approved: bool, said: dict[str, Any]) -> Payload:
    """The response of the request's flow; raises ``Malformed`` for a field that it does not have."""
    kinds: dict[str, type[Payload]] = {
        transitions.PLAN: messages.PlanResponse,
        transitions.PERMISSION: messages.PermissionResponse,
        transitions.SANDBOX: messages.SandboxResponse,
        transitions.SHUTDOWN: messages.ShutdownApproved if approved else messages.ShutdownRejected,
    }
    kind = kinds[request.flow]
    given = {key: value for key, value in said.items() if value not in (None, "", ())}
    if request.flow == transitions.SHUTDOWN:
        if "notes" in given:
            given["reason"] = given.pop("notes")
        if approved:
            given.pop("reason", None)
    else:
        given["approved"] = approved
    wrong = [key for key in given if key not in kind._fields]
    if wrong:
        raise Malformed(
            f"the answer to a {request.flow} request has no {wrong[0].replace('_', ' ')}",
            "leave it out",
        )
    payload = kind(request_id=request.id, **given)
    read = message_text.parse(written(payload))  # what the reader would not take is not sent
    if isinstance(read, messages.Unknown):
        raise Malformed(f"no such answer: {read.reason}", "`agent-mailbox control answer --help`")
    return payload
