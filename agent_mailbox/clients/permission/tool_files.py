"""The files that a tool writes, by its input.

Belongs here: the keys of the clients' tools. The patches of Codex and Copilot CLI name their files in the text
(observed with 0.169.0 and 1.0.102). A patch is read line by line, and spaces around these count for nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...known_clients.every_client import PATCH_TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS = {
    "Write": ("file_path", "path"),
    "Edit": ("file_path", "path"),
    "MultiEdit": ("file_path",),
    "NotebookEdit": ("notebook_path",),
}
_NAMED = re.compile(r"^\s*\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.*)$", re.MULTILINE)


def is_patch(tool: str, given: Mapping[str, Any]) -> bool:
    """Return whether the call applies a patch."""
    return tool in PATCH_TOOLS or (tool == "Edit" and isinstance(given.get("input"), str))


def written_by_tool(tool: str, given: Mapping[str, Any]) -> list[str]:
    """Return the paths that the call writes, as it spells them, each once; none for a tool that is not known here."""
    found = [value for key in _KEYS.get(tool, ()) if isinstance(value := given.get(key), str)]
    if is_patch(tool, given):
        text = given.get("command" if tool in PATCH_TOOLS else "input")
        found += [name.strip() for name in _NAMED.findall(text)] if isinstance(text, str) else []
    return [*dict.fromkeys(name for name in found if name)]
