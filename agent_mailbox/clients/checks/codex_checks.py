"""The hooks of Codex that it skips as untrusted, and its sessions that mail cannot wake. Read only.

Belongs here: Codex's record of trust (``config.toml``: for each hook's place the checksum of what was trusted; observed
with 0.169.0). ``codex exec`` skips hooks silently. The record is only read: a program that trusts itself would make
trust worthless. A session may not wake because its own terminal runs it, because the background server unloaded it, or
because its queue waits since Escape. ``codex_server`` knows how each shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from typing import TYPE_CHECKING, Any

from ...core import frame
from ...core.codec import BOM
from ...core.findings import Problem
from ...core.roster import ALIVE
from ...identity.client_processes import is_server
from ...known_clients.codex import CODEX
from ...mailbox.open_mailbox import OpenMailbox
from ...store.files import paths
from ...store.user_state import processes
from ...store.user_state.processes import ProcessRecords
from .. import codex_server
from ..install.hook_entries import calls_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEFAULT, _AT_END = 600, 3
"""Seconds of a hook that names none; the most for one at a session's end."""
_ALONE = "its terminal runs it without Codex's background server, whose queue wakes a session"
_PLAIN = "start codex without --no-daemon and -c"
_UNLOADED = "Codex's background server does not have it loaded: `codex resume` opens it"
_HELD = "Codex keeps its queue since its last turn was broken off: its next prompt lets it go on"
_LEFT = "a session was left a moment ago, by /clear or with its terminal: Codex unloads it within a minute"
_MOST = 5
"""Sessions named; the rest are of the same kinds."""


def untrusted_events(path: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, None]:
    """Return the events of which Codex skips a hook of ours, in a ``hooks.json`` at ``path``, each once."""
    known = _trusted_checksums(os.path.join(CODEX.find_home(environ), "config.toml"))
    found = dict[str, None]()
    for event, place, checksum in _own_hooks(settings):
        records = [known.get(f"{where}:{place}") for where in (path, os.path.realpath(path))]
        if not any(record is not None and checksum in (None, record) for record in records):
            found[event] = None
    return found


def _trusted_checksums(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            state = tomllib.loads(file.read().removeprefix(BOM).decode())["hooks"]["state"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    entries = state.items() if isinstance(state, dict) else ()
    hashes = {place: entry.get("trusted_hash") for place, entry in entries if isinstance(entry, dict)}
    return {place: value for place, value in hashes.items() if isinstance(value, str)}


def _own_hooks(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """Yield (event, its place, its checksum) of each hook of ours. The checksum is None for a hook with unknown
    keys."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for index, hook in enumerate(inner if isinstance(inner, list) else ()):
                if calls_us(hook):
                    plain = set(group) == {"hooks"} and set(hook) <= {"type", "command", "timeout", "async"}
                    yield event, f"{snake}:{number}:{index}", _hook_checksum(snake, hook) if plain else None


def _hook_checksum(event: str, hook: Mapping[str, Any]) -> str:
    timeout = hook.get("timeout", _DEFAULT)
    if event == "session_end":
        timeout = min(timeout, _AT_END)
    handler = {"async": hook.get("async") is True, "command": hook["command"], "timeout": timeout, "type": "command"}
    text = json.dumps({"event_name": event, "hooks": [handler]}, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
    runs = os.path.exists(codex_server.socket_of(home))
    return f"{_ALONE}; {_PLAIN}" if runs else f"{_ALONE}, and none runs; {_PLAIN}, which starts it"
