"""Giving everything back that a session holds, when it cannot go on: its tasks, and the role mail that it claimed.

Belongs here: that step, and one message about it to each who hears of the tasks. The session stays in the roster: its
quota may come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import task_reports
from ..core import codec, message_reads, obligations
from ..core.control import messages
from ..core.instant import HOUR
from ..core.records import Read
from ..errors import MailboxError
from ..store.files import system
from ..store.files.board import TASKS, Board
from ..store.log.stamps import EVERYONE
from . import task_offers
from .tasking import Tasking

if TYPE_CHECKING:
    from ..core.inbox import InboxState
    from ..core.records import Message
    from ..mailbox.open_mailbox import OpenMailbox
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog
    from .task_views import TaskView


BEGUN = ".giving-"
"""The name, before the session's id, of the note of what is about to be given back: the notice's id, when, and all."""
MAIL = "mail:"
"""Before the id of a message in that note."""


def give_back(box: OpenMailbox, me: str, why: str, *, tells_nothing: bool = True) -> list[str]:
    """Give back the tasks and the claimed role mail of ``me``, and tell who leads it, once. Returns the tasks' ids.

    It is woken for none of them before its next turn. ``tells_nothing``: also if there was nothing to give back.
    A client may end a hook on the way: the next one tells what that one gave back, too.
    """
    tasking, board, name = Tasking(box), Board(box.logs.stamp_files, TASKS), BEGUN + me
    known, now = board.read_told(name), box.now()
    is_lately = len(known) > 1 and known[1].isdigit() and now - int(known[1]) < HOUR
    notice, began, *left = known if is_lately else (system.urandom(16).hex(), str(now))
    views = tasking.views.tasks(me)
    holds = {*(one.task.id for one in views if one.is_mine), *(MAIL + one for one in _list_held_mail(box, me))}
    if holds:
        board.note_use()
        board.keep_told(name, [notice, began, *sorted(holds.union(left))])
    given = {*left} - holds
    given.update(one.task.id for one in views if one.is_mine and _has_dropped(tasking, me, one, why))
    given.update(MAIL + one for one in _give_mail_back(box, me))
    dropped = [one.task for one in views if one.task.id in given]
    mail = sum(one.startswith(MAIL) for one in given)
    if dropped or mail or tells_nothing:
        task_reports.tell_given_back(box, me, dropped, mail, why, notice)
    board.forget(name)
    if dropped:
        ids = {task.id for task in dropped}
        task_reports.offer(box, [one.task for one in tasking.views.tasks() if one.task.id in ids])
        task_offers.note_told(box, me)
    return [task.id for task in dropped]


def _has_dropped(tasking: Tasking, me: str, view: TaskView, why: str) -> bool:
    try:
        tasking.say_step(me, messages.TaskDropped(request_id=view.task.id, reason=why), me, view.task, "")
    except MailboxError:
        return False  # another step was first
    return True


def _list_held_mail(box: OpenMailbox, me: str) -> list[str]:
    """Return the ids of the role mail that the session holds and did not settle."""
    state = box.state()
    owed = {message.id for message in obligations.obligations(me, state)}
    return [one.id for one in state.messages.values() if _is_held(me, one, state, owed)]


def _give_mail_back(box: OpenMailbox, me: str) -> list[str]:
    """Release that mail; return its ids."""
    given: list[str] = []

    def act(log: HeldLog | OrderedLog) -> None:
        given[:] = _list_held_mail(box, me)
        now = box.now()
        records = [Read(message_id=one, session_id=me, timestamp=now, event="release") for one in given]
        log.append(map(codec.spell_read, records), EVERYONE, [box.prove(me)] * len(records))
        log.sync()

    box.giving_back([me]).decide(act)
    return given


def _is_held(me: str, message: Message, state: InboxState, owed: set[str]) -> bool:
    """Return whether that is role mail of the session's which it has yet to settle, or was not seen to see."""
    if not message_reads.is_holder(me, message, state.reads, state.roster):
        return False
    return message.id in owed or any(read.session_id == me for read in state.reads.missed(message))
