"""Finding tasks in a mailbox, as a reader sees them.

Belongs here: a task's state, holder and what it waits for, at the moment of the question. The steps are ``tasking``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log
from ..core import frame
from ..core.address import describe_unknown, route
from ..core.control import transitions
from ..core.control.tasks import Task
from ..core.records import USER, Record
from ..core.roster import DEAD
from ..core.text import neutral, typed
from ..errors import NotFound, Refused
from .steps import find_request

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.control.state import ControlState
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox

LIST = "`agent-mailbox task list` lists them"
_NEXT = "`agent-mailbox task claim --next`"
CLIENTS_OWN = "team:"
"""The beginning of the word for a task of a client's own team. An id of ours holds no colon."""


class TaskView(Record):
    """A task as a reader sees it at one moment: its state, its holder, the tasks that it waits for.

    ``cancelled``: those of them that never get done. ``hands``: the unfinished tasks that go with a handover."""

    task: Task
    state: str
    holder: str
    waits_for: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    hands: tuple[str, ...] = ()
    is_mine: bool = False
    is_open_to_me: bool = False
    already: bool = False

    def name_addressees(self, roster: Roster) -> str:
        """Return for whom the task is, in words that tell a dead agent from others."""
        dead = {one: " (dead)" for one in self.task.to if roster.state(one) == DEAD}
        return " or ".join(frame.party(one, roster) + dead.get(one, "") for one in self.task.to)


class TaskViews:
    """Finds the tasks of an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def tasks(self, me: str = "", *, everything: bool = False) -> list[TaskView]:
        """Return the tasks that are not over, oldest first, as ``me`` sees them; ``everything``: all live ones."""
        fold = control_log.of(self.box) if everything else control_log.of_tasks(self.box)
        gone = self.gone_holders(fold)
        found = [self.view_task(task, fold, me, gone) for task in fold.tasks.values()]
        return [one for one in found if everything or not one.task.is_over]

    def task(self, word: str, me: str = "") -> TaskView:
        """Return the task of an id, or of a unique beginning; raises ``NotFound``, ``Ambiguous`` or ``Refused``."""
        found = self.find_task(word)
        fold = control_log.of_request(self.box, found.id)
        return self.view_task(fold.tasks.get(found.id, found), fold, me, self.gone_holders(fold))

    def find_task(self, word: str) -> Task:
        """Return the same as it is in the log."""
        if word.startswith(CLIENTS_OWN):
            raise Refused(
                f"{word!r} is a task of a client's own team, which is only shown here",
                "its members claim it and end it by their client's tools; `agent-mailbox send` asks them to",
            )
        try:
            found = find_request(self.box, word)
        except NotFound as error:
            if error.what != describe_unknown("request", word):
                raise
            raise NotFound(describe_unknown("task", word), LIST) from None
        if not isinstance(found, Task):
            raise Refused(f"{found.id} is not a task", "`agent-mailbox pending --all` shows the open requests")
        return found

    def refuse_other_holder(self, task_id: str, seen: str | None) -> None:
        """Raise ``Refused`` if a task that is not over has another holder than was ``seen`` (empty: nobody; None: the
        caller looked at none). Under the log's lock nobody takes it behind that."""
        if seen is None or (view := self.task(task_id)).task.is_over or view.holder == seen:
            return
        title = " ".join(view.task.title.split())
        holder = frame.name_of(view.holder, self.box.logs.read_roster()) if view.holder else "nobody"
        raise Refused(
            f"the task “{neutral(title)}” has changed: {holder} holds it now",
            "nothing was done; look at it again, and decide then",
            code="held",
        )

    def held_error(self, view: TaskView) -> Refused:
        """Return the error for a step that the task's state refuses, with what to do next."""
        task, show = view.task, f"`agent-mailbox task show {typed(view.task.id)}`"
        if task.is_over:
            return Refused(f"{task.id} is {task.state}", f"{show} has its history", code="decided")
        if view.waits_for:
            waits, along = ", ".join(view.waits_for), view.waits_for[-1]
            is_handed = task.id in (self.find_task(along).hands if len(view.waits_for) == 1 else ())
            way = (
                f"it goes along: `agent-mailbox task claim {typed(along)}`" if is_handed else f"claim another: {_NEXT}"
            )
            if view.cancelled:
                waits = f"{', '.join(view.cancelled)}, which is cancelled"
                way = f"{task.asker} has to cancel it, and to add it again without that"
            return Refused(f"{task.id} waits for {waits}", f"{way}; {show}", code="blocked")
        name = frame.name_of(view.holder, self.box.logs.read_roster())
        return Refused(
            f"{task.id} is {name}'s" if view.holder else f"{task.id} could not be claimed",
            f"claim another: {_NEXT}; {show}",
            code="held",
        )

    def gone_holders(self, fold: ControlState) -> set[str]:
        """Return the holders of tasks whose client's process is gone."""
        holders = {task.holder(fold.roster) for task in fold.tasks.values() if not task.is_over}
        return self.box.gone(holders - {"", USER})

    def view_task(self, task: Task, fold: ControlState, me: str, gone: Collection[str]) -> TaskView:
        """Return a task of the fold as ``me`` sees it; ``gone``: the holders that are gone."""
        state, holder = fold.tasks.state(task, fold.roster, gone), fold.tasks.holder(task, fold.roster, gone)
        handover, waits_for = fold.tasks.handover(task, fold.roster, gone), fold.tasks.waits_for(task)
        return TaskView(
            task=task, state=state, holder=holder,
            waits_for=(*waits_for, *([handover] if handover else ())),
            cancelled=tuple(one for one in waits_for if fold.tasks.is_over(one)),
            hands=tuple(one.id for one in fold.tasks.handed_by(task) if not one.is_over),
            is_mine=bool(me) and holder == me,
            is_open_to_me=state == transitions.OPEN and bool(me) and _is_for(task, me, fold.roster),
        )  # fmt: skip

    def has_taker(self, view: TaskView) -> bool:
        """Return whether anybody is there who holds a task or may claim it."""
        roster = self.box.logs.read_roster()
        living = (agent.session_id for agent in roster.agents.values() if agent.state != DEAD)
        return view.state != transitions.OPEN or any(_is_for(view.task, one, roster) for one in living)


def _is_for(task: Task, who: str, roster: Roster) -> bool:
    """Return whether a task is for an agent. A handover is not for its sender."""
    return route(task.to, roster.reader(who)) is not None and not (task.is_handover and task.asker == who)
