"""The caller within a session: the session itself, or a teammate of the team it leads.

Belongs here: what the client's files tell (seen with 2.1.329). A teammate's shell commands carry the session id of its
lead. The hook before each has the teammate's id, and a file beside its transcript has its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import naming
from ...known_clients.every_client import USUAL
from ...store.files import system
from ...store.user_state import processes
from ..foreign_fields import read_object

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_FILE = 1 << 20
"""Bytes read of a file about a teammate, or of a team's configuration: the client writes a few thousand."""


def calling_member(transcript: str, agent_id: str) -> str | None:
    """Return the mailbox id of the calling teammate; None for the session itself, and for a subagent, which acts in its
    session's name. ``transcript``: the session's (empty: another client, without teams). ``agent_id``: the client's id
    of the subagent or teammate (empty: the session itself)."""
    if not agent_id or not transcript.endswith(".jsonl") or "/" in agent_id:
        return None
    about = next(filter(None, (read_object(path, MAX_FILE) for path in _teammate_paths(transcript, agent_id))), {})
    name, team = about.get("name"), about.get("teamName")
    both = isinstance(name, str) and isinstance(team, str) and name and team
    return naming.session_id(str(team), str(name)) if both else None


def _teammate_paths(transcript: str, agent_id: str) -> Iterator[str]:
    """Yield the paths of the file about the teammate. After ``/clear`` the session is another; its team stays where it
    began."""
    file = f"subagents/agent-{agent_id}.meta.json"
    project = system.dirname(transcript)
    yield f"{transcript[:-6]}/{file}"
    try:
        yield from (system.join(project, name, file) for name in system.listdir(project))
    except (OSError, ValueError):
        pass


def lead_of(word: str, sessions: Collection[str], client: int) -> str | None:
    """Return the session that leads the team in which the word is a member's id; None if there is no such team. The
    client's own environment says where teams are: a command below it cannot change that."""
    name, at, team = word.partition("@")
    environ = processes.variables(client) if client else None
    if not (name and at and team and environ) or "/" in team or team.startswith("."):
        return None
    config = read_object(system.join(USUAL.find_home(environ), "teams", team, "config.json"), MAX_FILE)
    lead, members = config.get("leadSessionId"), config.get("members")
    names = [one.get("name") for one in members if isinstance(one, dict)] if isinstance(members, list) else []
    is_member = any(isinstance(one, str) and naming.session_id(team, one) == word for one in names)
    return lead if lead in sessions and (is_member or config.get("leadAgentId") == word) else None
