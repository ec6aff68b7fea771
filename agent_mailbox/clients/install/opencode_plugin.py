"""The plugin for OpenCode, a client without hooks in a settings file: its text, and the hook that a written one calls.

Belongs here: filling in the plugin (``clients/agent-mailbox.js``) and reading it back. It knows no place of a file.
"""

from __future__ import annotations

import json
import os
import re

from ...errors import StorageFailed
from ...identity import client_variables
from ...known_clients.opencode import OPENCODE
from .. import texts
from . import foreign_files as files

SOURCE = "agent-mailbox.js"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FILL = re.compile(r"^const (HOOK|NAMES|FREE|REDIRECTED) = .*", re.MULTILINE)
"""The lines that an installation fills in."""
_FILLED = re.compile(r'^const HOOK = ("(?:[^"\\\n]|\\.)+")', re.MULTILINE)


def plugin_text(hook: str, program: str) -> str:
    """Return the plugin that calls this shim; ``program`` is how an agent starts ours."""
    free = [*(f"{program} {words} *" for words in texts.FREE), *(f"{program} {words}" for words in texts.EXACT)]
    names = [
        name for name in (*client_variables.SESSIONS, *client_variables.NAMELESS) if name != OPENCODE.session_variable
    ]
    filled = {"HOOK": hook, "NAMES": names, "FREE": free, "REDIRECTED": f"{program} *>*"}
    return _FILL.sub(lambda found: f"const {found[1]} = {json.dumps(filled[found[1]])}", _plugin_source())


def _plugin_source() -> str:
    found = files.read_foreign(os.path.join(_PACKAGE, SOURCE))
    if found is None:
        raise StorageFailed(f"{_PACKAGE} lacks its {SOURCE}", "install agent-mailbox again")
    return found.decode()


def is_another(plugin: bytes) -> bool:
    """Return whether a plugin is edited, or another version's."""
    return _FILL.sub("", plugin.decode("utf-8", "replace")) != _FILL.sub("", _plugin_source())


def hook_of(plugin: bytes) -> str | None:
    """Return the shim that a plugin calls; None if it is no plugin of ours."""
    found = _FILLED.search(plugin.decode("utf-8", "replace"))
    try:
        hook = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return hook if isinstance(hook, str) else None
