"""Asking and answering on the control plane: requests, decisions, waiting for them, modes and policies.

Belongs here: the order of those steps. A message is appended, then the log is asked what became of it: of two that
decide one request at the same instant the log's order says which counts, to everyone alike. The rules are
``core.control``.
"""

from __future__ import annotations

from . import plane
from .core import frame
from .core.address import ALL
from .core.compose import Draft
from .core.control import authority, flows, messages, wire
from .core.control.state import REFUSED, Plane, Request
from .core.records import USER, Read, Record
from .core.roster import DEAD
from .errors import Ambiguous, Malformed, NotFound, Refused
from .plane import Step, note
from .posting import Posting
from .store import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .core.control.messages import Payload
    from .core.control.standing import Policy
    from .core.control.state import Verdict
    from .core.records import Message
    from .posting import Sent

PREFIXES = {
    messages.PlanRequest: "plan",
    messages.PermissionRequest: "perm",
    messages.SandboxRequest: "net",
    messages.ShutdownRequest: "shutdown",
    messages.TaskAssignment: "task",
}
MIN_PREFIX = 4
"""Characters of a request's id that may stand for it, as of a message's."""
_ASKS = (messages.PlanRequest, messages.PermissionRequest, messages.SandboxRequest)


class Standing(Record):
    """What an agent is under: its mode, its policy, whether it waits for a plan's approval, whether it agreed to end;
    who decides for it."""

    session_id: str
    mode: str
    policy: Policy
    waits_for_plan: bool
    is_shut_down: bool
    lead: str


