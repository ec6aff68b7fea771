"""The tasks that are open to a session: what of them it was told, and whether one is to wake it.

Belongs here: that memory, among the user's own records, and the line that tells of them. A task counts again each time
it is opened. A title is other people's text, and is in quotation marks.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ..core import frame
from ..core.text import neutral, typed
from ..store.files.board import TASKS, Board
from .task_views import TaskViews

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..mailbox.open_mailbox import OpenMailbox
    from .task_views import TaskView

_TOLD, _WOKEN = ".told-", ".woken-"
"""Beginnings of the names of what was told; no session's id begins with a dot."""


def untold(desk: OpenMailbox, me: str, views: Sequence[TaskView]) -> list[str]:
    """Return names of the tasks that are open to a session and of which it was not told; none if it holds one."""
    before = Board(desk.logs.stamp_files, TASKS).read_told(_TOLD + me)
    return [name for name in _names(select_open(views)) if name not in before]


def select_open(views: Sequence[TaskView]) -> list[TaskView]:
    """Return the tasks that are open to a session, oldest first; none if it holds one."""
    return [] if any(one.is_mine for one in views) else [one for one in views if one.is_open_to_me]


def list_open(desk: OpenMailbox, me: str) -> list[TaskView]:
    """Return ``select_open`` of the tasks as they are now."""
    return select_open(TaskViews(desk).tasks(me))


def _names(offered: Sequence[TaskView]) -> list[str]:
    return [f"{one.task.id}@{one.task.moved}" for one in offered]


def open_line(offered: Sequence[TaskView], command: Callable[[str], str]) -> str:
    """Return the line about tasks that are open to a session; ``command`` spells a command of ours."""
    first = offered[0].task
    count = f"{len(offered)} tasks" if len(offered) > 1 else "1 task"
    claim = command(f"task claim {typed(first.id)}")
    return f'{count} open to you; next: {neutral(first.id)} "{frame.quoted(first.title)}": `{claim}`'


def note_told(desk: OpenMailbox, me: str) -> None:
    """Record that the session was told of the tasks that are open to it now. One that holds a task was told of none: it
    is told once it holds none."""
    views, board = TaskViews(desk).tasks(me), Board(desk.logs.stamp_files, TASKS)
    if not any(one.is_mine for one in views):
        board.keep_told(_TOLD + me, _names(select_open(views)))
    board.forget(me)


def note_next(desk: OpenMailbox, me: str, offered: Sequence[TaskView]) -> None:
    """Record that the session was told of these tasks as it ended one: they do not wake it, and one of them wakes no
    other."""
    names = _names(offered)
    if names:
        _takes_wake(desk, names)
        Board(desk.logs.stamp_files, TASKS).keep_told(_TOLD + me, names)


def wakes(desk: OpenMailbox, me: str) -> bool:
    """Return whether a task is to wake this idle session: no other session was woken for it."""
    return _takes_wake(desk, untold(desk, me, TaskViews(desk).tasks(me)))


def _takes_wake(desk: OpenMailbox, news: Sequence[str]) -> bool:
    board = Board(desk.logs.stamp_files, TASKS)
    return any(board.is_first(_WOKEN + sha256(name.encode()).hexdigest()) for name in news)
