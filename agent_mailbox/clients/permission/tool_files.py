"""The files that a tool writes, by its input.

Belongs here: the keys of Claude Code's tools, and the patches of Codex, which name their files in the text (observed
with 0.169.0). Codex reads a patch line by line, and takes spaces around these.
"""

from __future__ import annotations

import re

from ...known_clients.codex import PATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KEYS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
_NAMED = re.compile(r"^\s*\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.*)$", re.MULTILINE)


def of(tool: str, given: Mapping[str, Any]) -> list[str]:
    """Return the paths that the call writes, as it spells them, each once; none for a tool that is not known here."""
    if tool == PATCH:
        text = given.get("command")
        found = [name.strip() for name in _NAMED.findall(text)] if isinstance(text, str) else []
    else:
        value = given.get(_KEYS.get(tool, ""))
        found = [value] if isinstance(value, str) else []
    return [*dict.fromkeys(name for name in found if name)]
