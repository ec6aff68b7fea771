"""Asking and answering on the control plane: requests, decisions, waiting for them.

Belongs here: the order of those steps. A message is appended, then the fold tells its outcome. If two decide one
request at the same instant, the log's order says which counts, to everyone alike. The rules are ``core.control``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..control_plane import control_log
from ..control_plane.control_log import note_step
from ..core import frame
from ..core.control import authority, lasting, messages, transitions
from ..core.control.state import SHUT_DOWN
from ..core.control.verdicts import REFUSED, UNPROVEN
from ..core.records import USER, Record
from ..core.roster import DEAD
from ..core.text import filled, typed
from ..errors import Malformed, Refused
from ..store.files import system, watch
from ..store.locks.lock import Patience
from .steps import find_known, find_request, note_read, post_message, refuse_other, refuse_unapplied

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.control.control_requests import ControlRequest
    from ..core.control.messages import Payload
    from ..mailbox.open_mailbox import OpenMailbox

GRACE = 0.5
"""Seconds to wait for a lock at a time-out, to append the decision that follows from it."""
PREFIXES = {
    messages.PlanRequest: "plan",
    messages.PermissionRequest: "perm",
    messages.SandboxRequest: "net",
    messages.ShutdownRequest: "shutdown",
}
_GRANTS = ("updated_input", "updates", "scope", "hosts")
"""The fields of an answer that only an approval has."""
_FOLLOWS = ("mode", *_GRANTS)
"""Fields of an answer that have effects: an answer with others is not the same answer."""
_ASKS = (messages.PlanRequest, messages.PermissionRequest, messages.SandboxRequest)


class WaitAbort(Record):
    """Another end of a wait than a decision: ``why`` returns the reason, empty while there is none. It is asked again
    when a file or directory of ``places`` changes."""

    places: tuple[str, ...]
    why: Callable[[], str]


class Requests:
    """Asks, answers and waits in an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    # -- asking -------------------------------------------------------------------------------------------------------

    def request(self, me: str, payload: Payload, *, to: str | None = None) -> ControlRequest:
        """Ask: a worker its lead (the person, if it has none), a lead its worker (``to``: a shutdown).

        Without a ``request_id`` one is made; idempotent for the same id with the same words. Raises ``Refused`` if the
        sender may not ask this, else as ``send``.
        """
        roster = self.box.logs.read_roster()
        if isinstance(payload, _ASKS):
            if me == USER:
                raise Refused("the person needs no permission", "an agent asks, by this command in its own session")
            to = authority.lead_of(me, roster)
        else:
            to = roster.find(to or "").session_id
            refuse_other(self.box, me, to, payload.kind)
        request_id = payload.request_id or f"{PREFIXES[type(payload)]}-{system.urandom(6).hex()}"
        known = find_known(self.box, payload.request_id)
        sent = post_message(self.box, me, payload.replace(request_id=request_id), (to,), again=known)
        fold = control_log.of_sent(self.box, sent.message.id)
        found = fold.requests.get(request_id, known)
        verdict = fold.verdicts.get(sent.message.id)
        if found is None or (verdict is not None and verdict.outcome == REFUSED):
            raise Refused(
                f"{request_id}: {verdict.why if verdict else 'it vanished'}", "leave the id out for a new one"
            )
        return found

    # -- answering ----------------------------------------------------------------------------------------------------

    def pending(self, me: str, *, everyones: bool = False) -> list[ControlRequest]:
        """Return the open requests that ``me`` is to decide, oldest first; ``everyones``: all open ones. Those whose
        answer would change nothing are left out."""
        now, roster = self.box.now(), self.box.logs.read_roster()
        found = [one for one in control_log.of_open(self.box).open_requests() if not one.why_moot(roster, now)]
        return [request for request in found if everyones or me in request.list_deciders(roster)]

    def calling(self, me: str) -> list[ControlRequest]:
        """Return those of them that call ``me``. One that nothing proves does not: any program may write hundreds."""
        return [request for request in self.pending(me) if request.proven]

    def unanswerable(self) -> list[ControlRequest]:
        """Return the open requests of which no decider can answer: an agent without a client proves nothing."""
        roster = self.box.logs.read_roster()

        def can_answer(who: str) -> bool:
            agent = roster.get(who)
            return who == USER or (agent is not None and agent.client is not None)

        found = self.pending(USER, everyones=True)
        return [one for one in found if not any(map(can_answer, one.list_deciders(roster)))]

    def answer(self, me: str, asked: ControlRequest | str, approved: bool, **said: Any) -> ControlRequest:
        """Decide a request, which ``find`` found, or finds. ``said`` are fields of the response's type (``notes``,
        ``mode``, ``updated_input``, ``updates``, ``scope``, ``hosts``; ``pane``, ``backend``, ``reason``).

        Idempotent for the same decision. Raises ``NotFound``, ``Malformed``, ``BadData``; ``Refused`` if ``me`` may not
        decide it, or if it is decided otherwise or has timed out.
        """
        request = find_request(self.box, asked) if isinstance(asked, str) else asked
        now = self.box.now()
        self._refuse_decider(me, request, approved, now)
        if not request.is_open:
            if _stands(request, approved, said):
                return request
            raise self._decided_error(request)
        if request.has_timed_out(now):
            raise Refused(
                f"{request.id} has timed out{self._when(getattr(request.payload, 'expires', None))}",
                "an answer changes nothing now; the agent may ask again",
                code="too_late",
            )
        try:
            sent = post_message(
                self.box, me, _response(request, approved, said), (request.asker,), thread=request.message_id
            )
        except Refused as error:
            if error.code != "dead_recipient":
                raise
            asker = frame.name_of(request.asker, self.box.logs.read_roster())
            raise Refused(
                f"{request.id} needs no decision: {asker}, who asked, is dead",
                "an answer changes nothing now; `agent-mailbox pending` shows what waits",
                code=error.code,
            ) from None
        request = control_log.of_sent(self.box, sent.message.id).requests.get(request.id) or find_request(
            self.box, request.id
        )
        if request.answer_id != sent.message.id and not _stands(request, approved, said):
            if not request.is_open:
                raise self._decided_error(request)
            refuse_unapplied(self.box, sent)
        return request

    def _refuse_decider(self, me: str, request: ControlRequest, approved: bool, now: int) -> None:
        if request.flow == transitions.TASK:
            raise Refused(f"{request.id} is a task, not a request", "`agent-mailbox send` tells its assignee")
        if request.may_decide(me, now, self.box.logs.read_roster(), approves=approved):
            if approved and not request.proven:
                raise Refused(
                    f"{request.id} is unverified: {UNPROVEN}",
                    f"deny it with `agent-mailbox deny {typed(request.id)}`, or have it asked again",
                    code="unverified",
                )
            return
        deciders = request.list_deciders(self.box.logs.read_roster())
        some = dict.fromkeys([*deciders, *([] if request.flow == transitions.SHUTDOWN else [USER])])
        who = " or ".join("the person" if one == USER else one for one in some)
        why = "no agent decides its own requests" if me == request.asker else f"{me} is not its lead"
        step = {"from": request.state, "to": request.state, "cause": why, "requestId": request.id}
        note_step(self.box, me, "answer", REFUSED, request.worker, step)
        raise Refused(f"{request.id} is not {me}'s to decide: {why}", f"ask {who} to decide it", code="not_lead")

    def _decided_error(self, request: ControlRequest) -> Refused:
        state = request.state.replace("_", " ")
        by = "the person" if request.by == USER else frame.name_of(request.by, self.box.logs.read_roster())
        return Refused(
            f"{request.id} is decided: {state}, by {by}{request.doubt}{self._when(request.decided)}",
            "the first decision counts; send a message to change the agent's course",
            code="decided",
        )

    @staticmethod
    def _when(at: int | None) -> str:
        return "" if at is None else f", {frame.when(at)}"

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, me: str, word: str, timeout: float | None, beside: WaitAbort | None = None) -> ControlRequest:
        """Block until the request is decided, at most ``timeout`` seconds; return the request as it is then.

        If ``me`` asked, a time-out decides the request, and so does the reason that ``beside`` gives. The decision is
        appended before this returns: a later answer changes nothing. A mere onlooker decides nothing, and gets the open
        request. Raises ``NotFound``.
        """
        request = find_request(self.box, word)
        if _waits(request):
            with watch.Watch([self.box.directory, *(beside.places if beside else ())]) as changes:
                until = watch.deadline(timeout)
                while _waits(request := find_request(self.box, request.id)) and not (beside and beside.why()):
                    if not changes.wait(until):
                        break
        if request.is_open and authority.is_same(me, request.asker, self.box.now(), self.box.logs.read_roster()):
            with Patience(GRACE):
                request = self.give_up(me, request, beside.why() if beside else "")
        return request

    def give_up(self, me: str, request: ControlRequest, why: str = "") -> ControlRequest:
        """Decide one's own request by a time-out; return it as it is then (an answer may have come first)."""
        if request.is_open:
            response = _response(request, False, {"cause": messages.TIMEOUT, "notes": why})
            roster = self.box.logs.read_roster()
            to = request.list_deciders(roster)[-1]
            if roster.state(to) == DEAD:
                to = USER  # the decider is gone: only the person is left
            post_message(self.box, me, response, (to,), thread=request.message_id)
        return find_request(self.box, request.id)

    def consume(self, me: str, request: ControlRequest) -> None:
        """Record the answer as read by ``me``, who acted on it: it is not shown again as mail."""
        if request.answer_id and request.by != me:
            note_read(self.box, me, {request.answer_id: me})


