"""Who calls from within a session: the session itself, or a teammate of the team it leads.

Belongs here: what the client's files tell of that (seen with 2.1.329). The shell commands of a teammate carry the
session id of its lead, but the hook before each has the id of who runs it; beside the transcript of that stands whose
it is. A lead is in its team under a name, too, which ``config.json`` of the team knows.
"""

from __future__ import annotations

from ...core import codec, naming
from ...core.records import BadLine, Record
from ...store import processes, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

MAX_FILE = 1 << 20
"""Bytes of a file about a teammate, or of a team's configuration, that are read: the client writes a few thousand."""


class CallingTeammate(Record):
    """Who calls: the session, its transcript (empty: another client, which has no teams), and the client's id of the
    subagent or teammate (empty: the session itself)."""

    session_id: str
    transcript: str
    agent_id: str

    def member(self) -> str | None:
        """The id here of the teammate that calls; None for the session itself, and for a plain subagent, which acts in
        its session's name."""
        if not self.agent_id or not self.transcript.endswith(".jsonl") or "/" in self.agent_id:
            return None
        about = next(filter(None, map(_object, self._places())), {})
        name, team = about.get("name"), about.get("teamName")
        both = isinstance(name, str) and isinstance(team, str) and name and team
        return naming.session_id(str(team), str(name)) if both else None

    def _places(self) -> Iterator[str]:
        """Where it may stand whose the subagent is. After ``/clear`` the session is another; its team stays where it
        began."""
        file = f"subagents/agent-{self.agent_id}.meta.json"
        project = system.dirname(self.transcript)
        yield f"{self.transcript[:-6]}/{file}"
        try:
            yield from (system.join(project, name, file) for name in system.listdir(project))
        except (OSError, ValueError):
            pass

    def leads_as(self, word: str, sessions: Collection[str]) -> bool:
        """Is the word the session's own id in a team that it leads? ``sessions``: it, and those that it continues."""
        name, at, team = word.partition("@")
        teams = system.join(system.dirname(system.dirname(system.dirname(self.transcript))), "teams")
        if not (name and at and team and self.transcript) or self.agent_id or "/" in team or team.startswith("."):
            return False
        config = _object(system.join(system.join(teams, team), "config.json"))
        return config.get("leadSessionId") in sessions and config.get("leadAgentId") == word


def lead_of(word: str, sessions: Collection[str], client: int) -> str | None:
    """Return which of the sessions leads the team in which the word is a member's id; None for no such team. The teams
    are where the client keeps them: a command below it cannot change the environment of that process."""
    name, at, team = word.partition("@")
    environ = processes.variables(client) if client else None
    if not (name and at and team and environ) or "/" in team or team.startswith("."):
        return None
    base = environ.get("CLAUDE_CONFIG_DIR") or system.join(environ.get("HOME") or "/", ".claude")
    config = _object(system.join(base, "teams", team, "config.json"))
    lead, members = config.get("leadSessionId"), config.get("members")
    names = [one.get("name") for one in members if isinstance(one, dict)] if isinstance(members, list) else []
    is_member = any(isinstance(one, str) and naming.session_id(team, one) == word for one in names)
    return lead if lead in sessions and (is_member or config.get("leadAgentId") == word) else None


def _object(path: str) -> dict[str, Any]:
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NONBLOCK)
    except (OSError, ValueError):
        return {}
    try:
        found = codec.parse(system.read(fd, MAX_FILE), MAX_FILE, ours=False)
    except OSError:
        return {}
    finally:
        system.close(fd)
    return {} if isinstance(found, BadLine) else found
