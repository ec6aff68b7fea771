"""The plugin for OpenCode, a client without hooks in a settings file: its text, and the hook that a written one calls.

Belongs here: filling in the plugin (``clients/agent-mailbox.js``) and reading it back. It knows no place of a file.
"""

from __future__ import annotations

import json
import re

from ...identity import client_variables
from ...known_clients.opencode import OPENCODE
from .. import texts
from . import foreign_files as files

SOURCE = "agent-mailbox.js"
_FILL = re.compile(r"^const (HOOK|NAMES|FREE|REDIRECTED) = .*", re.MULTILINE)
"""The lines that an installation fills in."""
_FILLED = re.compile(r'^const HOOK = ("(?:[^"\\\n]|\\.)+")', re.MULTILINE)


def plugin_text(hook: str, program: str) -> str:
    """Return the plugin that calls this shim; ``program`` is how an agent starts ours."""
    others = [*client_variables.SESSIONS, *client_variables.NAMELESS]
    names = [name for name in others if name != OPENCODE.session_variable]
    free = texts.unasked_commands(program, " *")
    filled = {"HOOK": hook, "NAMES": names, "FREE": free, "REDIRECTED": f"{program} *>*"}
    source = files.read_packaged(SOURCE).decode()
    return _FILL.sub(lambda found: f"const {found[1]} = {json.dumps(filled[found[1]])}", source)


def is_another(plugin: bytes) -> bool:
    """Return whether a plugin is edited, or another version's."""
    return _FILL.sub("", plugin.decode("utf-8", "replace")) != _FILL.sub("", files.read_packaged(SOURCE).decode())


def hook_of(plugin: bytes) -> str | None:
    """Return the shim that a plugin calls; None if it is no plugin of ours."""
    found = _FILLED.search(plugin.decode("utf-8", "replace"))
    try:
        hook = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return hook if isinstance(hook, str) else None
