"""The caller within a session: the session itself, or a teammate of the team it leads.

Belongs here: what the client's files tell (seen with 2.1.329). A teammate's shell commands carry the session id of its
lead. The hook before each has the teammate's id, and a file beside its transcript has its name. A lead is also in its
team under a name, which the team's ``config.json`` knows.
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
"""Bytes read of a file about a teammate, or of a team's configuration: the client writes a few thousand."""


class CallingTeammate(Record):
    """The caller: the session, its transcript (empty: another client, without teams), and the client's id of the
    subagent or teammate (empty: the session itself)."""

    session_id: str
    transcript: str
    agent_id: str

    def member(self) -> str | None:
        """Return the mailbox id of the calling teammate; None for the session itself, and for a subagent, which acts in
        its session's name."""
        if not self.agent_id or not self.transcript.endswith(".jsonl") or "/" in self.agent_id:
            return None
        about = next(filter(None, map(_object, self._places())), {})
        name, team = about.get("name"), about.get("teamName")
        both = isinstance(name, str) and isinstance(team, str) and name and team
        return naming.session_id(str(team), str(name)) if both else None

    def _places(self) -> Iterator[str]:
        """Yield the paths of the file about the teammate. After ``/clear`` the session is another; its team stays where
        it began."""
        file = f"subagents/agent-{self.agent_id}.meta.json"
        project = system.dirname(self.transcript)
        yield f"{self.transcript[:-6]}/{file}"
        try:
            yield from (system.join(project, name, file) for name in system.listdir(project))
        except (OSError, ValueError):
            pass

    def leads_as(self, word: str, sessions: Collection[str]) -> bool:
        """Return whether the word is the session's own id in a team that it leads. ``sessions``: it, and those that it
        continues."""
        name, at, team = word.partition("@")
        teams = system.join(system.dirname(system.dirname(system.dirname(self.transcript))), "teams")
        if not (name and at and team and self.transcript) or self.agent_id or "/" in team or team.startswith("."):
            return False
        config = _object(system.join(system.join(teams, team), "config.json"))
        return config.get("leadSessionId") in sessions and config.get("leadAgentId") == word


def lead_of(word: str, sessions: Collection[str], client: int) -> str | None:
    """Return the session that leads the team in which the word is a member's id; None if there is no such team. The
    client's own environment says where teams are: a command below it cannot change that."""
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
