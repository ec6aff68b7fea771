"""The user's own record of a team that ``up`` started: what the person agreed to, and who its members are.

Belongs here: the file, one for each team's file, outside every project. A checkout cannot say what was agreed.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ...core.records import Record
from ...core.text import typed
from ...errors import BadData
from ..files import paths, small_files, system
from ..locks.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Mapping


class Started(Record):
    """A member that was started. ``pid`` and ``start`` name the process that runs it, in boot and namespace ``here``;
    ``window``: its window of tmux. ``denied``: the rules of the team's file that it was given. ``prompt``: its client
    is told to begin it with that, and has not said that it did; ``before``: the sessions that it had."""

    session_id: str = ""
    client: str = ""
    pid: int = 0
    start: str = ""
    here: str = ""
    window: str = ""
    denied: tuple[str, ...] = ()
    prompt: str = ""
    before: tuple[str, ...] = ()


class TeamRecord(Record):
    """A team. ``agreed``: the digest of what the person agreed to; ``box``: the mailbox that it works with;
    ``has_tasks``: its first tasks were added."""

    agreed: str = ""
    box: str = ""
    members: Mapping[str, Started] = {}
    has_tasks: bool = False


def _path(file: str, environ: Mapping[str, str], ending: str = "json") -> str:
    name = hashlib.sha256(system.encoded(system.real_path(file))).hexdigest()[:32]
    return system.join(paths.state_directory(environ), "teams", f"{name}.{ending}")


def lock_team(file: str, environ: Mapping[str, str]) -> FileLock:
    """Return the lock under which one command at a time starts or ends a team; it is not waited for."""
    path = _path(file, environ, "lock")
    system.make_directory(system.dirname(path))
    return FileLock(path, wait=0)


def load_record(file: str, environ: Mapping[str, str]) -> TeamRecord:
    """Return the record of a team's file; an empty one if there is none. Raise ``BadData`` for one that cannot be read:
    its members may run. A key of a later version is passed over."""
    path = _path(file, environ)
    if (data := small_files.read_file(path)) is None:
        return TeamRecord()
    try:
        team = _fields(TeamRecord, json.loads(data))
        members = {name: Started(**_fields(Started, one)) for name, one in team.pop("members", {}).items()}
    except (ValueError, RecursionError):
        hint = f"`agent-mailbox roster list` has its members; end them, then run `rm {typed(path)}`"
        raise BadData(f"the record of the team is damaged: {path}", hint) from None
    return TeamRecord(**team, members=members)


def _fields(kind: type[Record], table: Any) -> dict[str, Any]:
    """Return the fields of a kind that a table has; raise ``ValueError`` for one of another type."""
    if not isinstance(table, dict):
        raise ValueError
    wanted = {name: getattr(kind, name) for name in kind.__annotations__ if name in table}
    found = {name: tuple(table[name]) if isinstance(table[name], list) else table[name] for name in wanted}
    if any(type(found[name]) is not type(default) for name, default in wanted.items()):
        raise ValueError
    return found


def save_record(file: str, record: TeamRecord, environ: Mapping[str, str]) -> None:
    """Write the record down."""
    path = _path(file, environ)
    system.make_directory(system.dirname(path))
    members = {name: dict(one.__dict__) for name, one in record.members.items()}
    small_files.replace_file(path, json.dumps({**record.__dict__, "members": members}, indent=1).encode() + b"\n")


def digest(*parts: bytes) -> str:
    """Return the digest of what a person is asked to agree to."""
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