class Control(Posting):
    """The part of the facade that coordinates."""

    def plane(self) -> Plane:
        """The fold of all control messages, up to this moment."""
        return plane.of(self)

    def standing(self, session_id: str) -> Standing:
        """What the agent is under at this moment."""
        now = self.plane()
        return Standing(
            session_id,
            now.mode(session_id),
            now.policy(session_id),
            now.waits_for_plan(session_id),
            now.is_shut_down(session_id),
            authority.lead_of(session_id, now.roster),
        )

    # -- asking -------------------------------------------------------------------------------------------------------

    def request(self, me: str, payload: Payload, *, to: str | None = None) -> Request:
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
                self._refuse_other(me, to, messages.name(payload))
        request_id = payload.request_id or f"{PREFIXES[type(payload)]}-{system.urandom(6).hex()}"
        sent = self.post(me, payload.replace(request_id=request_id), (to,))
        fold = self.plane()
        found = (fold.requests if type(payload) in flows.FLOWS and not _is_task(payload) else fold.tasks).get(
            request_id
        )
        verdict = fold.verdicts.get(sent.message.id)
        if found is None or (verdict is not None and verdict.outcome == REFUSED):
            raise Refused(
                f"{request_id}: {verdict.why if verdict else 'it vanished'}", "leave the id out for a new one"
            )
        return found

    def post(self, me: str, payload: Payload, to: Sequence[str], *, thread: str | None = None) -> Sent:
        """Send one control message. Raises as ``send`` does."""
        roster = self.logs.read_roster()
        agent = roster.get(me)
        payload = payload.replace(
            timestamp=self.now(), agent_id=me, agent_name=(agent.name or "") if agent is not None else ""
        )
        content = wire.written(payload)
        draft = Draft(sender=me, to=tuple(to), content=content, type="control", thread=thread)
        # An answer goes to who asked, whatever the roster says of it by now.
        return self.send_all([draft], answering=to[0] if len(to) == 1 else None)[0]

    def find(self, word: str) -> Request:
        """The request of an id, of its message's id, or of a unique beginning of either; raises ``NotFound`` or
        ``Ambiguous``."""
        fold = self.plane()
        everything = {**fold.tasks, **fold.requests}
        if word in everything:
            return everything[word]
        found = [
            request
            for request in everything.values()
            if len(word) >= MIN_PREFIX and (request.id.startswith(word) or request.message_id.startswith(word))
        ]
        if not found:
            raise NotFound(f"no request {word!r}", "`agent-mailbox control pending` lists those that wait")
        if len(found) > 1:
            shown = ", ".join(request.id for request in found[:5]) + (", …" if len(found) > 5 else "")
            raise Ambiguous(f"{word!r} could be {len(found)} requests", f"write more of the id: {shown}")
        return found[0]

    # -- answering ----------------------------------------------------------------------------------------------------

    def pending(self, me: str, *, everyones: bool = False) -> list[Request]:
        """The open requests that ``me`` is to decide, oldest first; ``everyones``: that anybody is. Not those whose
        asker waits no longer."""
        now = self.now()
        found = [request for request in self.plane().open_requests() if not overdue(request, now)]
        return [request for request in found if everyones or me in self.deciders(request)]

    def deciders(self, request: Request) -> list[str]:
        """Who is to decide a request: the worker a shutdown, its lead the rest; the person where there is no lead. Of
        a task: who has it."""
        roster = self.plane().roster
        if request.answerer:
            return roster.heirs(request.answerer) or [request.answerer]
        return [authority.lead_of(request.asker, roster)]

    def answer(self, me: str, word: str, approved: bool, **said: Any) -> Request:
        """Decide a request. ``said`` are fields of the response's type (``notes``, ``mode``, ``updated_input``,
        ``updates``, ``scope``, ``hosts``; ``pane``, ``backend``, ``reason``).

        The same decision again is no error and changes nothing. Raises ``NotFound``; ``Refused``: who may not decide
        it, what is decided otherwise, what its asker no longer waits for; ``Malformed``.
        """
        request = self.find(word)
        self._refuse_decider(me, request)
        if _stands(request, approved):
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
        if request.answer_id != sent.message.id and not _stands(request, approved):
            _refuse_decided(request)
        return request

    def _refuse_decider(self, me: str, request: Request) -> None:
        if request.flow == flows.TASK:
            raise Refused(f"{request.id} is a task, which nobody approves", "`agent-mailbox send` tells its assignee")
        if self.plane().may_answer(me, request, self.now()):
            return
        who = " or ".join(dict.fromkeys([*self.deciders(request), *([] if _is_shutdown(request) else [USER])]))
        why = "no agent decides its own requests" if me == request.asker else f"{me} is not its lead"
        note(self, Step(me, "answer", REFUSED, request.worker, request.id, request.state, request.state, why))
        raise Refused(f"{request.id} is not {me}'s to decide: {why}", f"only {who} may", code="not_lead")

    def _refuse_other(self, me: str, worker: str, what: str) -> None:
        """Raise ``Refused`` unless ``me`` may command the worker."""
        roster = self.logs.read_roster()
        if authority.commands(me, worker, self.now(), roster):
            return
        lead = authority.lead_of(worker, roster)
        who = USER if lead == USER else f"{lead} or {USER}"
        why = "no agent commands itself" if me == worker else f"{me} is not the lead of {worker}"
        note(self, Step(me, what, REFUSED, worker, cause=why))
        raise Refused(f"{what}: {why}", f"only {who} may", code="not_lead")

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, me: str, word: str, timeout: float | None) -> Request:
        """Block until the request is decided, at most ``timeout`` seconds; how it stands then.

        If ``me`` asked, the time-out is a decision, appended before this returns: what comes later changes nothing.
        Who only looks on decides nothing, and gets an open request. Raises ``NotFound``.
        """
        request = self.find(word)
        if _waits(request):
            from .store import watch  # ctypes, which only who waits needs

            with watch.Watch([self.directory]) as changes:
                until = watch.deadline(timeout)
                while _waits(request := self.find(request.id)) and changes.wait(until):
                    pass
        if request.is_open and authority.is_same(me, request.asker, self.now(), self.plane().roster):
            request = self.give_up(me, request)
        return request

    def give_up(self, me: str, request: Request) -> Request:
        """Decide a request of one's own by waiting no longer; how it stands then (an answer may have come first)."""
        if request.is_open:
            response = _response(request, False, {"cause": messages.TIMEOUT})
            self.post(me, response, (self.deciders(request)[-1],), thread=request.message_id)
        return self.find(request.id)

    def consume(self, me: str, request: Request) -> None:
        """Record the answer as read by ``me``, who acted on it: it is not shown as mail once more."""
        from .core import codec

        if request.answer_id and request.by != me:
            read = Read(message_id=request.answer_id, session_id=me, timestamp=self.now(), via=me)
            self.logs.reads.append([codec.read_line(read)])

    # -- commanding ---------------------------------------------------------------------------------------------------

    def report(self, me: str, word: str, phase: str, text: str) -> Request:
        """Say how far a task is (``phase``: one of ``PHASES``; ``done`` ends it). Raises ``NotFound``, and ``Refused``
        to who was not given it or where it is done."""
        task = self.find(word)
        if task.flow != flows.TASK:
            raise Refused(f"{task.id} is no task", "`agent-mailbox control answer` decides a request")
        if not authority.is_same(me, task.answerer, self.now(), self.plane().roster):
            raise Refused(
                f"{task.id} is {task.answerer}'s task", f"only {task.answerer} reports on it", code="not_yours"
            )
        if task.state == flows.DONE and phase == "done":
            return task
        if task.state == flows.DONE:
            raise Refused(f"{task.id} is done", "what is done stays so; ask for a new task", code="decided")
        done = messages.TaskCompleted(request_id=task.id, summary=text)
        payload = done if phase == "done" else messages.TaskProgress(request_id=task.id, phase=phase, message=text)
        self.post(me, payload, (task.asker,), thread=task.message_id)
        return self.find(task.id)

    def led(self, me: str) -> list[str]:
        """The agents, not dead, that ``me`` decides for."""
        roster = self.logs.read_roster()
        return [a for a, agent in roster.agents.items() if agent.state != DEAD and authority.lead_of(a, roster) == me]

    def log(self) -> list[tuple[Message, Verdict]]:
        """The control messages in log order, each with what became of it."""
        return plane.history(self)

    def set_mode(self, me: str, to: Sequence[str], mode: str) -> Sent:
        """Have agents work in a mode (``to``: ids, names, or ``all`` whom ``me`` leads). ``Refused`` to who does not
        lead them, ``Malformed`` for a mode that cannot be set."""
        try:
            mode = wire.mode(mode)
        except ValueError as error:
            raise Malformed(str(error), f"one of {', '.join(messages.MODES)}") from None
        return self._command(me, to, messages.ModeSet(mode=mode))

    def set_policy(
        self,
        me: str,
        to: Sequence[str],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        hosts: Sequence[str] = (),
        adds: bool = False,
    ) -> Sent:
        """Put agents under rules and hosts, in the place of earlier ones unless ``adds``; raises as ``set_mode``."""
        try:
            rules = [tuple(map(wire.check_rule, given)) for given in (allow, deny)]
        except ValueError as error:
            raise Malformed(str(error), "a rule is Tool or Tool(what), such as Bash(git:*)") from None
        return self._command(
            me, to, messages.PolicyUpdate(allow=rules[0], deny=rules[1], hosts=tuple(hosts), adds=adds)
        )

    def _command(self, me: str, to: Sequence[str], payload: Payload) -> Sent:
        roster = self.logs.read_roster()
        stored = [word if word == ALL else roster.find(word).session_id for word in to]
        for worker in stored:
            if worker != ALL:
                self._refuse_other(me, worker, messages.name(payload))
        return self.post(me, payload, stored)

    def report_idle(self, me: str, reason: str = "available") -> Sent | None:
        """Tell the lead that the agent's turn ended; nothing where it has no lead."""
        agent = self.logs.read_roster().get(me)
        if agent is None or agent.lead is None:
            return None
        lead = authority.lead_of(me, self.logs.read_roster())
        return self.post(me, messages.IdleNotification(reason=reason), (lead,))


