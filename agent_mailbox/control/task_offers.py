"""The tasks that are open to a session: what of them it was told, and whether one is to wake it.

Belongs here: that memory, among the user's own records. A task counts again each time it is opened.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ..control_plane import task_reports
from ..store.files.board import TASKS, Board
from .task_views import TaskViews

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..mailbox.open_mailbox import OpenMailbox
    from .task_views import TaskView

_TOLD, _WOKEN = ".told-", ".woken-"
"""Beginnings of the names of what was told; no session's id begins with a dot."""


def untold(desk: OpenMailbox, me: str, views: Sequence[TaskView]) -> list[str]:
    """Return names of the tasks that are open to a session and of which it was not told; none if it holds one."""
    if any(one.is_mine for one in views):
        return []
    before = Board(desk.logs.trail, TASKS).read_told(_TOLD + me)
    return [name for name in _open(views) if name not in before]


def _open(views: Sequence[TaskView]) -> list[str]:
    return [f"{one.task.id}@{one.task.moved}" for one in views if one.is_open_to_me]


def note_told(desk: OpenMailbox, me: str) -> None:
    """Record that the session was told of the tasks that are open to it now. One that holds a task was told of none: it
    is told once it holds none."""
    views, board = TaskViews(desk).tasks(me), Board(desk.logs.trail, TASKS)
    if not any(one.is_mine for one in views):
        board.keep_told(_TOLD + me, _open(views))
    board.forget(me)


def tell(desk: OpenMailbox, me: str) -> None:
    """Tell of tasks whose holder ended or is silent, as whoever looks first (``task_reports``)."""
    task_reports.tell(desk, me)


def wakes(desk: OpenMailbox, me: str) -> bool:
    """Return whether a task is to wake this idle session: no other session was woken for it."""
    board = Board(desk.logs.trail, TASKS)
    news = untold(desk, me, TaskViews(desk).tasks(me))
    return any(board.is_first(_WOKEN + sha256(name.encode()).hexdigest()) for name in news)
