"""The state that control messages lead to: their fold in log order.

Belongs here: the state of every request and task; every agent's mode, policy and wait for a plan; the fate of each
message. The first decision on a request counts; repeated, late or contrary ones change nothing. ``authority`` says who
may act, ``transitions`` what follows.

The fold goes by what is proven of a message's writer, never by the sender it names. An unproven message may restrict an
agent if its named sender may: it denies, it holds, it orders a stricter mode. It never allows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .. import proofs
from ..address import ALL
from ..frame import word
from ..records import USER
from ..roster import DEAD
from . import authority, message_text, transitions
from . import messages as m
from .control_requests import ControlRequest, ControlStep, decision_of
from .leases import Leases
from .standing_orders import HOLD, HOSTS, MODE, POLICY, RELEASE, Order, find_hold, find_mode, find_policy, order_ids
from .tasks import Task, Tasks, is_same
from .verdicts import APPLIED, LATE, NOTED, REFUSED, REPEATED, UNKNOWN, UNPROVEN, Verdict
from .watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..records import Message
    from ..roster import Roster
    from .standing_orders import StandingOrders

    Listed = m.LeasePaths | m.LeaseRelease | m.WatchAgent | m.WatchReport | m.WatchEnd

SHUT_DOWN = "shut down at its lead's request"
"""The roster's reason for the death of an agent that agreed to end; it outlives the messages in the live log."""

_OPENING = m.Ask | m.TaskAssignment | m.LeasePaths | m.WatchAgent


