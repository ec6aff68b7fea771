"""Where teams are on the disk, and reading them: directories, configurations, inboxes, the lead's process.

Belongs here: the client's places (observed with 2.1.329) and reading files that others rewrite meanwhile. Nothing here
writes, and nothing waits for a lock: the client's own readers take none either.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import Ambiguous, NotFound
from . import configuration
from . import format as form
from .configuration import Team
from .fields import Unfit
from .format import Inbox

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE = 64 << 20
"""Bytes of an inbox that are read: far above any the client still gets through."""
_RACY = 100_000_000
"""Nanoseconds: what was written so lately may change again without a new time, so its stamp is not believed."""
_TRIES = 5

Stamp = tuple[int, int, int]


class Content(Record):
    """A file as it was read. ``stamp`` is (inode, mtime in ns, size); None: read it again next time."""

    data: bytes
    stamp: Stamp | None


def root(environ: Mapping[str, str]) -> str:
    """The directory of all teams: ``teams`` in ``CLAUDE_CONFIG_DIR``, else in ``~/.claude``."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "teams")


def names(where: str) -> list[str]:
    """The teams that are there now: every directory with a configuration or inboxes."""
    try:
        found = sorted(name for name in os.listdir(where) if not name.startswith("."))
    except OSError:
        return []
    return [
        name for name in found if any(os.path.exists(os.path.join(where, name, m)) for m in ("config.json", "inboxes"))
    ]


def find(where: str, wanted: str) -> Team:
    """The team of that name, or led by that session (its id, or the beginning of it).

    Raises ``NotFound``, or ``Ambiguous`` where a beginning fits several.
    """
    known = names(where)
    if wanted in known:
        return load(where, wanted)
    teams = [load(where, name) for name in known]
    led = [team for team in teams if team.lead_session == wanted]
    led = led or [t for t in teams if len(wanted) >= 6 and (t.lead_session or "").startswith(wanted)]
    if len(led) > 1:
        raise Ambiguous(f"{wanted!r} could lead {len(led)} teams", ", ".join(team.name for team in led))
    if not led:
        raise NotFound(f"no team {wanted!r} in {where}", "`agent-mailbox teams list` shows them, ended ones too")
    return led[0]


def load(where: str, name: str) -> Team:
    """The team of a directory; without a readable configuration it has no members, and says why."""
    content = read(config_path(where, name))
    if content is None:
        return Team(name, unfit=(Unfit(None, "no config.json"),))
    return configuration.team(content.data, name)


def config_path(where: str, name: str) -> str:
    """A team's configuration."""
    return os.path.join(where, name, "config.json")


def inbox_path(where: str, name: str, member: str) -> str:
    """A member's inbox."""
    return os.path.join(where, name, "inboxes", f"{member}.json")


def inboxes(where: str, name: str) -> list[str]:
    """Whose inboxes there are."""
    try:
        found = sorted(os.listdir(os.path.join(where, name, "inboxes")))
    except OSError:
        return []
    return [file.removesuffix(".json") for file in found if file.endswith(".json") and len(file) > 5]


def look(path: str) -> Stamp | None:
    """What tells whether a file changed, without opening it; None if there is none, or it may change unnoticed."""
    try:
        at = os.stat(path)
    except OSError:
        return None
    return None if _fresh(at) else (at.st_ino, at.st_mtime_ns, at.st_size)


def _fresh(at: os.stat_result) -> bool:
    return abs(time.time_ns() - at.st_mtime_ns) < _RACY


def read(path: str) -> Content | None:
    """A regular file's bytes; None if there is none that can be read. One that somebody writes in meanwhile is read
    again; what is half-written for good is left to the format."""
    content = None
    for _ in range(_TRIES):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError):
            return content
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or before.st_size > MAX_FILE:
                return None
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_FILE)
            after = os.fstat(fd)
        except OSError:
            return content
        finally:
            os.close(fd)
        same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
        stamp = (after.st_ino, after.st_mtime_ns, after.st_size)
        content = Content(data, stamp if same and not _fresh(after) else None)
        if same:
            break
    return content


def inbox(where: str, name: str, member: str) -> Inbox:
    """What stands in a member's inbox now; one without a file holds nothing, and is not whole."""
    content = read(inbox_path(where, name, member))
    return Inbox(whole=False) if content is None else form.inbox(content.data)


def ended(where: str, team: Team) -> bool:
    """Is the team over: its configuration removed, or the process that leads it gone?"""
    return not os.path.exists(config_path(where, team.name)) or not _lives(where, team)


def _lives(where: str, team: Team) -> bool:
    """Does the lead's process live? True where that cannot be told (another host's, or another name space's)."""
    content = read(config_path(where, team.name))
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
