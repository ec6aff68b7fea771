"""Tasks: what one is, and their fold in log order.

Belongs here: who may take which step with a task, and its state for a reader. The log's order alone decides. The first
claim counts, and a later one takes the place of just that claim which it names. So a task has one holder, everywhere
alike. Whether a holder has ended is the roster's to say, at the moment of the question (``Task.holder``).

Nothing that its writer could not be proven to have written closes a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import proofs
from ..address import DIRECT
from ..frame import word
from ..records import USER
from ..roster import DEAD
from . import authority, transitions
from .control_requests import ControlRequest, ControlStep
from .messages import (
    Payload,
    TaskAssignment,
    TaskCancelled,
    TaskClaim,
    TaskCompleted,
    TaskDropped,
    TaskProgress,
)
from .verdicts import APPLIED, LATE, NOTED, REFUSED, REPEATED, UNPROVEN, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..roster import Roster

HANDOVER = "handover-"
"""The beginning of the id of a task by which a session hands over what it holds."""
BLOCKED = "blocked"
"""The state of a task that waits for others, and the phase of one whose holder cannot go on."""


class Task(ControlRequest):
    """A task. ``asker`` added it, ``answerer`` holds it (empty: nobody).

    ``to``: its addresses. ``claim``: the message by which its holder has it. ``moved``: the instant (ms) of that, or of
    the latest progress. ``phase``: the latest that its holder told. ``held_proven``: is it proven who holds it?
    ``handed``: the latest task by which its holder hands it over. ``adder``: who spoke when it was added.
    """

    payload: TaskAssignment
    to: tuple[str, ...] = ()
    claim: str = ""
    moved: int = 0
    phase: str = ""
    held_proven: bool = True
    handed: str = ""
    adder: str = ""

    @property
    def is_open(self) -> bool:
        """Return False: a task needs no decision."""
        return False

    @property
    def is_over(self) -> bool:
        """Return whether it is done or cancelled."""
        return self.state not in transitions.UNFINISHED

    @property
    def title(self) -> str:
        """Return what it is called."""
        return self.payload.title

    @property
    def after(self) -> tuple[str, ...]:
        """Return the tasks that must be done before."""
        return self.payload.after

    @property
    def is_handover(self) -> bool:
        """Return whether by it a session hands over what it holds, be that tasks or none."""
        return bool(self.hands) or self.id.startswith(HANDOVER)

    @property
    def hands(self) -> tuple[str, ...]:
        """Return the tasks that go to who claims it: it hands them over."""
        return self.payload.hands

    def list_deciders(self, roster: Roster) -> list[str]:
        """Return its holder."""
        return [holder] if (holder := self.holder(roster)) else []

    def holder(self, roster: Roster) -> str:
        """Return the agent that holds it now: the claimer, or who has its place; empty if nobody does.

        A holder that is dead, or whose client is recorded as ended, holds nothing; nor does one that came back from
        the dead.
        """
        if roster.get(self.answerer) is None or self.is_over:
            return self.answerer
        successors = [one for one in roster.heirs(self.answerer) if self.answerer in roster.estate(one)]
        now = roster.get(successors[-1]) if successors else None
        return "" if now is None or now.has_ended or now.returned > self.moved else now.session_id

    def is_left_by(self, holder: str, when: int, roster: Roster) -> bool:
        """Return whether its holder came back from the dead before an instant (ms): it may claim the task again."""
        agent = roster.get(holder)
        return agent is not None and self.moved < agent.returned <= when


class Tasks(dict[str, Task]):
    """The fold: every task by its id."""

    # -- questions ----------------------------------------------------------------------------------------------------

    def state(self, task: Task, roster: Roster, gone: Collection[str] = ()) -> str:
        """Return the state as a reader sees it. ``gone``: agents whose client is gone, though no record says so."""
        if task.is_over:
            return task.state
        if self.waits_for(task):
            return BLOCKED
        if not self.holder(task, roster, gone):
            return BLOCKED if self.handover(task, roster, gone) else transitions.OPEN
        return task.state

    def holder(self, task: Task, roster: Roster, gone: Collection[str] = ()) -> str:
        """Return its holder at this moment; empty if it is open."""
        holder = task.holder(roster)
        return "" if holder in gone and not task.is_over else holder

    def waits_for(self, task: Task) -> list[str]:
        """Return the tasks that are not done, and that must be done before it."""
        return [one for one in task.after if one not in self or self[one].state != transitions.DONE]

    def handed_by(self, handover: Task) -> list[Task]:
        """Return the tasks that go with a handover: those whose holder added it, and added no later one."""
        return [self[one] for one in handover.hands if one in self and self[one].handed == handover.id]

    def handover(self, task: Task, roster: Roster, gone: Collection[str] = ()) -> str:
        """Return the handover that nobody took yet, and whose taker gets the task; empty for one that has a holder."""
        by = self.get(task.handed)
        is_waiting = by is not None and not by.is_over and not self.holder(by, roster, gone)
        return by.id if by is not None and is_waiting and not self.holder(task, roster, gone) else ""

    def _open_blockers(self, task: Task) -> list[str]:
        """Return those that are known here: of an archived task the others are not."""
        return [one for one in self.waits_for(task) if one in self]

    def _leads_to(self, task_id: str, after: Iterable[str]) -> bool:
        """Return whether one of these tasks waits for that task, if only through others."""
        left, seen = [*after], set[str]()
        while left:
            if (one := left.pop()) == task_id:
                return True
            if one in self and one not in seen:
                seen.add(one)
                left += self[one].after
        return False

    def is_over(self, task_id: str) -> bool:
        """Return whether a task is done or cancelled."""
        return task_id in self and self[task_id].is_over

    def done_by(self, task_id: str) -> str:
        """Return who did a task; empty for one that is not done."""
        return self[task_id].answerer if task_id in self and self[task_id].state == transitions.DONE else ""

    def standing(self) -> set[str]:
        """Return the assignments that stay live: of tasks that are not over, and those that these wait for."""
        left = [task for task in self.values() if not task.is_over]
        needed = {one for task in left for one in task.after if one in self}
        return {task.message_id for task in left} | {self[one].message_id for one in needed}

    def over(self) -> set[str]:
        """Return the assignments of tasks that are over."""
        return {task.message_id for task in self.values() if task.is_over}

    # -- the fold -----------------------------------------------------------------------------------------------------

    def assign(self, step: ControlStep, payload: TaskAssignment, *, is_taken: bool) -> Verdict:
        """Fold a new task in. ``is_taken``: a request has its id."""
        message, known = step.message, self.get(payload.request_id)
        if known is not None or is_taken:
            again = known is not None and known.asker == message.sender and is_same(known.payload, payload)
            return Verdict(REPEATED if again else REFUSED, "this task is there already")
        if self._leads_to(payload.request_id, payload.after):
            return Verdict(REFUSED, "it would wait for itself", about=message.sender)
        direct = all(step.roster.mode(stored) == DIRECT for stored in message.recipients)
        worker = message.recipients[0] if direct else ""
        state = transitions.ASSIGNED if direct else transitions.OPEN
        task = Task(
            payload.request_id, transitions.TASK, message.sender, worker, payload, message.id, step.place,
            message.timestamp, state, proven=step.is_proven, proof=message.proof,
            to=message.recipients, claim=message.id if direct else "", moved=message.timestamp, adder=step.speaker,
        )  # fmt: skip
        self[task.id] = task
        for one in payload.hands:
            if one in self and self._is_holder_s(step, self[one]):
                self[one] = self[one].replace(handed=task.id)
        return Verdict(APPLIED, after=task.state, about=worker or message.sender)

    def _is_holder_s(self, step: ControlStep, task: Task) -> bool:
        """Return whether a step is its holder's own, as far as that one's steps are proven."""
        return (step.is_proven or not _is_kept(task, step.roster)) and step.is_by_holder(task.answerer)

    def take(self, step: ControlStep, payload: Payload) -> Verdict:
        """Fold a step of a task in."""
        task = self.get(payload.request_id)
        if task is None:
            return Verdict(NOTED, "of a task that was not assigned here", about=step.message.sender)
        after = transitions.TASKS.get((task.state, payload.kind))
        if proofs.is_bare_word(step.message.proof) and not self._is_elsewhere(step, step.speaker):
            return step.refused(step.speaker, "another machine speaks for its own sessions alone")
        if task.is_over:
            return Verdict(LATE, f"the task is {task.state}", before=task.state, after=task.state)
        if isinstance(payload, TaskCancelled):
            verdict = self._cancelled(step, task)
        elif isinstance(payload, TaskClaim):
            verdict = self._claimed(step, task, payload)
        else:
            verdict = self._moved(step, task, payload)
        if verdict is not None:
            return verdict.replace(before=task.state, after=task.state)
        self[task.id] = self._after(step, task, payload, after or task.state)
        return Verdict(APPLIED, before=task.state, after=after, about=self[task.id].answerer or task.asker)

    def _after(self, step: ControlStep, task: Task, payload: Payload, state: str) -> Task:
        now = {"state": state, "answer": payload, "by": step.message.sender, "moved": step.message.timestamp}
        if isinstance(payload, TaskClaim):
            now |= {"answerer": payload.holder or step.speaker, "claim": step.message.id, "phase": ""}
            now |= {"held_proven": step.is_proven or self._is_elsewhere(step, step.speaker)}
        elif isinstance(payload, TaskDropped):
            now |= {"answerer": "", "claim": "", "phase": ""}
        elif isinstance(payload, TaskProgress):
            now |= {"phase": payload.phase}
        else:
            now |= {"decided": step.message.timestamp, "answer_id": step.message.id}
        return task.replace(**now)

    def _claimed(self, step: ControlStep, task: Task, payload: TaskClaim) -> Verdict | None:
        """Return why a claim does not count; None if it does."""
        holder = payload.holder or step.speaker
        is_known = holder == USER or step.roster.has_client(holder)
        if not step.is_proven and is_known and not self._is_elsewhere(step, holder):
            return step.refused(holder, UNPROVEN)
        if not step.is_by(holder) and not self._may_give(step, task, holder):
            return step.refused(holder, f"{word(step.speaker)} cannot claim for {word(holder)}")
        names = bool(payload.over) and payload.over == task.claim
        by = self.get(task.handed)
        comes_along = by is not None and step.is_by_holder(by.answerer)
        if (waits := self._open_blockers(task)) and not (step.is_proven and (names or comes_along)):
            return Verdict(REFUSED, f"it waits for {', '.join(map(word, waits))}", about=holder)
        if not task.answerer:
            return None
        when = step.message.timestamp
        is_its_own = authority.is_same(holder, task.answerer, when, step.roster)
        if is_its_own and not task.is_left_by(holder, when, step.roster):
            is_begun = task.state == transitions.CLAIMED
            return Verdict(REPEATED, "it is the holder's already", about=holder) if is_begun else None
        takes_over = names and (step.is_proven or self._is_from_away(step, task, holder))
        if task.held_proven and not takes_over:
            return Verdict(LATE, f"{word(task.answerer)} holds it", about=holder)
        return None if names or step.is_proven else Verdict(LATE, f"{word(task.answerer)} holds it", about=holder)

    def _is_elsewhere(self, step: ControlStep, holder: str) -> bool:
        """Return whether another machine says this of a session of its own, and nobody confirmed its key here yet. Such
        a claim keeps others from the task, as a claim of role mail does. It ends the hold of nobody who was there."""
        agent, proof = step.roster.get(holder), step.message.proof
        if agent is None or agent.home is None or proof is None or proofs.proves(proof):
            return False
        return proofs.machine(proof) in (None, agent.home)  # without one, its sender is of its machine

    def _is_from_away(self, step: ControlStep, task: Task, holder: str) -> bool:
        """Return whether a session of another machine takes the task from one that was away at that instant."""
        before, when = step.roster.get(task.answerer), step.message.timestamp
        if before is None or not self._is_elsewhere(step, holder):
            return False
        is_frozen = any(since <= when and (until is None or when < until) for since, until in before.frozen)
        return is_frozen or task.moved < before.returned or (before.state == DEAD and before.changed <= when)

    def _may_give(self, step: ControlStep, task: Task, holder: str) -> bool:
        """Return whether the speaker may give the task to another agent: the person, its adder or holder, the agent's
        lead."""
        own = step.is_by(task.asker) or step.is_by_holder(task.answerer)
        return step.is_proven and (step.speaker == USER or own or step.commands(holder))

    def _cancelled(self, step: ControlStep, task: Task) -> Verdict | None:
        is_adder = step.is_by(task.asker) and (step.is_proven or not task.proven)
        if is_adder or step.commands(task.asker) or (task.answerer and step.commands(task.answerer)):
            return None
        why = "only who added it, its lead or the person cancels it"
        return step.refused(task.answerer or task.asker, why if step.is_proven else UNPROVEN)

    def _moved(self, step: ControlStep, task: Task, payload: Payload) -> Verdict | None:
        """Return why its holder's step does not count; None if it does."""
        if not task.answerer:
            return step.refused(task.asker, "nobody holds it: claim it first")
        is_adder = step.is_proven and step.is_by(task.asker)
        if isinstance(payload, TaskDropped) and (is_adder or step.commands(task.answerer)):
            return None
        needs_proof = _is_kept(task, step.roster) and not self._is_elsewhere(step, task.answerer)
        if not step.is_proven and (needs_proof or isinstance(payload, TaskCompleted)):
            return step.refused(task.answerer, UNPROVEN)
        if not step.is_by_holder(task.answerer):
            return step.refused(task.answerer, f"the task is {word(task.answerer)}'s")
        if not isinstance(payload, TaskDropped) and (waits := self._open_blockers(task)):
            return Verdict(REFUSED, f"it waits for {', '.join(map(word, waits))}", about=task.answerer)
        return None


def _is_kept(task: Task, roster: Roster) -> bool:
    """Return whether it is proven who holds a task, or a client's session does: an unproven step changes nothing."""
    return (task.state == transitions.CLAIMED and task.held_proven) or roster.has_client(task.answerer)


def is_same(one: Payload, other: Payload) -> bool:
    """Return whether two messages ask the same, whenever each was written."""
    return type(one) is type(other) and {**one.__dict__, "timestamp": None} == {**other.__dict__, "timestamp": None}
