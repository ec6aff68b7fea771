"""Tasks on a mailbox: adding, claiming, reporting, giving back and cancelling them.

Belongs here: the order of those steps. A claimer looks and claims under the messages' lock, so a race has one winner
and leaves one line. The rules are ``core.control.tasks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log, task_reports, watch_reports
from ..core import compose, frame, misspelt
from ..core.address import ALL, route
from ..core.compose import Draft
from ..core.control import authority, message_text, messages, transitions
from ..core.control.tasks import BLOCKED, Task
from ..core.control.verdicts import LATE
from ..core.control.watches import TASK
from ..core.records import USER
from ..core.roster import DEAD
from ..core.text import typed
from ..errors import Malformed, NotFound, Refused
from ..mailbox.delivery import Delivery
from ..mailbox.open_mailbox import random_id
from ..store.files import system
from ..store.files.board import TASKS, WATCHED, Board
from .steps import find_known, note_read, post_message, refuse_other, refuse_unapplied
from .task_views import LIST, TaskView, TaskViews

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ..core.control.messages import Payload
    from ..core.control.state import ControlState
    from ..core.records import Message
    from ..mailbox.open_mailbox import OpenMailbox
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog


class Tasking:
    """Keeps the tasks in an opened mailbox; ``views`` finds them."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box
        self.views = TaskViews(box)

    def add_task(self, me: str, to: Sequence[str], payload: messages.TaskAssignment) -> TaskView:
        """Add a task for an agent, or for whoever of a role or tag claims it. Idempotent for the same id and words.

        Raises ``Refused`` for a plan that ``me`` may not require, ``NotFound`` for a task that it is to wait for, and
        as ``send``."""
        if not payload.title.strip():
            raise Malformed("the task has no title", "name it in a few words")
        if not to or any(not word.strip() for word in to):
            raise Malformed("the task is for nobody", "name an agent, a role or a tag with --to")
        self.refuse_several(to)
        roster = self.box.logs.read_roster()
        agent = roster.meant(to[0]) if len(to) == 1 and ":" not in to[0] and to[0] != USER else None
        if payload.plan_required and agent is not None:
            refuse_other(self.box, me, agent.session_id, "task_assignment")
        task_id = payload.request_id or f"task-{system.urandom(4).hex()}"
        needed = [self._find_needed(task_id, word) for word in payload.after]
        after = tuple(dict.fromkeys(one.id for one in needed if one.state != transitions.DONE))
        Board(self.box.logs.stamp_files, TASKS).note_use()
        known = find_known(self.box, payload.request_id)
        made = payload.replace(request_id=task_id, after=after)
        refuse_unapplied(self.box, post_message(self.box, me, made, to, lasts=True, again=known))
        self.offer_open(lambda one: one.task.id == task_id)
        return self.views.task(task_id, me)

    def _find_needed(self, task_id: str, word: str) -> Task:
        """Return a task to wait for, done or not."""
        if word == task_id:
            raise Refused(f"{word} would wait for itself", "leave that --after out")
        task = self.views.find_task(word)
        if task.state == transitions.CANCELLED:
            raise Refused(f"{task.id} is cancelled, and never gets done", "leave that --after out")
        return task

    def claim_task(self, me: str, word: str, holder: str = "", seen: str | None = None) -> TaskView:
        """Claim a task, or give it to ``holder``; the same again is no error.

        Raises ``NotFound``; ``Refused`` if another holds it, also than the holder whom ``me`` has ``seen``, it waits
        for others, or it is not for ``me``."""
        self.note_life(me)
        task = self.views.find_task(word)
        holder = self._living(holder) if holder else me
        before = self.views.task(task.id, me)
        if not (before.holder == holder and task.state == transitions.CLAIMED) or task.hands:
            self.decide_claims(lambda log: self._claim(log, me, holder, task.id, seen))
        found = self.views.task(task.id, me)
        if found.holder != holder:
            if holder != me and self.box.prove(me) is None:
                raise _unproven(f"{task.id} is not given to {holder}: nothing proves that {me} gives it")
            raise self.views.held_error(found)
        return found.replace(already=found.task.claim == before.task.claim and before.holder == holder)

    def claim_next_task(self, me: str, to: str | None = None) -> TaskView:
        """Claim the oldest task that is open to ``me``; ``to``: that is for this address. Raises ``NotFound`` if none
        is."""
        self.note_life(me)
        stored = None if to is None else self.stored_address(to)
        found: list[str] = []

        def act(log: HeldLog | OrderedLog) -> Sequence[Message]:
            fold = control_log.of_tasks(self.box)
            gone = self.views.gone_holders(fold)
            views = (self.views.view_task(task, fold, me, gone) for task in fold.tasks.values())
            one = next((v for v in views if v.is_open_to_me and (stored is None or stored in v.task.to)), None)
            if one is None:
                return ()
            found.append(one.task.id)
            return self._claim(log, me, me, one.task.id)

        self.decide_claims(act)
        if not found:
            raise self._none_open(me, f" for {to}" if to else "")
        return self.views.task(found[0], me)

    def _none_open(self, me: str, which: str) -> NotFound:
        """Return the error that no task is open to ``me``, with what it holds, or whom it may have meant."""
        roster = self.box.logs.read_roster()
        if roster.get(me) is None:
            return misspelt.unknown_agent(me, roster)
        held = [one.task.id for one in self.views.tasks(me) if one.is_mine]
        hint = "`agent-mailbox task list` shows all tasks, and what they wait for"
        if held:
            hint = f"{me} holds {frame.some(held)}: `agent-mailbox task list --mine --session {typed(me)}` has each"
        return NotFound(f"no task{which} is open to {me}", hint, code="nothing_open")

    def note_life(self, me: str) -> None:
        """Take a step as its holder's sign of life. Raises ``Refused`` for the dead: they hold nothing."""
        if me != USER and self.box.logs.read_roster().get(me) is not None:
            Delivery(self.box).check_in(me)

    def _living(self, holder: str) -> str:
        """Return the id of an agent that may be given a task."""
        agent = self.box.logs.read_roster().find(holder)
        if agent.state == DEAD:
            raise Refused(f"{holder} is dead", "`agent-mailbox roster list` lists the living", code="dead")
        return agent.session_id

    def refuse_several(self, to: Sequence[str]) -> None:
        """Raise ``Malformed`` if a task is for several agents alone: only one of them would have it."""
        stored = {self.stored_address(word) for word in to} if len(to) > 1 else set()
        if len(stored) > 1 and not any(":" in one or one == ALL for one in stored):
            raise Malformed("a task is for one agent", "add one for each, or name a role or a tag: then one claims it")

    def stored_address(self, word: str) -> str:
        """Return an address as it is in the log: an agent's id, a role or a tag. Raises ``Malformed`` for none."""
        roster = self.box.logs.read_roster()
        found = compose.resolve((word,), roster, self.box.config.namespaces).recipients
        if not found:
            raise Malformed("an address is empty", "name an agent, a role or a tag with --to")
        return found[0]

    def tasks_for(self, those: Sequence[TaskView], to: str | None) -> list[TaskView]:
        """Return the tasks that are for an address, or held by it; without one, all."""
        stored = None if to is None else self.stored_address(to)
        return [one for one in those if stored in (None, *one.task.to, one.holder)]

    def decide_claims(self, act: Callable[[HeldLog | OrderedLog], Sequence[Message]]) -> None:
        """Claim under the lock, and read the claims that go along with another: they are for nobody else."""
        made = self.box.in_order(self.box.logs.messages).decide(act)
        if made:
            me = made[0].sender
            note_read(self.box, me, dict.fromkeys((one.id for one in made), me))

    def _claim(
        self, log: HeldLog | OrderedLog, me: str, holder: str, task_id: str, seen: str | None = None
    ) -> Sequence[Message]:
        """Append the claim under the lock, if nothing speaks against it, with those of the tasks that it hands over."""
        self.views.refuse_other_holder(task_id, seen)
        fold = control_log.of_request(self.box, task_id)
        task, gone = fold.tasks[task_id], self.views.gone_holders(fold)
        view = self.views.view_task(task, fold, holder, gone)
        handed = self.list_handed(task, fold, holder, gone)
        if view.holder == holder and task.state == transitions.CLAIMED:
            return self.write_claims(log, me, holder, None, handed)  # a torn write may have left one alone
        is_free = view.holder in ("", holder) or (holder != me and self._may_give(me, task, holder))
        if task.is_over or view.waits_for or not is_free:  # who may give it may take it from its holder
            raise self.views.held_error(view)
        self._refuse_stranger(me, holder, view, fold)
        return self.write_claims(log, me, holder, task, handed, view.holder)

    def list_handed(self, task: Task, fold: ControlState, holder: str, gone: Collection[str]) -> list[Task]:
        """Return the tasks that go with a handover to ``holder``: its adder's still, or nobody's."""
        now = self.box.now()

        def goes(one: Task) -> bool:
            has = fold.tasks.holder(one, fold.roster, gone)
            is_left = not has or authority.is_same(has, task.asker, now, fold.roster)
            return not one.is_over and has != holder and is_left

        return [one for one in fold.tasks.handed_by(task) if goes(one)]

    def write_claims(
        self, log: HeldLog | OrderedLog, me: str, holder: str, task: Task | None, along: Sequence[Task], left: str = ""
    ) -> Sequence[Message]:
        """Append the claim of a task, and of those that go ``along``; return the latter: they are in no inbox.

        The first also tells the holder that the task ``left``."""
        made: list[Message] = []
        hearers = tuple(dict.fromkeys((holder, left or holder)))
        for one, to in [*([(task, hearers)] if task else []), *((one, (me,)) for one in along)]:
            payload = messages.TaskClaim(
                request_id=one.id, timestamp=self.box.now(), agent_id=me, holder=holder if holder != me else "",
                over=one.claim if one.answerer else "",
            )  # fmt: skip
            draft = Draft(
                sender=me, to=to, content=message_text.written(payload), type="control", thread=one.message_id
            )
            made.append(compose.message(draft, draft.to, random_id(), self.box.now()))
        if made:
            log.append(map(compose.stored_line, made), {*hearers, me}, [self.box.prove(me)] * len(made))
        return made[len(made) - len(along) :]

    def _refuse_stranger(self, me: str, holder: str, view: TaskView, fold: ControlState) -> None:
        if holder == me:
            is_for_me = view.holder == me or route(view.task.to, fold.roster.reader(me)) is not None
            if is_for_me or self._is_giver(me, view.task):
                return
            to = " or ".join(frame.party(one, fold.roster) for one in view.task.to)
            raise Refused(
                f"{view.task.id} is for {to}, not for {me}",
                "its adder, your lead or the person may give it to you: "
                f"`agent-mailbox task claim {typed(view.task.id)} --for {typed(me)}`",
                code="not_yours",
            )
        if not self._may_give(me, view.task, holder):
            raise Refused(
                f"{me} may not give {view.task.id} to {holder}",
                f"only the person, {view.task.asker} or the lead of {holder} may",
                code="not_lead",
            )

    def _may_give(self, me: str, task: Task, holder: str) -> bool:
        return self._is_giver(me, task) or authority.commands(me, holder, self.box.now(), self.box.logs.read_roster())

    def _is_giver(self, me: str, task: Task) -> bool:
        """Return whether ``me`` gives the task to whom it likes: as its adder, or the person."""
        return me == USER or authority.is_same(me, task.asker, self.box.now(), self.box.logs.read_roster())

    def report(
        self, me: str, word: str, phase: str, text: str, *, artifacts: Sequence[str] = (), errors: Sequence[str] = ()
    ) -> TaskView:
        """Report on a task (``phase``: one of ``PHASES``; ``done`` ends it, with what it made and what went wrong).

        Raises ``NotFound``; ``Malformed`` for artifacts or errors before the end; ``Refused`` if the task is over or is
        not the caller's. It also raises that if the caller's proof is another's, as the person's is."""
        if (artifacts or errors) and phase != "done":
            raise Malformed(f"artifacts and errors do not go with {phase}", "report them with --phase done")
        self.note_life(me)
        view = self.views.task(word, me)
        task = view.task
        if view.holder and not authority.is_same(me, view.holder, self.box.now(), self.box.logs.read_roster()):
            raise Refused(f"{task.id} is {view.holder}'s task", f"only {view.holder} reports on it", code="not_yours")
        if task.state == transitions.DONE and phase == "done":
            return view.replace(already=True)
        self._refuse_step(view)
        if phase == "done" and self.box.prove(me) is None:
            raise _unproven(f"{task.id} is not done: nothing proves that {me} did it")
        if phase == "done":
            payload: Payload = messages.TaskCompleted(
                request_id=task.id, summary=text, artifacts=tuple(artifacts), errors=tuple(errors)
            )
        else:
            payload = messages.TaskProgress(request_id=task.id, phase=phase, message=text)
        is_news = phase == "done" or (phase == BLOCKED and task.phase != BLOCKED)
        to = task_reports.hearer(task, me, self.box.logs.read_roster()) if is_news else me
        self.say_step(me, payload, to, task, f"have {view.holder} itself report: another's word does not count")
        if phase == "done":
            if Board(self.box.logs.stamp_files, WATCHED).has(me):
                watch_reports.of_event(self.box, me, me, TASK, task=task.id)
            self._look_on(me)
            self.offer_open(lambda one: task.id in one.task.after)
        return self.views.task(task.id, me)

    def drop_task(self, me: str, word: str, reason: str, seen: str | None = None) -> TaskView:
        """Give a task back: it is open again. Its adder, its holder's lead and the person may take it back so.

        Raises as ``report``, and for another holder than was ``seen``."""
        self.note_life(me)
        view = self.views.task(word, me)
        task = view.task
        if not task.is_over and not view.holder:
            return view.replace(already=True)
        self._refuse_step(view, even_blocked=True)
        is_mine = authority.is_same(me, view.holder, self.box.now(), self.box.logs.read_roster())
        if not is_mine and not self._may_give(me, task, view.holder):
            raise Refused(
                f"{task.id} is {view.holder}'s task",
                f"{view.holder}, its lead, {task.asker} or the person gives it back",
                code="not_yours",
            )
        to = task_reports.hearer(task, view.holder, self.box.logs.read_roster()) if is_mine else view.holder
        for one in task.hands if is_mine else ():  # what came with a handover goes back with it
            along = self.views.task(one, me)
            if along.is_mine and not along.task.is_over:
                self.say_step(me, messages.TaskDropped(request_id=one, reason=reason), me, along.task, LIST)
        self.say_step(me, messages.TaskDropped(request_id=task.id, reason=reason), to, task, LIST, seen)
        self.offer_open(lambda one: one.task.id == task.id)
        return self.views.task(task.id, me)

    def cancel_task(self, me: str, word: str, reason: str = "", seen: str | None = None) -> tuple[TaskView, list[str]]:
        """Cancel a task; return it, and the ids of those that wait for it. Raises ``Refused`` unless ``me`` added it,
        or commands who did or its holder; and for another holder than was ``seen``."""
        view = self.views.task(word, me)
        task = view.task
        if task.state == transitions.CANCELLED:
            return view.replace(already=True), []
        if task.is_over:
            self._refuse_step(view)
        if not any(self._may_give(me, task, who) for who in (task.asker, view.holder) if who):
            raise Refused(
                f"{task.id} is not {me}'s to cancel",
                f"{task.asker}, its lead or the person cancels it; its holder gives it back by "
                f"`agent-mailbox task drop {typed(task.id)} --reason …`",
                code="not_yours",
            )
        to = view.holder or me
        self.say_step(me, messages.TaskCancelled(request_id=task.id, reason=reason), to, task, LIST, seen)
        if view.holder not in ("", USER):
            self._look_on(view.holder)
        waiting = [one for one in self.views.tasks() if task.id in one.task.after]
        task_reports.tell_stuck(self.box, me, task, [one.task for one in waiting])
        return self.views.task(task.id), [one.task.id for one in waiting]

    def _refuse_step(self, view: TaskView, *, even_blocked: bool = False) -> None:
        task = view.task
        if task.is_over or (view.waits_for and not even_blocked):
            raise self.views.held_error(view)
        if not view.holder:
            claim = f"`agent-mailbox task claim {typed(task.id)}`"
            raise Refused(f"{task.id} is open: nobody holds it", f"claim it first: {claim}", code="not_yours")

    def say_step(self, me: str, payload: Payload, to: str, task: Task, hint: str, seen: str | None = None) -> None:
        """Send one step; one that nobody needs to hear of goes to its writer, as read. Raises ``Refused`` if the step
        has no effect, because another one ended the task meanwhile, too; and for another holder than was ``seen``."""

        def check() -> None:
            self.views.refuse_other_holder(task.id, seen)

        sent = post_message(self.box, me, payload, (to,), thread=task.message_id, check=check)
        if to == me:
            note_read(self.box, me, {sent.message.id: me})
        verdict = refuse_unapplied(self.box, sent, hint)
        if verdict is not None and verdict.outcome == LATE:
            show = f"`agent-mailbox task show {typed(task.id)}` has its history"
            raise Refused(f"this came too late for {task.id}: {verdict.why}", show, code="decided")

    def _look_on(self, agent: str) -> None:
        """Have an agent that holds a task no more told at its next turn of those that are open to it."""
        Board(self.box.logs.stamp_files, TASKS).keep_told(agent, [])
        self.box.logs.stamp_files.try_to_disturb(agent)

    def offer_open(self, which: Callable[[TaskView], bool]) -> None:
        """Have those told at their next turn to whom these tasks are open now."""
        task_reports.offer(
            self.box, [one.task for one in self.views.tasks() if one.state == transitions.OPEN and which(one)]
        )

    def read_assignment(self, me: str, view: TaskView) -> None:
        """Record that the holder was shown what its task says, and read its own claim: nobody else needs them."""
        way = route(view.task.to, self.box.logs.read_roster().reader(me))
        note_read(self.box, me, {view.task.message_id: me if way is None else way.via, view.task.claim: me})


def _unproven(what: str) -> Refused:
    """Return the error for a step that counts only if it is proven who takes it."""
    hint = "say it in a session of a client with our hooks: `agent-mailbox install --list` has them"
    return Refused(what, hint, code="unverified")
