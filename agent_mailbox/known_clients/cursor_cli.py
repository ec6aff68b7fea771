"""Cursor CLI, into which nothing is installed: it is in no package registry, so nobody could run hooks with it.

It stays known for the person's safety: a command below it is not the person's, and no tool writes its settings.
``uninstall`` removes the files of an earlier version. Cursor can run Claude Code's hooks, too. By reports it drops
their words, so they show no mail.
"""

from __future__ import annotations

from .known_client import KnownClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .known_client import Wording
SESSION = "conversation_id"
"""The key of its JSON that names the session."""
OLD_FILES = (
    *("skills/bye/SKILL.md", "skills/checkpoint/SKILL.md", "skills/agent-mailbox/SKILL.md"),
    "rules/agent-mailbox.mdc",
)
"""Files that an earlier version installed."""


def _is_calling(session_id: str, obj: Mapping[str, Any], _: Mapping[str, str]) -> bool:
    """Return whether it calls, by the JSON: the programs that it starts inherit its variables."""
    return obj.get(SESSION) == session_id and isinstance(obj.get("cursor_version"), str)


def _extra_files(_: Wording) -> Mapping[str, str]:
    return dict.fromkeys(OLD_FILES, "")


CURSOR_CLI = KnownClient(
    name="cursor",
    title="Cursor CLI",
    word="cursor",
    marks=("CURSOR_AGENT",),
    processes=("cursor-agent",),
    scripts=("/cursor-agent/versions/",),
    calls=_is_calling,
    session_key=SESSION,
    is_flat=True,
    directory=".cursor",
    settings=("hooks.json", "hooks.json"),
    guarded=("hooks.json", "mcp.json"),
    files=_extra_files,
)
