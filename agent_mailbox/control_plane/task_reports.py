"""Telling of tasks: who hears of one, and one message about a holder that ended or is silent.

Belongs here: those messages, each sent once, by whoever looks first. The holder's own steps are messages of
``control.tasking``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..core import compose, frame
from ..core.address import ALL, derived_uuid
from ..core.compose import Draft
from ..core.control import authority
from ..core.proofs import STEWARD
from ..core.records import USER
from ..core.roster import DEAD
from ..core.text import clipped, neutral, typed
from ..errors import MailboxError
from ..store.files.board import LONG, TASKS, Board
from ..store.log.stamps import LOOKED
from . import control_log

OPENED, SILENT = ".open-", ".silent-"
"""Beginnings of the names of what was told; no session's id begins with a dot."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.control.tasks import Task
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox


def hearer(task: Task, holder: str, roster: Roster) -> str:
    """Return who hears what becomes of a task: its holder's lead, else who added it, else the person."""
    agent = roster.get(holder)
    if agent is not None and agent.lead not in (None, USER):
        return authority.lead_of(holder, roster)
    if task.asker == USER or "@" in task.asker:
        return task.asker
    heirs = roster.heirs(task.asker)
    return heirs[-1] if heirs else USER


def offer(desk: OpenMailbox, tasks: Iterable[Task]) -> None:
    """Have the hooks of all to whom these tasks are open tell them at their next turn."""
    roster, stamp_files = desk.logs.read_roster(), desk.logs.stamp_files
    board = Board(stamp_files, TASKS)
    for address in dict.fromkeys(address for task in tasks for address in task.to):
        everyone = roster.agents.values() if address == ALL else map(roster.get, roster.heirs(address))
        for agent in roster.carriers(address) if ":" in address else everyone:
            if agent is not None and agent.state != DEAD:
                board.keep_told(agent.session_id, [])
                stamp_files.try_to_disturb(agent.session_id)


def tell(desk: OpenMailbox, me: str) -> None:
    """Tell, in the name of ``me`` who looks, of each task whose holder ended or is silent, if nobody told it before."""
    board = Board(desk.logs.stamp_files, TASKS)
    if not board.is_used() or desk.prove(me) is None:
        return
    board.keep_told(LOOKED, [])
    with suppress(MailboxError):  # whoever looks next tells it
        for key, task, holder, said in _news(desk):
            if not board.read_told(key):
                _send(desk, board, me, task, holder, said, key)
                if key.startswith(OPENED):
                    offer(desk, [task])


def _news(desk: OpenMailbox) -> list[tuple[str, Task, str, str]]:
    """Return what there is to tell: a name for it, the task, its holder, the words."""
    fold, now = control_log.of_tasks(desk), desk.now()
    held = [task for task in fold.tasks.values() if task.answerer and not task.is_over]
    gone = desk.gone({task.answerer for task in held} - {USER}) if held else set()
    found = []
    for task in held:
        claim = _digest(task.claim, str(task.moved))
        if task.answerer == USER:
            continue
        holder = fold.tasks.holder(task, fold.roster, gone)
        if not holder:
            found.append((f"{OPENED}{claim}", task, task.answerer, "its holder ended; the task is open again"))
            continue
        silent = desk.config.task_silent * 60_000
        seen = desk.last_seen([holder]).get(holder, 0)
        if task.state == "claimed" and not fold.tasks.waits_for(task) and now - max(seen, task.moved) >= silent:
            minutes = round((now - max(seen, task.moved)) / 60_000)
            found.append(
                (f"{SILENT}{claim}", task, holder, f"no progress and no turn of its holder for {minutes} minutes")
            )
    return found


def tell_given_back(desk: OpenMailbox, me: str, tasks: Sequence[Task], mail: int, why: str, notice: str) -> None:
    """Tell, once each, who hears of a session that it cannot go on, and what it gave back: its lead, else who added
    the tasks. ``notice`` tells one end from another: the same told again under it is one message."""
    roster = desk.logs.read_roster()
    told: dict[str, list[Task]] = {authority.lead_of(me, roster): []}
    for task in tasks:
        told.setdefault(hearer(task, me, roster), []).append(task)
    for to, theirs in told.items():
        if to != me:
            parts = [*map(_named, theirs)]
            parts += [f"{mail} message{'s' * (mail != 1)} to its roles"] if mail else []
            back = f" It gave back: {', '.join(parts)}." if parts else ""
            content = f"{frame.name_of(me, roster)} cannot go on: {clipped(neutral(why), 200)}.{back}"
            draft = Draft(sender=me, to=(to,), content=content, subject="Its quota ended", type="notification")
            append_notice(desk, draft, derived_uuid(notice, to, *parts))


def tell_stuck(desk: OpenMailbox, me: str, cancelled: Task, waiting: Sequence[Task]) -> None:
    """Tell, in the name of ``me`` who cancelled a task, who hears of each that waits for it: it never opens."""
    roster = desk.logs.read_roster()
    for task in waiting:
        to = hearer(task, task.holder(roster), roster)
        if to != me:
            said = (
                f" waits for {cancelled.id}, which is cancelled: it never opens. "
                f"`agent-mailbox task cancel {typed(task.id)}` ends it; then add it again without that."
            )
            with suppress(MailboxError):  # it is cancelled all the same, and whoever looks at the task is told
                draft = _draft_about(task, me, to, said)
                append_notice(desk, draft, derived_uuid("stuck", task.id, cancelled.id))


def _named(task: Task) -> str:
    return f"{task.id} ({clipped(neutral(task.title), 80)})"


def _draft_about(task: Task, sender: str, to: str, said: str) -> Draft:
    """Return a notification in the thread of a task; it begins with the task."""
    return Draft(
        sender=sender, to=(to,), content=_named(task) + said, subject=f"Task {task.id}", type="notification",
        thread=task.message_id,
    )  # fmt: skip


def _digest(*words: str) -> str:
    from hashlib import sha256  # 4 ms, which most turns of a watched agent are spared

    return sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _send(desk: OpenMailbox, board: Board, me: str, task: Task, holder: str, said: str, key: str) -> None:
    """Send it, unless another process was first.

    A look that failed or was killed on the way left no word under the key: the next one sends it. The message's id is
    made from the key, so a line that was written twice is one message. A month later it is another."""
    roster = desk.logs.read_roster()
    to = hearer(task, holder, roster)
    sender = STEWARD if me == to else me
    name = frame.name_of(holder, roster)
    draft = _draft_about(task, sender, to, f", held by {name}: {said}. `agent-mailbox task show {typed(task.id)}`")

    def is_wanted() -> bool:
        if board.read_told(key):
            return False
        board.keep_told(key, [])
        return board.has(key)  # else each look would write a line

    append_notice(desk, draft, derived_uuid(key, str((desk.now() - task.moved) // LONG)), is_wanted)
    board.keep_told(key, ["sent"])


def append_notice(
    desk: OpenMailbox, draft: Draft, message_id: str, is_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Append a message to one reader, if it is still wanted once the lock is held (sending is a floor above this)."""
    line = compose.stored_line(compose.message(draft, draft.to, message_id, desk.now()))
    (to,), proof = draft.to, desk.prove(draft.sender)
    readers = {to, *desk.logs.read_roster().heirs(to)}
    desk.in_order(desk.logs.messages).decide(lambda log: log.append([line], readers, [proof]) if is_wanted() else None)
