"""PreToolUse: have the client ask about our commands that send a file, or use another mailbox; refuse a teammate's that
would speak for its lead.

Belongs here: where the agent works, the shape of the answer, and which teammate calls, by the client's files (seen with
2.1.329). A teammate's shell commands carry the session id of its lead. The hook before each has the teammate's id, and
a file beside its transcript has its name. ``permissions.own_commands`` and ``own_questions`` have the rules. It needs
no mailbox, for a command may name any.
"""

from __future__ import annotations

from os import path
from typing import TYPE_CHECKING, Any

from ...core import naming
from ...errors import MailboxError
from ...known_clients.every_client import USUAL
from ...permissions import own_commands, own_questions
from ...store.files import paths, system
from ...store.files.small_files import list_names
from ...store.user_state import processes
from ..foreign_fields import read_object

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence


_UNTOLD = frozenset("$`*?[{")
"""Signs of a word that a shell makes into another."""


class CommandPlace:
    """The directory an agent works in, and its mailbox (None: it has none), for ``own_questions``."""

    def __init__(self, here: str, mailbox: Callable[[], str | None]) -> None:
        self._here = here
        self._mailbox = mailbox

    def is_own(self, words: Sequence[str]) -> bool:
        """Return whether these directories, each from the one before, end in the agent's own mailbox."""
        real = self._real_path(words)
        return real is not None and real == self._own_mailbox()

    def finds_own(self, words: Sequence[str]) -> bool:
        """Return whether a command there finds the agent's own mailbox, or none."""
        real = self._real_path(words)
        if real is None:
            return False
        try:
            found = paths.find(real)
        except MailboxError:
            return False
        return found is None or system.real_directory(found) == self._own_mailbox()

    def _own_mailbox(self) -> str | None:
        try:
            box = self._mailbox()
        except MailboxError:
            return None
        return None if box is None else system.real_directory(box)

    def _real_path(self, words: Sequence[str]) -> str | None:
        """Return the real path of a directory; None for one that is not there, or that only the shell knows."""
        place = self._here
        for word in words:
            if not word or word == "-" or not _UNTOLD.isdisjoint(word):
                return None
            place = path.join(place, path.expanduser(word))
        try:
            real = path.realpath(place)
        except ValueError:  # no file can have this name
            return None
        return real if path.isdir(real) else None


def denial_of(command: str, member: str | None, place: CommandPlace, *, may_ask: bool = True) -> dict[str, Any] | None:
    """Return the answer that stops the command, or makes the client ask, with the reason; None to let it run.
    ``member``: the teammate that calls; None for a session itself, whose command tells by its processes who calls.

    If the client cannot ask its person, the command is denied."""
    why = None if member is None else own_commands.refusal_for_teammate(command, member)
    decision = "deny"
    if why is None:
        why = own_questions.question_about(command, place)
        if why is None:
            return None
        if may_ask:
            decision = "ask"
        else:
            why = f"{why} An agent may not: only the person may run this, in a terminal of their own."
    told = {"permissionDecision": decision, "permissionDecisionReason": f"agent-mailbox: {why}"}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}


# -- the caller within a session --------------------------------------------------------------------------------------


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
    yield from (system.join(project, name, file) for name in list_names(project))


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
