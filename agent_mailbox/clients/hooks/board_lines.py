"""The lines about tasks and notes that a session is told: at its turn's beginning, and where it lost its context.

Belongs here: the words, and what of it a session was told before. A title is other people's text, and is in
quotation marks.
"""

from __future__ import annotations

from ...control import task_offers
from ...control.task_views import TaskView, TaskViews
from ...control_plane import task_reports
from ...core import frame
from ...core.control.tasks import BLOCKED
from ...core.text import neutral
from ...errors import MailboxError
from ...mailbox import neighbours
from ...mailbox.noting import Noting
from ...store.files.board import NOTES, TASKS, Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...mailbox.open_mailbox import OpenMailbox

MOST = 5
"""Tasks named in a list; ``task list`` has the rest."""
NOTES_ROOM = 240
"""Characters of the notes' titles: sixty tokens."""


def tell_lines(desk: OpenMailbox, me: str, program: str, *, begins: bool) -> list[str]:
    """Return what the session is told of tasks and notes: as the session ``begins``, or its turn. If these cannot be
    read, that is nothing: its mail matters more, and it is told at its next turn."""
    try:
        if begins:
            return _at_start(desk, me, program)
        task_reports.tell(desk, me)
        return [*neighbours.news(desk, me), *_open_tasks(desk, me, program, TaskViews(desk).tasks(me))]
    except MailboxError:
        return []


def _open_tasks(desk: OpenMailbox, me: str, program: str, found: list[TaskView]) -> list[str]:
    """Return the line about tasks that are open to a session which holds none; empty if it was told of them all."""
    if not task_offers.untold(desk, me, found):
        return []
    return [task_offers.open_line(task_offers.select_open(found), lambda words: f"{program} {words}")]


def _at_start(desk: OpenMailbox, me: str, program: str) -> list[str]:
    """Return what a session is told as it starts, or comes back: the tasks that it holds or may claim, its tags'
    notes."""
    told: list[str] = []
    if Board(desk.logs.stamp_files, TASKS).is_used():
        views = TaskViews(desk).tasks(me)
        mine = [one for one in views if one.is_mine]
        told += _held(mine, program) or _open_tasks(desk, me, program, views)
        task_reports.tell(desk, me)
    if Board(desk.logs.stamp_files, NOTES).is_used():
        told += _notes(desk, me, program)
    return told


def _held(mine: list[TaskView], program: str) -> list[str]:
    lines = []
    for one in mine[:MOST]:
        phase = f", {one.task.phase}" if one.task.phase else ""
        state = f"blocked by {', '.join(map(neutral, one.waits_for))}" if one.state == BLOCKED else one.state + phase
        lines.append(f'{neutral(one.task.id)} ({state}): "{frame.quoted(one.task.title)}"')
    if not lines:
        return []
    more = [f"{len(mine) - MOST} more: {program} task list --mine"] if len(mine) > MOST else []
    return [f"You hold ({program} task show TASK, then task done TASK --summary …):", *lines, *more]


def _notes(desk: OpenMailbox, me: str, program: str) -> list[str]:
    agent = desk.logs.read_roster().get(me)
    noting = Noting(desk)
    mine = [one for one in noting.notes() if agent is not None and {*agent.tags} & {*one.message.recipients}]
    if not mine:
        return []
    named = noting.mentions(mine)
    ranked = sorted(mine, key=lambda one: (-named[one.message.id], -one.message.timestamp))
    head = f"Notes ({program} note show ID): "
    shown, room = [], NOTES_ROOM - len(head)
    for one in ranked:
        title = f'{one.id} "{frame.title(one.message)}"'
        if len(title) + 2 > room:
            break
        shown.append(title)
        room -= len(title) + 2
    more = len(mine) - len(shown)
    return [head + ", ".join(shown) + (f", {more} more" if more else "")]
