"""Handing over: one task that says what a session holds, and takes its tasks along.

Belongs here: what is said, in which order, the work tree in which the command runs, and the step itself. A session's
own command runs git there, where the session may run it itself, and starts no program of a repository. The agent that
claims the handover holds the tasks from then on (``tasking``). A session that cannot write one gives everything back
(``giving_back``).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..control_plane import control_log
from ..core import frame, obligations
from ..core.control import authority, lease_paths, messages
from ..core.control.tasks import HANDOVER
from ..core.text import clipped, neutral, typed
from ..errors import Malformed, Refused
from ..mailbox.noting import Noting
from ..store.files import programs, system
from ..store.files.board import TASKS, Board
from ..store.projection import open_ends
from ..store.user_state import work_trees
from .leasing import Leasing
from .steps import post_message, refuse_unapplied
from .tasking import Tasking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sent
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog
    from .task_views import TaskView

MOST = 20
"""Lines of each list; whoever takes over finds the rest by the command beside it."""
NOTES = 3


def hand_over(
    box: OpenMailbox, me: str, to: Sequence[str], body: str = "", tree: Sequence[str] = ()
) -> tuple[Sent, TaskView]:
    """Add the handover of ``me`` (to its role, else its lead), with the agent's words and lines about its tree. It
    takes the place of an earlier one with the same tasks that nobody claimed.

    Raises as ``add_task``, and ``Refused`` as a task's claim does."""
    tasking = Tasking(box)
    tasking.note_life(me)
    held = [one for one in tasking.views.tasks(me) if one.is_mine]
    words = list(to) or [_find_usual_taker(me, box.logs.read_roster())]
    if any(tasking.stored_address(word) == me for word in words):
        raise Malformed("nobody hands over to itself", "name another agent, a role or a tag with --to")
    tasking.refuse_several(words)
    task_id = f"{HANDOVER}{system.urandom(4).hex()}"
    payload = messages.TaskAssignment(
        request_id=task_id,
        title=f"Take over from {frame.name_of(me, box.logs.read_roster())}",
        instructions=body.strip(),
        context="\n".join([*_list_held(box, me, held), *tree]),
        hands=tuple(one.task.id for one in held),
    )
    Board(box.logs.stamp_files, TASKS).note_use()
    sent = post_message(box, me, payload, words, lasts=True)
    refuse_unapplied(box, sent)
    task = tasking.views.find_task(task_id)
    _end_earlier(tasking, me, task_id)
    if task.answerer:
        tasking.decide_claims(lambda log: _pass_on(log, tasking, me, task_id))
    tasking.offer_open(lambda one: one.task.id == task_id)
    return sent, tasking.views.task(task_id)


def _end_earlier(tasking: Tasking, me: str, latest: str) -> None:
    """Cancel the open handovers of ``me`` whose tasks all go with another one now."""
    views = tasking.views.tasks(me)
    kept = {latest, *(one.task.handed for one in views)}
    for one in views:
        if one.task.hands and one.task.asker == me and not one.holder and one.task.id not in kept:
            with suppress(Refused):  # another step was first
                tasking.cancel_task(me, one.task.id, f"{latest} takes its place")


def _pass_on(log: HeldLog | OrderedLog, tasking: Tasking, me: str, task_id: str) -> Sequence[Message]:
    """Give the tasks to the one agent that the handover is for."""
    fold = control_log.of_request(tasking.box, task_id)
    task = fold.tasks[task_id]
    handed = tasking.list_handed(task, fold, task.answerer, tasking.views.gone_holders(fold))
    return tasking.write_claims(log, me, task.answerer, None, handed)


def _find_usual_taker(me: str, roster: Roster) -> str:
    """Return the first role of an agent, else its lead."""
    agent = roster.get(me)
    if agent is not None and agent.roles:
        return f"role:{agent.roles[0].removeprefix('role:')}"
    return authority.lead_of(me, roster)


# -- what is said -----------------------------------------------------------------------------------------------------


def _list_held(box: OpenMailbox, me: str, held: Sequence[TaskView]) -> list[str]:
    state, now = open_ends.read_asks(box.logs, me, box.config.ttls), box.now()
    owed, asked = obligations.obligations(me, state), obligations.unanswered(me, state)
    leasing = Leasing(box)
    leases = [one for one in leasing.leases() if leasing.holds(me, one)]
    open_requests = [one for one in control_log.of_agents(box, [me]).open_requests() if one.asker == me]
    notes = [one for one in Noting(box).notes() if one.message.sender == me][-NOTES:]

    def mail(message: Message, way: str) -> str:
        who = frame.sender_of(message, state.roster) if way == "from" else frame.target_of(message, state.roster)
        stale = obligations.staleness(message, state, now)
        return f'{frame.short(message.id)} {way} {who}: "{frame.title(message)}"' + (f" ({stale})" if stale else "")

    return [
        *_listed("tasks, yours with this one:", [_task_line(one) for one in held]),
        *_listed("owed answers:", [mail(one, "from") for one in owed]),
        *_listed("asked, and not answered:", [mail(one, "to") for one in asked]),
        *_listed("asked for a decision:", [f"{neutral(one.id)} ({one.flow})" for one in open_requests]),
        *_listed("leases:", [f"{neutral(o.id)} {neutral(lease_paths.shown(o.project, o.paths))}" for o in leases]),
        *_listed("notes:", [f'{one.id} "{frame.title(one.message)}"' for one in notes]),
    ]


def _listed(head: str, lines: Sequence[str]) -> list[str]:
    more = [f"  {len(lines) - MOST} more"] if len(lines) > MOST else []
    return [head, *(f"  {line}" for line in lines[:MOST]), *more] if lines else []


def _task_line(view: TaskView) -> str:
    phase = f", {view.task.phase}" if view.task.phase else ""
    waits = f", waits for {', '.join(map(neutral, view.waits_for))}" if view.waits_for else ""
    return f'{typed(view.task.id)} "{clipped(neutral(view.task.title), 200)}" ({view.task.state}{phase}{waits})'


# -- the work tree ----------------------------------------------------------------------------------------------------


MOST_CHANGED = 40
"""Changed files that are named."""
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_STATUS = ("status", "--porcelain", "--no-renames", "--ignore-submodules=dirty", "-z")
_PATIENCE = 10
"""Seconds for git to look through a large tree."""


def describe_tree(directory: str) -> list[str]:
    """Return the lines about the work tree around a directory; empty outside one of git."""
    top = work_trees.top(directory)
    if top is None:
        return []
    branch = work_trees.branch(top)
    lines = [f"tree: {clipped(neutral(top), 500)}" + (f", on branch {neutral(branch)}" if branch else "")]
    try:
        done = programs.ask([*_GIT, "-C", top, *_STATUS], _PATIENCE)
    except OSError:
        done = None
    if done is None or done.code:
        return [*lines, "changed files: git does not tell them"]
    return [*lines, *_changed([name for name in done.out.decode("utf-8", "replace").split("\0") if name])]


def _changed(names: Sequence[str]) -> list[str]:
    if not names:
        return ["changed files: none"]
    more = [f"  {len(names) - MOST_CHANGED} more"] if len(names) > MOST_CHANGED else []
    return ["changed files:", *(f"  {clipped(neutral(name), 300)}" for name in names[:MOST_CHANGED]), *more]
