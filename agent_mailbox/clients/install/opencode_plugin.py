"""The plugin for OpenCode, a client without hooks in a settings file: its text, and the hook that a written one calls.

Belongs here: filling in the plugin (``clients/agent-mailbox.js``) and reading it back. It knows no place of a file.
"""

from __future__ import annotations

import json
import os
import re

from ...errors import StorageFailed
from . import foreign_files as files

SOURCE = "agent-mailbox.js"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_UNFILLED = 'const HOOK = ""'
_FILLED = re.compile(r'^const HOOK = ("(?:[^"\\\n]|\\.)+")', re.MULTILINE)


def text(hook: str) -> str:
    """Return the plugin that calls this shim."""
    found = files.read(os.path.join(_PACKAGE, SOURCE))
    if found is None:
        raise StorageFailed(f"{_PACKAGE} lacks its {SOURCE}", "install agent-mailbox again")
    return found.decode().replace(f"\n{_UNFILLED}", f"\nconst HOOK = {json.dumps(hook)}", 1)


def hook_of(plugin: bytes) -> str | None:
    """Return the shim that a plugin calls; None if it is no plugin of ours."""
    found = _FILLED.search(plugin.decode("utf-8", "replace"))
    try:
        hook = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return hook if isinstance(hook, str) else None
