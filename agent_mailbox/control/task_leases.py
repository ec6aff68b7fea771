"""The lease that goes with a claimed task: for the files that the task names, until it is over.

Belongs here: taking that lease, and ending it. Another's lease stays: the claimer is told of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.control import lease_paths, messages
from ..core.text import neutral
from ..errors import MailboxError
from ..store.files.edits import Edits
from ..store.user_state import creation, project_paths
from .leasing import Leasing

if TYPE_CHECKING:
    from ..mailbox.open_mailbox import OpenMailbox
    from .task_views import TaskView

MINUTES = 240
"""A lease for a task ends after that, if the task does not."""


def lease_for(desk: OpenMailbox, me: str, view: TaskView, directory: str) -> tuple[list[str], str]:
    """Lease what a task that was just claimed names to its holder. Return the paths, and a line about that."""
    task, top = view.task, creation.root(directory)
    if view.already or task.hands or top is None or not isinstance(task.payload, messages.TaskAssignment):
        return [], ""
    names = project_paths.named_in("\n".join((task.title, task.payload.instructions, task.payload.context)), top)
    if not names:
        return [], ""
    try:
        made = Leasing(desk).lease(me, names, top, MINUTES, task.id)
    except MailboxError as error:
        return [], f"{error.what}\n" if error.code == "leased" else ""
    shown = neutral(lease_paths.shown(made.project, made.paths))
    return list(made.paths), f"leased to you until it is over: {shown}\n"


def end_lease(desk: OpenMailbox, me: str, task_id: str, holder: str) -> None:
    """End the lease of a task's ``holder`` that goes with it, in the name of ``me``."""
    if not Edits(desk.logs).is_leased():
        return
    leasing = Leasing(desk)
    for lease in leasing.leases():
        if lease.note == task_id and lease.proven and leasing.holds(holder, lease):
            try:
                leasing.release_lease(me, lease.id)
            except MailboxError:
                pass  # another's, who may have written anything into it
