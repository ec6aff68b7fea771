"""The hooks that Codex skips as untrusted: `codex exec` does so silently, but its files tell.

Belongs here: Codex's record of trust (``config.toml``: for each hook's place the checksum of what was trusted; observed
with 0.169.0). It is read and never written: a program that trusts itself would make trust worthless.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from typing import TYPE_CHECKING, Any

from ...core.codec import BOM
from ...known_clients.codex import CODEX
from ..install.hook_entries import calls_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEFAULT, _AT_END = 600, 3
"""Seconds of a hook that names none; the most for one at a session's end."""


def untrusted_events(path: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the events whose hooks of ours, in a ``hooks.json`` at ``path``, Codex skips."""
    known = _trusted_checksums(os.path.join(CODEX.find_home(environ), "config.toml"))
    found = []
    for event, place, checksum in _own_hooks(settings):
        records = [known.get(f"{where}:{place}") for where in (path, os.path.realpath(path))]
        if not any(record is not None and checksum in (None, record) for record in records):
            found.append(event)
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
