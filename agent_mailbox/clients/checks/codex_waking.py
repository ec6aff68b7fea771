"""The sessions of Codex that mail cannot wake, and why. For the doctor; it writes nothing.

Belongs here: telling apart a session that its own terminal runs, one that the background server unloaded, and one whose
queue waits since Escape. ``codex_server`` knows how each shows.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core import frame
from ...core.findings import Problem
from ...core.roster import ALIVE
from ...identity.client_processes import is_server
from ...known_clients.codex import CODEX
from ...mailbox.open_mailbox import OpenMailbox
from ...store.files import paths
from ...store.user_state import processes
from ...store.user_state.processes import ProcessRecords
from .. import codex_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ALONE = "its terminal runs it without Codex's background server, whose queue wakes a session"
_PLAIN = "start codex without --no-daemon and -c"
_UNLOADED = "Codex's background server does not have it loaded: `codex resume` opens it"
_HELD = "Codex keeps its queue since its last turn was broken off: its next prompt lets it go on"
_LEFT = "a session was left a moment ago, by /clear or with its terminal: Codex unloads it within a minute"
_MOST = 5
"""Sessions named; the rest are of the same kinds."""


def check_waking(directory: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a note for each kind of session that mail does not wake now."""
    desk = OpenMailbox(directory)
    if not desk.config.doorbell:
        return
    roster, found = desk.logs.read_roster(), dict[str, list[str]]()
    for agent in roster.agents.values():
        if agent.state == ALIVE and (why := _why_unwakeable(agent.session_id, environ)):
            found.setdefault(why, []).append(frame.name_of(agent.session_id, roster))
    for why, names in found.items():
        yield Problem(directory, None, f"mail does not wake {frame.some(names, _MOST)}: {why}", note=True)


def _why_unwakeable(session_id: str, environ: Mapping[str, str]) -> str:
    """Return why mail does not wake the session; empty if it does, or if it is none of Codex at a terminal."""
    state = paths.state_directory(environ)
    where, hosts = processes.find_whereabouts(session_id, state), ProcessRecords(state)
    living = [host for host in hosts.hosting(session_id) if hosts.is_living(host)]
    if where is None or where.client != CODEX.word or not living:
        return ""
    pid, home = living[-1].pid, where.conversation.rpartition("/sessions/")[0]
    if is_server(pid):
        if codex_server.is_loaded(where.conversation, session_id, pid) is False:
            return _UNLOADED
        if codex_server.turn_status(where.conversation) == codex_server.HELD:
            return _HELD
        return _LEFT if codex_server.may_be_left(where.conversation, pid) else ""
    if not home or {"exec", "e"} & {*processes.words(pid)[1:]}:
        return ""  # it ends with its turn
    runs = os.path.exists(os.path.join(home, "app-server-control", "app-server-control.sock"))
    return f"{_ALONE}; {_PLAIN}" if runs else f"{_ALONE}, and none runs; {_PLAIN}, which starts it"
