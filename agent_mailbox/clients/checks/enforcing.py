"""Whether anything enforces the rules, mode and lead of a session: a hook of its client that asks before each tool.

Belongs here: that rule, by the client's abilities, and its words. ``control`` warns by it, ``roster show`` and the
doctor tell it. Nothing is said of the person, of teammates, and of a session on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...control_plane.standing import binds, find_standing
from ...core import frame
from ...core.findings import Problem
from ...core.records import USER
from ...core.roster import ALIVE, DEAD
from ...errors import MailboxError
from ...known_clients.every_client import USUAL, find_client
from ...known_clients.known_client import PERMIT
from ...mailbox.open_mailbox import OpenMailbox
from ...store.files import paths
from ...store.user_state import processes
from . import hook_sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ...core.roster import Agent
    from ...known_clients.known_client import KnownClient

_TEAM = "team:"
_MOST = 5
"""Sessions named in one note."""


def missing(desk: OpenMailbox, agent: Agent, environ: Mapping[str, str]) -> str:
    """Return why nothing enforces what binds the agent; empty if its client does, or if that is unknown."""
    me = agent.session_id
    if me == USER or me in desk.elsewhere([me]) or any(tag.startswith(_TEAM) for tag in agent.tags):
        return ""
    where = processes.find_whereabouts(me, paths.state_directory(environ))
    if where is None or not where.client:
        return "" if agent.client else "no client's hooks ask us before its tools"
    client = find_client(where.client)
    if client is None or any(wanted.event == PERMIT for wanted in client.hooks()):
        return ""
    return f"{client.title} asks nobody before its tools"


def warnings(desk: OpenMailbox, sessions: Collection[str], environ: Mapping[str, str]) -> list[str]:
    """Return a line for each of the sessions on which rules and modes have no effect. Another tool's hook that may
    change a call of theirs has a line, too."""
    roster = desk.logs.read_roster()
    found = [(agent, frame.name_of(me, roster)) for me in sessions if (agent := roster.get(me)) is not None]
    return [
        *(f"nothing enforces this on {name}: {why}" for agent, name in found if (why := missing(desk, agent, environ))),
        *(
            f"{path} has a hook that may change a call of {name} after the rules judged it: {command}"
            for agent, name in found
            for path, command in _foreign_hooks(agent.session_id, environ)
        ),
    ]


def _foreign_hooks(
    session_id: str, environ: Mapping[str, str], *, but: KnownClient | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the file and command of each hook of another tool, where the session works; none in one client."""
    where = processes.find_whereabouts(session_id, paths.state_directory(environ))
    client = None if where is None else find_client(where.client)
    if where is not None and where.directory and client is not None and client is not but:
        yield from hook_sources.find_changing(client, where.directory, environ)


def unenforced(desk: OpenMailbox, agent: Agent, environ: Mapping[str, str]) -> str:
    """Return why nothing enforces the lead, mode or rules that the agent has; empty if it has none."""
    why = missing(desk, agent, environ)
    return why if why and binds(find_standing(desk, agent.session_id), agent) else ""


def examine(directory: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a note for each reason why sessions that are bound may do anything. Each hook of another tool that may
    change a call of one has a note, too. ``settings`` names those of Claude Code."""
    found, others = dict[str, list[str]](), dict[tuple[str, str], None]()
    try:
        desk = OpenMailbox(directory)
        roster = desk.logs.read_roster()
        for agent in roster.agents.values():
            if agent.state == ALIVE and (why := unenforced(desk, agent, environ)):
                found.setdefault(why, []).append(frame.name_of(agent.session_id, roster))
            if agent.state != DEAD and binds(find_standing(desk, agent.session_id), agent):
                others.update(dict.fromkeys(_foreign_hooks(agent.session_id, environ, but=USUAL)))
    except MailboxError:
        return  # other checks name what cannot be read
    for why, names in found.items():
        what = f"nothing enforces the lead, mode or rules of {frame.some(names, _MOST)}: {why}"
        yield Problem(directory, None, what, note=True)
    yield from (hook_sources.changed_by(path, command) for path, command in others)