class ControlState:
    """The fold. Messages go in by ``apply``, in log order; other mail is skipped. ``parse`` reads a message's content.

    Messages that share neither an id nor a request are folded apart: what concerns one agent needs only its own.
    """

    def __init__(
        self,
        roster: Roster,
        messages: Iterable[Message] = (),
        parse: Callable[[str], m.Payload | m.Unknown] | None = None,
    ) -> None:
        self.roster = roster
        self._parse = parse or message_text.parse
        self._place = 0
        self.requests: dict[str, ControlRequest] = {}
        self.tasks = Tasks()
        self.verdicts: dict[str, Verdict] = {}
        self.idle: dict[str, Message] = {}
        self._orders: list[Order] = []
        self._groups: dict[str, list[str]] = {}
        self._proven: set[str] = set()
        for message in messages:
            self.apply(message)

    @cached_property
    def leases(self) -> Leases:
        """The leases, from the first that is folded or asked for."""
        return Leases(self.roster, self.tasks)

    @cached_property
    def watches(self) -> Watches:
        """The watches, likewise."""
        return Watches(self.roster, self.tasks.done_by)

    # -- questions --------------------------------------------------------------------------------------------------

    def mode(self, session_id: str) -> str:
        """Return the mode the agent works in."""
        return find_mode(self._orders, session_id, self.roster)[0]

    def policy(self, session_id: str) -> StandingOrders:
        """Return the rules and hosts in force for the agent; deny rules go before allow rules."""
        return find_policy(self._orders, session_id, self.roster)[0]

    def waits_for_plan(self, session_id: str) -> bool:
        """Return whether the agent must wait for a plan's approval before it acts."""
        return find_hold(self._orders, session_id, self.roster)[0]

    def is_shut_down(self, session_id: str) -> bool:
        """Return whether the agent agreed to end, at its lead's request, and has not registered again since."""
        agent = self.roster.get(session_id)
        if agent is not None and agent.state == DEAD and agent.reason == SHUT_DOWN:
            return True
        began = agent.again if agent is not None else 0
        return any(
            request.decided is not None
            and request.decided >= began
            and authority.is_same(session_id, request.answerer, request.decided, self.roster, proven=False)
            for request in self.requests.values()
            if request.flow == transitions.SHUTDOWN and request.state == transitions.APPROVED
        )

    def open_requests(self) -> list[ControlRequest]:
        """Return the undecided requests, oldest first."""
        return [request for request in self.requests.values() if request.is_open]

    def is_decided(self, request_id: str, now: int) -> bool:
        """Return whether that is a request, and decided, or a lease, watch or task that is over: none comes back."""
        request = self.requests.get(request_id)
        if request is None:
            is_past = self.leases.is_past(request_id, now) or self.watches.is_past(request_id, now)
            return is_past or self.tasks.is_over(request_id)
        return not request.is_open

    def is_for(self, message: Message, reader: str) -> bool:
        """Return whether an order to all concerns this reader: the sender must lead it. Other mail always does."""
        to_all = ALL in message.recipients and reader not in message.recipients
        ordered = self.verdicts[message.id].kind in (m.ModeSet.kind, m.PolicyUpdate.kind)
        speaker = proofs.speaker(message.proof, message.sender) or message.sender
        return not (to_all and ordered) or authority.commands(
            speaker, reader, message.timestamp, self.roster, proven=False
        )

    def standing(self, now: int) -> frozenset[str]:
        """Return the ids of the messages that still count at ``now`` (see ``groups``)."""
        kept = {*order_ids(self._orders, self.roster), *self.leases.standing(now), *self.watches.standing(now)}
        kept |= self.tasks.standing()
        for request in self.requests.values():
            ending = request.flow == transitions.SHUTDOWN and request.state == transitions.APPROVED
            gone = self.roster.get(request.worker) is not None and not self.roster.heirs(request.worker)
            if (ending or request.state in transitions.UNFINISHED) and not gone:
                kept.add(request.message_id)
        return frozenset(kept)

    def groups(self) -> list[list[str]]:
        """Return message ids that belong together: a request, if it is here, and then all messages about it."""
        return list(self._groups.values())

    # -- the fold -----------------------------------------------------------------------------------------------------

    def apply(self, message: Message) -> Verdict | None:
        """Fold one more message in and return its fate (the same again for the same id); None for other mail.

        A proven message counts even if another program's line had its id before.
        """
        if message.type != "control":
            return None
        proven = proofs.speaker(message.proof, message.sender)
        if message.id in self.verdicts and (proven is None or message.id in self._proven):
            return self.verdicts[message.id]
        if proven is not None:
            self._proven.add(message.id)
        self._place += 1
        payload = self._parse(message.content)
        if isinstance(payload, m.Unknown):
            verdict = Verdict(UNKNOWN, payload.reason, payload.type)
        else:
            # A teammate speaks for itself, though its lead's client writes its messages.
            is_teammate = "@" in message.sender and proven != USER
            speaker = message.sender if proven is None or is_teammate else proven
            step = ControlStep(message, speaker, proven is not None, self._place, self.roster)
            verdict = self._applied(step, payload)
            verdict = verdict.replace(kind=payload.kind, request_id=payload.request_id)
            if payload.request_id:
                group = self._groups.setdefault(payload.request_id, [])
                opens = verdict.outcome == APPLIED and isinstance(payload, _OPENING)
                group.insert(0 if opens else len(group), message.id)
        self.verdicts[message.id] = verdict
        return verdict

    def _applied(self, step: ControlStep, payload: m.Payload) -> Verdict:
        flow, message = payload.flow, step.message
        if proofs.is_bare_word(message.proof) and not _may_only_narrow(payload):
            return step.refused(message.sender, "another machine speaks for its own sessions alone")
        if flow == transitions.TASK:
            return self._task(step, payload)
        if flow:
            return self._asked(step, payload) if isinstance(payload, m.Ask) else self._decided(step, payload)
        if isinstance(payload, m.ModeSet | m.PolicyUpdate):
            return self._ordered(step, payload)
        if isinstance(payload, m.LeasePaths | m.LeaseRelease | m.WatchAgent | m.WatchReport | m.WatchEnd):
            return self._listed(step, payload)
        if isinstance(payload, m.IdleNotification):
            self.idle[message.sender] = message
        return Verdict(NOTED, about=message.sender)

    def _asked(self, step: ControlStep, payload: m.Payload) -> Verdict:
        message, flow = step.message, payload.flow
        known = self.requests.get(payload.request_id) or self.tasks.get(payload.request_id)
        answerer, about = "", message.sender
        if flow == transitions.SHUTDOWN:
            if len(message.recipients) != 1 or message.recipients[0] == ALL or ":" in message.recipients[0]:
                return Verdict(REFUSED, "a shutdown is asked of one agent by its id")
            answerer = about = message.recipients[0]
            if not step.is_proven:
                return step.refused(about, UNPROVEN)
            if not step.commands(answerer):
                return step.refused(about, _why_not(message, about))
        if known is not None:
            if known.asker == message.sender and is_same(known.payload, payload):
                return Verdict(REPEATED, "asked before", about=about)
            return Verdict(REFUSED, "another request has this id", about=about)
        if message.sender == USER and flow != transitions.SHUTDOWN:
            return Verdict(REFUSED, "the person needs no approval", about=about)
        self.requests[payload.request_id] = ControlRequest(
            payload.request_id, flow, message.sender, answerer, payload, message.id, self._place,
            message.timestamp, transitions.OPEN, proven=step.is_proven, proof=message.proof,
        )  # fmt: skip
        return Verdict(APPLIED, "" if step.is_proven else UNPROVEN, after=transitions.OPEN, about=about)

    def _decided(self, step: ControlStep, payload: m.Payload) -> Verdict:
        request = self.requests.get(payload.request_id)
        if request is None:
            return Verdict(REFUSED, "there is no such request")
        about = request.worker
        if payload.flow != request.flow:
            return Verdict(REFUSED, f"it is a {request.flow} request", about=about)
        message, what, table = step.message, decision_of(payload), transitions.ASKED
        if what == m.TIMEOUT:
            if not step.is_by(request.asker):
                return step.refused(about, "only the asker may time its request out")
        elif what == transitions.APPROVE and not (step.is_proven and request.proven):
            return step.refused(about, UNPROVEN)
        elif not request.may_decide(step.speaker, message.timestamp, self.roster, approves=what == transitions.APPROVE):
            return step.refused(about, _why_not(message, about))
        after = table.get((request.state, what))
        if after is None:
            same = table[transitions.OPEN, what] == request.state
            why = f"{request.state} before, by {word(request.by)}"
            return Verdict(REPEATED if same else LATE, why, before=request.state, after=request.state, about=about)
        decided = request.replace(
            state=after, answer=payload, by=step.speaker, answer_id=message.id, decided=message.timestamp,
            answer_proven=step.is_proven, answer_proof=message.proof,
        )  # fmt: skip
        self.requests[request.id] = decided
        if what != m.TIMEOUT:
            self._consequences(decided, step)
        why = "" if decided.answer_proven else UNPROVEN
        return Verdict(APPLIED, why, before=request.state, after=after, about=about)

    def _consequences(self, request: ControlRequest, step: ControlStep) -> None:
        """Carry out a decision's effects beside its request: mode, rules, hosts, the wait for a plan."""
        answer, to = request.answer, request.asker
        if isinstance(answer, m.PlanResponse):
            if answer.approved:
                self._order(step, to, RELEASE, (request.place, answer.mode))
            if answer.mode:
                self._order(step, to, MODE, answer.mode)
        elif isinstance(answer, m.PermissionResponse):
            if answer.mode:
                self._order(step, to, MODE, answer.mode)
            allow, deny = message_text.added_rules(answer.updates) if answer.updates else ((), ())
            if allow or deny:
                self._order(step, to, POLICY, m.PolicyUpdate(allow=allow, deny=deny, adds=True))
        elif isinstance(answer, m.SandboxResponse) and answer.approved and answer.scope == "session":
            asked = request.payload.hosts if isinstance(request.payload, m.SandboxRequest) else ()
            self._order(step, to, HOSTS, answer.hosts or asked)

    def _ordered(self, step: ControlStep, payload: m.Payload) -> Verdict:
        """Apply a mode or a policy: for each agent addressed by its id, or for all that the sender leads."""
        refused, recipients = [], step.message.recipients
        for to in recipients:
            if to != ALL and ":" in to:
                refused.append(f"{word(to)}: only ids and all are taken here, for an agent chooses its own tags")
            elif to != ALL and not step.may_restrict(to):
                refused.append(f"{word(step.speaker)} is not the lead of {word(to)}")
            elif isinstance(payload, m.ModeSet):
                self._order(step, to, MODE, payload.mode)
            else:
                self._order(step, to, POLICY, payload)
        if len(refused) == len(recipients):
            return step.refused(recipients[0], "; ".join(refused))
        why = [] if step.is_proven else [f"{UNPROVEN}, so it only narrows"]
        return Verdict(APPLIED, "; ".join([*why, *refused]), about=recipients[0])

    def _task(self, step: ControlStep, payload: m.Payload) -> Verdict:
        if not isinstance(payload, m.TaskAssignment):
            verdict = self.tasks.take(step, payload)
        else:
            verdict = self.tasks.assign(step, payload, is_taken=payload.request_id in self.requests)
        if verdict.outcome == APPLIED and isinstance(payload, m.TaskAssignment | m.TaskClaim):
            why = self._hold_for_plan(step.message, self.tasks[payload.request_id])
            return verdict.replace(why=why)
        return verdict

    def _hold_for_plan(self, message: Message, task: Task) -> str:
        """Have a task's holder wait for a plan's approval, if its lead required that; return why not."""
        worker = task.answerer
        if not (task.payload.plan_required and worker):
            return ""
        at = message.timestamp
        if not authority.commands(task.adder, worker, at, self.roster, proven=False):
            return "only the lead can make a plan required"
        self._orders.append(Order(self._place, task.adder, at, worker, HOLD, self._place, message.id))
        return ""

    def _listed(self, step: ControlStep, payload: Listed) -> Verdict:
        """Put a lease or a watch on its list, or end it, and return the fate: nothing else follows from it."""
        try:
            done = self._list(step, payload)
        except ValueError as error:
            return Verdict(REFUSED, str(error), about=step.speaker)
        why = "" if step.is_proven or proofs.is_our_job(step.message.proof) else UNPROVEN
        return Verdict(APPLIED if done else REPEATED, why, about=done if isinstance(done, str) else step.speaker)

    def _list(self, step: ControlStep, payload: Listed) -> bool | str:
        """Return whether the entry is new; of one that ended, the agent that had it."""
        if isinstance(payload, m.LeasePaths):
            return self.leases.add(step, payload)
        if isinstance(payload, m.LeaseRelease):
            return self.leases.end(step, payload.request_id)
        if isinstance(payload, m.WatchAgent):
            return self.watches.add(step, payload)
        if isinstance(payload, m.WatchReport):
            return self.watches.report(step, payload)
        return self.watches.end(step, payload.request_id)

    def _order(self, step: ControlStep, to: str, kind: str, value: object) -> None:
        proven = step.is_proven if to == ALL else step.commands(to)
        at, message_id = step.message.timestamp, step.message.id
        self._orders.append(Order(step.place, step.speaker, at, to, kind, value, message_id, proven))


def _why_not(message: Message, about: str) -> str:
    """Return why its sender may not command an agent."""
    sender, whom = word(message.sender), word(about)
    return f"{whom} cannot decide for itself" if sender == whom else f"{sender} is not the lead of {whom}"


def _may_only_narrow(payload: m.Payload) -> bool:
    """Return whether an unproven message of this kind denies or binds at most."""
    if payload.flow in (transitions.PLAN, transitions.PERMISSION, transitions.SANDBOX):
        return isinstance(payload, m.Answer) and payload.cause != m.TIMEOUT
    is_step = (isinstance(payload, m.TaskClaim) and not payload.holder) or isinstance(
        payload, m.TaskDropped | m.TaskProgress
    )
    return is_step or isinstance(payload, m.ModeSet | m.PolicyUpdate | m.TaskAssignment)


def opens(content: str) -> bool:
    """Return whether a control message's body is a request or a task, which precedes all others about it."""
    return isinstance(message_text.parse(content), m.Ask | m.TaskAssignment)
