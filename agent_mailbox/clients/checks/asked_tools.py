"""Tools that the client asks its person about, whatever our answer: by rules in its own settings.

Belongs here: finding such a rule. Read only.
"""

from __future__ import annotations

from os.path import join
from typing import TYPE_CHECKING, Any

from ...known_clients.every_client import USUAL
from ..client_files import read_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_SETTINGS = 4 << 20
"""Bytes read of a settings file: a person wrote it."""


def is_asked_about(tool: str, project: str, environ: Mapping[str, str]) -> bool:
    """Return whether a rule for the whole tool has the client ask about it, in the user's settings or the project's."""
    wanted = (tool, "mcp__*") if tool.startswith("mcp__") else ("Bash",) if tool == "Monitor" else (tool,)
    return any(rule in rules for rules in _asking_rules(project, environ) for rule in wanted)


def _asking_rules(project: str, environ: Mapping[str, str]) -> Iterator[list[Any]]:
    names = ("settings.json", "settings.local.json")
    for path in (
        join(USUAL.find_home(environ), names[0]),
        *(join(project, USUAL.directory, name) for name in names),
    ):
        permissions = read_object(path, MAX_SETTINGS).get("permissions")
        rules = permissions.get("ask") if isinstance(permissions, dict) else None
        if isinstance(rules, list):
            yield rules
