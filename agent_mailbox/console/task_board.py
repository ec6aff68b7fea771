"""The task board: every task as a card in the column of its state, and the form that gives one.

Belongs here: the columns and their filter, of the facade's fold; a form's fields as a task. A task's worker alone
reports on it, so the board moves no card by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import compose
from ..core.control import authority, messages, transitions
from ..core.records import USER, Record
from ..core.roster import DEAD
from ..errors import Malformed
from . import presenters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..control.requests import ControlRequest
    from ..core.roster import Roster
    from .desk import Looking
    from .survey import Survey

BLOCKED = "blocked"
COLUMNS = (transitions.ASSIGNED, transitions.WORKING, BLOCKED, transitions.DONE)
MOST = 50
"""Cards of a column, the latest; the rest is only counted."""


class BoardTask(Record):
    """A task in words. ``at``: the instant (ms) of its end, or of its assignment. ``is_gone``: no living agent holds
    it."""

    id: str
    title: str
    worker: str
    worker_id: str
    is_gone: bool
    asker: str
    phase: str
    told: str
    artifacts: tuple[str, ...]
    errors: tuple[str, ...]
    needs_plan: bool
    at: int
    iso: str
    moment: str
    message_id: str


class BoardColumn(Record):
    """The tasks of one state, the latest first; ``more`` are not shown."""

    state: str
    tasks: tuple[BoardTask, ...]
    more: int

    @property
    def count(self) -> int:
        """Return the count of all its tasks."""
        return len(self.tasks) + self.more


def columns(tasks: list[ControlRequest], roster: Roster, now: int) -> list[BoardColumn]:
    """Return the board's columns; the latest task of each is its first."""
    return [_column(state, [task for task in tasks if _state(task) == state], roster, now) for state in COLUMNS]


def _column(state: str, tasks: list[ControlRequest], roster: Roster, now: int) -> BoardColumn:
    latest = sorted(tasks, key=lambda task: (_when(task), task.place), reverse=True)
    return BoardColumn(state, tuple(_task(task, roster, now) for task in latest[:MOST]), max(len(latest) - MOST, 0))


def _state(task: ControlRequest) -> str:
    if task.state == transitions.WORKING and getattr(task.answer, "phase", "") == BLOCKED:
        return BLOCKED
    return task.state


def _when(task: ControlRequest) -> int:
    return task.asked if task.decided is None else task.decided


def _task(task: ControlRequest, roster: Roster, now: int) -> BoardTask:
    asked, answer, at = task.payload, task.answer, _when(task)
    assert isinstance(asked, messages.TaskAssignment)
    heirs = roster.heirs(task.answerer)
    done = answer if isinstance(answer, messages.TaskCompleted) else messages.TaskCompleted()
    return BoardTask(
        id=task.id,
        title=presenters.line(asked.title) or task.id,
        worker=presenters.name(heirs[-1] if heirs else task.answerer, roster),
        worker_id=heirs[-1] if heirs else task.answerer,
        is_gone=not heirs,
        asker=presenters.name(task.asker, roster),
        phase=answer.phase if isinstance(answer, messages.TaskProgress) else "",
        told=presenters.line(getattr(answer, "message", "") or done.summary),
        artifacts=tuple(map(presenters.line, done.artifacts)),
        errors=tuple(map(presenters.line, done.errors)),
        needs_plan=asked.plan_required,
        at=at,
        iso=presenters.iso(at),
        moment=presenters.moment(at, now),
        message_id=task.message_id,
    )


def view(now: Looking, _: Survey, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the board of the live log's tasks: of one lead's agents, or of those with a tag, or of all."""
    roster = now.roster
    lead, tag = params.get("lead", ""), params.get("tag", "")
    tasks = list(now.control.plane().tasks.values())
    leads = {authority.lead_of(task.answerer, roster) for task in tasks}
    tags = {held for task in tasks for held in _tags(task, roster)}
    chosen = [
        task
        for task in tasks
        if (not lead or authority.lead_of(task.answerer, roster) == lead) and (not tag or tag in _tags(task, roster))
    ]
    living = [agent for agent in roster.agents.values() if agent.state != DEAD]
    named = sorted(((presenters.name(a.session_id, roster), a.session_id) for a in living), key=_by_name)
    return {
        "title": "Tasks",
        "columns": columns(chosen, roster, now.mailbox.now()),
        "leads": sorted(((presenters.name(one, roster), one) for one in leads), key=_by_name),
        "tags": sorted((presenters.label(one), one) for one in tags),
        "lead": lead,
        "tag": tag,
        "workers": named,
        "to": params.get("to", ""),
    }


def _by_name(pair: tuple[str, str]) -> str:
    return pair[0].casefold()


def _tags(task: ControlRequest, roster: Roster) -> tuple[str, ...]:
    agent = roster.get(task.answerer)
    return () if agent is None else agent.tags


def once(kind: str, fields: Mapping[str, str]) -> str:
    """Return the request's id that a form's own number gives, so that a second try is known; empty without one."""
    given = fields.get("message_id", "")
    return f"{kind}-{compose.check_id_form(given)}" if given else ""


def assign(now: Looking, fields: Mapping[str, str]) -> str:
    """Give an agent a task as the person. A form that is sent twice gives one task."""
    title = fields.get("subject", "").strip()
    if not title:
        raise Malformed("the task has no title", "name it in a few words")
    payload = messages.TaskAssignment(
        request_id=once("task", fields),
        title=title,
        instructions=fields.get("body", "").replace("\r\n", "\n").strip(),
        context=fields.get("context", "").replace("\r\n", "\n").strip(),
        plan_required=bool(fields.get("plan")),
    )
    known = now.control.plane().tasks.get(payload.request_id)
    task = known or now.control.request(USER, payload, to=fields.get("to", "").strip())
    return f"{presenters.name(task.answerer, now.roster)} has the task “{presenters.line(title)}”."
