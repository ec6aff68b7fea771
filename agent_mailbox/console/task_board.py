"""The task board: every task as a card in the column of its state, and the forms that add, give, take back and cancel.

Belongs here: the columns and their filter, of the facade's tasks; a form's fields as one call. A task's
holder alone says how far it is, so the board moves no card by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..clients import team_tasks
from ..clients.team_tasks import TeamTask
from ..control.task_views import TaskView, TaskViews
from ..control.tasking import Tasking
from ..control_plane import control_log
from ..core import compose
from ..core.control import authority, messages, transitions
from ..core.control.tasks import BLOCKED
from ..core.records import USER
from ..core.roster import Roster
from ..errors import Malformed, Refused
from ..known_clients.every_client import USUAL
from ..store.files import system
from . import presenters
from .desk import Looking, Params
from .presenters import Unchanged

COLUMNS = (
    *(transitions.OPEN, transitions.ASSIGNED, transitions.CLAIMED, BLOCKED),
    *(transitions.DONE, transitions.CANCELLED),
)
MOST = 50
"""Cards of a column, the latest; the rest is only counted."""
WRITTEN = ("title", "instructions", "context", "plan_required")
"""The fields of a form that make another task of it."""


def _fill_columns(
    now: Looking, ours: Sequence[TaskView], titles: Mapping[str, str], theirs: Sequence[TeamTask]
) -> Iterator[dict[str, Any]]:
    """Yield the board's columns, the latest task of each first; ``more`` are not shown. ``titles``: of tasks by their
    ids. ``theirs``: tasks of a client's own teams, which stand behind ours."""
    latest = sorted(ours, key=lambda one: (_instant_of(one), one.task.place), reverse=True)
    for state in COLUMNS:
        mine = [one for one in latest if column_state(one) == state]
        others = [one for one in theirs if _team_column(one) == state]
        cards = [_board_card(now, one, titles) for one in mine[:MOST]]
        cards += [_team_card(one, titles) for one in others[: MOST - len(cards)]]
        count = len(mine) + len(others)
        yield {"state": state, "tasks": cards, "count": count, "more": count - len(cards)}


def column_state(view: TaskView) -> str:
    """Return the task's column; a holder that cannot go on is blocked, too."""
    return BLOCKED if view.state == transitions.CLAIMED and view.task.phase == BLOCKED else view.state


def _instant_of(view: TaskView) -> int:
    return view.task.asked if view.task.decided is None else view.task.decided