def always_updates(request: ControlRequest) -> tuple[Any, ...]:
    """Return the field ``updates`` of an approval for good; raises ``Malformed`` if no narrow rule is suggested."""
    if rules := lasting.offered(request.payload):
        return lasting.updates(rules)
    raise Malformed(
        f"{request.id} suggests no narrow rule to allow always",
        f"approve it this once, or say `agent-mailbox control policy {typed(request.asker)} --add --allow RULE`",
    )


def _waits(request: ControlRequest) -> bool:
    return request.state in transitions.UNFINISHED


def _stands(request: ControlRequest, approved: bool, said: dict[str, Any]) -> bool:
    """Return whether the request has this very decision already, with the same effects."""
    follows = {key: said[key] for key in _FOLLOWS if said.get(key) not in (None, "", ())}
    same = all(getattr(request.answer, key, None) == value for key, value in follows.items())
    return same and request.state == (transitions.APPROVED if approved else transitions.DENIED)


def _response(request: ControlRequest, approved: bool, said: dict[str, Any]) -> Payload:
    """Return the response of the request's flow; raises ``Malformed`` for a field that it does not have."""
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
    else:
        given["approved"] = approved
    word = "approval" if approved else "denial"
    if wrong := [key for key in given if key not in kind._fields or (key in _GRANTS and not approved)]:
        raise Malformed(f"the {word} of a {request.flow} request has no {wrong[0].replace('_', ' ')}", "leave it out")
    if none := [key for key in ("scope", "hosts") if key in given and not getattr(request.payload, "hosts", ())]:
        raise Malformed(f"{request.id} asks for no hosts, so its approval has no {none[0]}", "leave it out")
    return kind(request_id=request.id, **given)


# -- an agreed end ----------------------------------------------------------------------------------------------------


def carry_out_shutdown(desk: OpenMailbox, session_id: str, actor: str, *, pane: str, vouched: bool) -> None:
    """Retire the agent, then start the person's ``[control] cleanup`` without waiting: it may close our own terminal.

    ``vouched``: the user made or named the mailbox; a stranger's configuration starts no program.
    """
    from ..mailbox.registry import Registry  # hooks ask and wait, and end nobody
    from ..store.files import programs

    Registry(desk).end(session_id, "retire", actor, SHUT_DOWN)
    words = desk.own.cleanup
    if not words or not vouched:
        return
    try:
        programs.leave(filled(words, {"session": session_id, "pane": pane, "dir": desk.directory}))
    except OSError:
        pass  # it is retired all the same; a terminal that stays open is the person's to close
