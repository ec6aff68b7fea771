"""Teams on the disk, as we read them: directories, configurations, inboxes, the lead's process.

Belongs here: the client's places (observed with 2.1.329), and reading files that others rewrite meanwhile. Everything
here only reads, and takes no lock, as the client's own readers.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import Ambiguous, NotFound
from ..known_clients.every_client import USUAL
from ..store.files.small_files import list_names
from . import configuration
from . import format as form
from .configuration import TeamConfiguration
from .fields import Unfit
from .format import Inbox

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE = 64 << 20
"""Most bytes of an inbox that are read: far more than any the client still gets through."""
_RACY = 100_000_000
"""Nanoseconds: a file written so lately may change again under the same time, so its stamp is not trusted."""
_TRIES = 5

Stamp = tuple[int, int, int]


class Content(Record):
    """A file as it was read. ``stamp``: (inode, mtime in ns, size); None: read it again next time."""

    data: bytes
    stamp: Stamp | None


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


def find_team(where: str, wanted: str) -> TeamConfiguration:
    """Return the team of that name, or led by that session (its id, or a beginning of at least 6 characters).

    Raise ``NotFound``, or ``Ambiguous`` if a beginning fits several.
    """
    known = team_names(where)
    if wanted in known:
        return load_team(where, wanted)
    teams = [load_team(where, name) for name in known]
    led = [team for team in teams if team.lead_session == wanted]
    led = led or [t for t in teams if len(wanted) >= 6 and (t.lead_session or "").startswith(wanted)]
    if len(led) > 1:
        raise Ambiguous(
            f"session id fits the leads of {len(led)} teams: {wanted!r}",
            f"name one of {', '.join(team.name for team in led)}",
        )
    if not led:
        raise NotFound(f"team not found in {where}: {wanted!r}", "list all with `agent-mailbox teams list`")
    return led[0]


def load_team(where: str, name: str) -> TeamConfiguration:
    """Return the team of a directory; with an unreadable configuration it has no members, and says why."""
    content = read_content(config_path(where, name))
    if content is None:
        return TeamConfiguration(name, unfit=(Unfit(None, "no config.json"),))
    return configuration.parse_team(content.data, name)


def config_path(where: str, name: str) -> str:
    """Return the path of a team's configuration."""
    return os.path.join(where, name, "config.json")


def inbox_path(where: str, name: str, member: str) -> str:
    """Return the path of a member's inbox."""
    return os.path.join(where, name, "inboxes", f"{member}.json")


def inbox_names(where: str, name: str) -> list[str]:
    """Return the names of those who have inboxes."""
    found = list_names(os.path.join(where, name, "inboxes"))
    return [file.removesuffix(".json") for file in found if file.endswith(".json") and len(file) > 5]


def stamp_of(path: str) -> Stamp | None:
    """Return a stamp that shows whether a file changed, by ``stat``; None if missing, or if it may change unnoticed."""
    try:
        at = os.stat(path)
    except OSError:
        return None
    return None if _is_fresh(at) else (at.st_ino, at.st_mtime_ns, at.st_size)


def _is_fresh(at: os.stat_result) -> bool:
    return abs(time.time_ns() - at.st_mtime_ns) < _RACY


def read_content(path: str, most: int = MAX_FILE) -> Content | None:
    """Return a regular file's bytes; None if unreadable. One written to meanwhile is read again; ``format`` takes a
    half-written one."""
    content = None
    for _ in range(_TRIES):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError):
            return content
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or before.st_size > most:
                return None
            with open(fd, "rb", closefd=False) as file:
                data = file.read(most)
            after = os.fstat(fd)
        except OSError:
            return content
        finally:
            os.close(fd)
        same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
        stamp = (after.st_ino, after.st_mtime_ns, after.st_size)
        content = Content(data, stamp if same and not _is_fresh(after) else None)
        if same:
            break
    return content


def read_inbox(where: str, name: str, member: str) -> Inbox:
    """Return a member's inbox as it is now; a missing one is empty, and not whole."""
    content = read_content(inbox_path(where, name, member))
    return Inbox(whole=False) if content is None else form.parse_inbox(content.data)


def has_ended(where: str, team: TeamConfiguration) -> bool:
    """Return whether the team is over: its configuration is removed, or its lead's process gone."""
    return not os.path.exists(config_path(where, team.name)) or not _is_lead_alive(where, team)


def _is_lead_alive(where: str, team: TeamConfiguration) -> bool:
    """Return whether the lead's process lives; True if unknown (another host, or name space)."""
    content = read_content(config_path(where, team.name))
    if content is None or team.lead_pid is None:
        return True
    try:
        process = json.loads(content.data)["leadProcess"]
        space, born = str(process["pidSpace"]), str(process["procStart"])
        if not space.endswith(os.readlink("/proc/self/ns/pid")):
            return True
        with open(f"/proc/{team.lead_pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19] == born
    except FileNotFoundError:
        return not os.path.exists("/proc/self/stat")
    except (OSError, ValueError, LookupError, TypeError):
        return True
