"""The task list of a client's own team, read only.

Belongs here: where teams are, and the client's task files (``tasks/TEAM/ID.json``, observed with 2.1.329), as values.
A team's members and any program of the user may write them. So everything is text of others. A field of another type
counts as absent. A team is shown while a bridge of this mailbox serves it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core import codec, naming
from ..core.records import BadLine, Record
from ..known_clients.every_client import USUAL
from ..store.files.small_files import list_names
from ..store.locks import team_lock
from .foreign_fields import read_content, text_under

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..mailbox.open_mailbox import OpenMailbox

MOST = 200
"""Tasks of a team that are looked at, the first by number."""
MAX_FILE = 1 << 16
"""Bytes of a task's file that are read."""
STATES = {"pending": "pending", "in_progress": "in progress", "completed": "done"}
"""The client's states, in our words."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST = 64


class TeamTask(Record):
    """A task of a client's own team. ``tag``: the team's address here. ``owner``: the member's name, empty if none."""

    tag: str
    number: str
    title: str
    state: str
    body: str = ""
    owner: str = ""
    waits_for: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Return the word by which it is shown. No task of ours has such a one: an id holds no colon."""
        return f"{self.tag}/{self.number}"


def teams_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of all teams: ``teams`` in ``CLAUDE_CONFIG_DIR``, else in ``~/.claude``."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(USUAL.find_home({**environ, "HOME": home}), "teams")


def team_names(where: str) -> list[str]:
    """Return the teams that are there now: every directory with a configuration or inboxes."""
    found = [name for name in list_names(where) if not name.startswith(".")]
    return [
        name for name in found if any(os.path.exists(os.path.join(where, name, m)) for m in ("config.json", "inboxes"))
    ]


def served_tasks(desk: OpenMailbox, environ: Mapping[str, str]) -> list[TeamTask]:
    """Return the tasks of the teams that a bridge of this mailbox serves at this moment."""
    if not list_names(desk.logs.cache(team_lock.DIRECTORY)):
        return []
    where = teams_directory(environ)
    served = [name for name in team_names(where) if team_lock.runs(desk.logs, naming.tag(name))]
    return [task for name in served for task in read_tasks(where, name)]


def read_tasks(where: str, name: str) -> list[TeamTask]:
    """Return the tasks of a team, by number. Files of another form are left out."""
    tasks = os.path.join(os.path.dirname(where), "tasks", "".join(char if char in _PLAIN else "-" for char in name))
    numbers = [file.removesuffix(".json") for file in list_names(tasks) if file.endswith(".json")]
    numbers = [one for one in numbers if 0 < len(one) <= _LONGEST and _PLAIN.issuperset(one)]
    numbers.sort(key=lambda one: (not one.isdecimal(), int(one) if one.isdecimal() else 0, one))
    found = (_read_task(os.path.join(tasks, f"{one}.json"), naming.tag(name), one) for one in numbers[:MOST])
    known = {task.number: task for task in found if task is not None}
    over = {number for number, task in known.items() if task.state == STATES["completed"]}
    return [
        task.replace(waits_for=tuple(f"{task.tag}/{one}" for one in task.waits_for if one in known and one not in over))
        for task in known.values()
    ]


def _read_task(path: str, tag: str, number: str) -> TeamTask | None:
    content = read_content(path, MAX_FILE)
    said = BadLine("") if content is None else codec.parse(content.data, MAX_FILE, ours=False)
    if isinstance(said, BadLine):
        return None
    title, state = text_under(said, "subject"), STATES.get(text_under(said, "status") or "")
    more, after = said.get("metadata"), said.get("blockedBy")
    if title is None or state is None or (isinstance(more, dict) and more.get("_internal")):
        return None  # the client hides its own, too
    return TeamTask(
        tag=tag,
        number=number,
        title=title,
        state=state,
        body=text_under(said, "description") or "",
        owner=text_under(said, "owner") or "",
        waits_for=tuple(one for one in after if isinstance(one, str)) if isinstance(after, list) else (),
    )