def _board_card(now: Looking, view: TaskView, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a task in words. ``at``: the instant (ms) of its end, or of its assignment. ``worker``: its holder, or for
    whom it is open. ``waits_for``: the ids and titles of those that block it."""
    task, answer, at, roster = view.task, view.task.answer, _instant_of(view), now.roster
    done = answer if isinstance(answer, messages.TaskCompleted) else messages.TaskCompleted()
    said = (getattr(answer, key, "") for key in ("message", "reason"))
    return {
        "id": task.id,
        "title": presenters.one_line(task.payload.title) or task.id,
        "worker": presenters.party_name(view.holder, roster) if view.holder else view.name_addressees(roster),
        "worker_id": view.holder,
        "asker": presenters.party_name(task.asker, roster),
        "phase": task.phase,
        "told": presenters.one_line(next(filter(None, said), "") or done.summary),
        "artifacts": [*map(presenters.one_line, done.artifacts)],
        "errors": [*map(presenters.one_line, done.errors)],
        "waits_for": [] if task.is_over else _name_blocking(view.waits_for, titles),
        "needs_plan": task.payload.plan_required,
        "is_over": task.is_over,
        "at": at,
        "moment": presenters.local_moment(at, now.mailbox.now()),
        "message_id": task.message_id,
        "client": "",
    }


def _name_blocking(ids: Iterable[str], titles: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(presenters.one_line(one), presenters.one_line(titles.get(one, ""))) for one in ids]


def _team_column(one: TeamTask) -> str:
    waiting = transitions.ASSIGNED if one.owner else transitions.OPEN
    return BLOCKED if one.waits_for else {"pending": waiting, "in progress": transitions.CLAIMED}.get(one.state, "done")


def _team_card(one: TeamTask, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a task of a client's own team in words, which the board only shows. It has no message here, and no moment.
    ``client``: whose it is."""
    return {
        **dict.fromkeys(("worker_id", "phase", "told", "artifacts", "errors", "needs_plan", "at"), ""),
        "id": presenters.one_line(one.id),
        "title": presenters.one_line(one.title),
        "worker": presenters.one_line(one.owner),
        "asker": presenters.channel_label(one.tag),
        "waits_for": _name_blocking(one.waits_for, titles),
        "is_over": True,
        "client": USUAL.title,
    }


def view_board(now: Looking, params: Params) -> dict[str, Any]:
    """Return the board of the live log's tasks: of one lead's agents, or of those with a tag, or of all."""
    roster = now.roster
    lead, tag = params.get("lead", ""), params.get("tag", "")
    tasks = TaskViews(now.mailbox).tasks(USER, everything=True)
    leads = {_lead(one, roster) for one in tasks}
    tags = {held for one in tasks for held in tags_of_worker(one, roster)}
    chosen = [
        one
        for one in tasks
        if (not lead or _lead(one, roster) == lead) and (not tag or tag in tags_of_worker(one, roster))
    ]
    theirs = [] if lead else team_tasks.served_tasks(now.mailbox, system.environment())
    tags |= {one.tag for one in theirs}
    theirs = [one for one in theirs if tag in ("", one.tag)]
    titles = {**{one.task.id: one.task.title for one in tasks}, **{one.id: one.title for one in theirs}}
    living = presenters.living_agents(roster)
    named = sorted(((presenters.party_name(a.session_id, roster), a.session_id) for a in living), key=_by_name)
    roles = {held for agent in living for held in agent.tags}
    return {
        "title": "Tasks",
        "columns": [*_fill_columns(now, chosen, titles, theirs)],
        "leads": sorted(((presenters.party_name(one, roster), one) for one in leads), key=_by_name),
        "tags": sorted((presenters.channel_label(one), one) for one in tags),
        "lead": lead,
        "tag": tag,
        "workers": named,
        "words": presenters.agent_words(living),
        "addresses": sorted((presenters.channel_label(one), one) for one in roles),
        "to": params.get("to", ""),
    }


def _by_name(pair: tuple[str, str]) -> str:
    return pair[0].casefold()


def _lead(view: TaskView, roster: Roster) -> str:
    return authority.lead_of(view.holder, roster) if view.holder else view.task.asker


def tags_of_worker(view: TaskView, roster: Roster) -> tuple[str, ...]:
    agent = roster.get(view.holder)
    return tuple(one for one in view.task.to if ":" in one) if agent is None else agent.tags


def id_of_form(kind: str, fields: Params) -> str:
    """Return the request's id that a form's own number gives, so that a second try is known; empty without one."""
    given = fields.get("message_id", "")
    return f"{kind}-{compose.check_id_form(given)}" if given else ""


def assign_task(now: Looking, fields: Params) -> str:
    """Add a task as the person, for an agent, a role or a tag. A form that is sent twice adds one task."""
    title = fields.get("subject", "").strip()
    payload = messages.TaskAssignment(
        request_id=id_of_form("task", fields),
        title=title,
        instructions=fields.get("body", "").replace("\r\n", "\n").strip(),
        context=fields.get("context", "").replace("\r\n", "\n").strip(),
        plan_required=bool(fields.get("plan")),
        after=tuple(fields.get("after", "").replace(",", " ").split()),
    )
    known = control_log.of(now.mailbox).tasks.get(payload.request_id)
    if known is not None and any(getattr(known.payload, name) != getattr(payload, name) for name in WRITTEN):
        raise Refused(f"this form was sent before, as the task {known.id}", "send it once more for a task of its own")
    task = known or Tasking(now.mailbox).add_task(USER, (fields.get("to", "").strip(),), payload).task
    if not task.answerer:
        return f"The task “{presenters.one_line(title)}” is open to {presenters.one_line(' or '.join(task.to))}."
    return f"{presenters.party_name(task.answerer, now.roster)} has the task “{presenters.one_line(title)}”."


def _task_as_seen(fields: Params) -> tuple[str, str]:
    """Return the form's task, and who held it as the page showed it: the act is refused for another holder."""
    if "holder" not in fields:
        raise Malformed("the page is of an earlier version", "reload it, and look at the task again")
    return fields.get("task", ""), fields["holder"]


def give(now: Looking, fields: Params) -> str:
    """Give a task to an agent, while it has the holder that the person saw."""
    word = fields.get("agent", "").strip()
    if not word:
        raise Malformed("nobody is named who gets the task", "name an agent beside the button")
    task, seen = _task_as_seen(fields)
    view = Tasking(now.mailbox).claim_task(USER, task, word, seen)
    name, title = presenters.party_name(view.holder, now.roster), presenters.one_line(view.task.title)
    return Unchanged(f"{name} has the task “{title}” already.") if view.already else f"{name} has the task “{title}”."


def take_back(now: Looking, fields: Params) -> str:
    """Take a task from the holder that the person saw: it is open again."""
    task, seen = _task_as_seen(fields)
    view = Tasking(now.mailbox).drop_task(USER, task, fields.get("reason", "").strip() or "taken back", seen)
    title = presenters.one_line(view.task.title)
    return Unchanged(f"The task “{title}” is open already.") if view.already else f"The task “{title}” is open again."


def cancel(now: Looking, fields: Params) -> str:
    """Cancel a task, while it has the holder that the person saw."""
    task, seen = _task_as_seen(fields)
    view, waiting = Tasking(now.mailbox).cancel_task(USER, task, fields.get("reason", "").strip(), seen)
    title = presenters.one_line(view.task.title)
    if view.already:
        return Unchanged(f"The task “{title}” is cancelled already.")
    left = f" {len(waiting)} more wait for it, and stay blocked." if waiting else ""
    return f"The task “{title}” is cancelled.{left}"
