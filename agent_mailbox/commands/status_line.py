"""The status line of a session: its unread mail, the requests for the person, its task.

Belongs here: making the line, and keeping it for the shim (``clients/agent-mailbox-hook``). The shim
prints it again until a log is written. Must not import click.
"""

from __future__ import annotations

import os

from ..clients import client_input
from ..control.requests import Requests
from ..control.task_views import TaskViews
from ..core import frame
from ..core.records import USER, Record
from ..errors import MailboxError
from ..mailbox.delivery import Delivery
from ..mailbox.open_mailbox import OpenMailbox
from ..store.files import small_files, system
from ..store.files.board import TASKS, Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVENT = "StatusLine"
"""The word by which the shim calls us."""
LINES = "lines"
"""The directory of kept lines, below ``.cache``."""
GIVEN = 0.2
"""Seconds without a byte behind which no JSON comes: a client has it ready, a script leaves its own pipe open."""
LONGEST = 600_000
"""Milliseconds that a line counts at most: a process may end, and no log tells."""
MARGIN = 1100
"""Milliseconds by which a kept line is dated earlier, because some shells compare files by the second."""


class StatusLine(Record):
    """The facts of a status line. ``until`` is the time at which it may be another."""

    session_id: str
    unread: int
    waiting: int
    task: str
    phase: str
    until: int

    @property
    def text(self) -> str:
        """Return it as one line."""
        said = [f"✉ {self.unread}"]
        said += [f"{self.waiting} wait{'s' if self.waiting == 1 else ''} for you"] if self.waiting else []
        said += [f"{frame.word(self.task)} {frame.word(self.phase)}"] if self.task else []
        return " · ".join(said)

    def spell_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        task = {"id": self.task, "phase": self.phase} if self.task else None
        return {
            "session": self.session_id,
            "unread": self.unread,
            "waiting": self.waiting,
            "task": task,
            "line": self.text,
        }


def look_up(desk: OpenMailbox, me: str) -> StatusLine:
    """Return a session's line. Nothing is marked as read."""
    now = desk.now()
    unread = Delivery(desk).peek(me)
    waiting = Requests(desk).calling(USER)
    ends = [item.expires_at for item in unread] + [getattr(one.payload, "expires", None) for one in waiting]
    task = phase = ""
    if Board(desk.logs.stamp_files, TASKS).is_used():
        held = next((one for one in TaskViews(desk).tasks(me) if one.is_mine), None)
        task, phase = (held.task.id, held.task.phase or held.state) if held else ("", "")
    until = min([now + LONGEST, *(end for end in ends if end is not None)])
    return StatusLine(me, len(unread), len(waiting), task, phase, until)


def answer_client(directory: str | None) -> str:
    """Return the line of the session that a client's JSON on standard input names, and keep it; empty without one."""
    environ = system.environment()
    try:
        call = client_input.parse_call(EVENT, client_input.read_input(environ), environ, os.getcwd())
        place = client_input.mailbox_of(call, directory, environ)
        if place is None:
            return ""
        desk = OpenMailbox(place, wait=client_input.LOCK_WAIT, environ=environ)
        seen = desk.now() - MARGIN
        found = look_up(desk, call.session_id)
        _keep(desk, found, seen)
    except (MailboxError, OSError):
        return ""
    return f"{found.text}\n"


def named_session() -> str | None:
    """Return the session that a client's JSON on standard input names; None if no JSON is there within a moment."""
    said = client_input.read_input(system.environment(), GIVEN)
    named = said.get("session_id") if isinstance(said, dict) else None
    return named if isinstance(named, str) and named else None


def _keep(desk: OpenMailbox, found: StatusLine, seen: int) -> None:
    """Keep a line, dated ``seen``: the seconds between which it counts, and its text."""
    path = desk.logs.cache(LINES, found.session_id)
    system.make_directory(system.dirname(path))
    said = f"{seen // 1000} {found.until // 1000} {found.text}\n"
    small_files.replace_file(path, said.encode(), durable=False)
    os.utime(path, ns=(seen * 10**6, seen * 10**6))