def overdue(request: Request, now: int) -> bool:
    """Is the time over until which the asker of an open request said it would wait?"""
    expires = request.payload.expires if isinstance(request.payload, messages.Ask) else None
    return request.is_open and expires is not None and now >= expires


def _waits(request: Request) -> bool:
    return request.state in flows.UNFINISHED


def _is_task(payload: Payload) -> bool:
    return flows.FLOWS.get(type(payload)) == flows.TASK


def _is_shutdown(request: Request) -> bool:
    return request.flow == flows.SHUTDOWN


def _stands(request: Request, approved: bool) -> bool:
    return request.state == (flows.APPROVED if approved else flows.DENIED)


def _refuse_decided(request: Request) -> None:
    if not request.is_open:
        state = request.state.replace("_", " ")
        raise Refused(
            f"{request.id} is decided: {state}, by {frame.word(request.by)}",
            "the first decision counts; nothing was changed",
            code="decided",
        )


def _response(request: Request, approved: bool, said: dict[str, Any]) -> Payload:
    """The response of the request's flow; raises ``Malformed`` for a field that it does not have."""
    kinds: dict[str, type[Payload]] = {
        flows.PLAN: messages.PlanResponse,
        flows.PERMISSION: messages.PermissionResponse,
        flows.SANDBOX: messages.SandboxResponse,
        flows.SHUTDOWN: messages.ShutdownApproved if approved else messages.ShutdownRejected,
    }
    kind = kinds[request.flow]
    given = {key: value for key, value in said.items() if value not in (None, "", ())}
    if request.flow == flows.SHUTDOWN:
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
    read = wire.parse(wire.written(payload))  # what the reader would not take is not sent
    if isinstance(read, messages.Unknown):
        raise Malformed(f"no such answer: {read.reason}", "`agent-mailbox control answer --help`")
    return payload
