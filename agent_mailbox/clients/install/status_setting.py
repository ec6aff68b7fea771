"""The entry for a status line in a client's settings.

Belongs here: which entry is ours, and where the person has another. ``commands.status_line`` makes the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.text import shell_quoted
from .. import places
from ..foreign_fields import read_object
from .hook_entries import SHIM, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..places import Target

EVENT = "StatusLine"
EVERY = 10
"""Seconds between two looks while the session is idle; the shim answers each without Python."""
NEW, KEPT = "new", "kept"


def make_entry(shim: str) -> dict[str, Any]:
    """Return our entry."""
    return {"type": "command", "command": f"{shell_quoted(shim)} {EVENT}", "refreshInterval": EVERY}


def with_line(settings: Mapping[str, Any], key: str, shim: str, *, is_wanted: bool) -> dict[str, Any]:
    """Return the settings with our entry, if it ``is_wanted`` or there already. Another entry stays as it is."""
    result = dict(settings)
    there, new = result.get(key), make_entry(shim)
    if isinstance(there, dict) and is_ours(there):
        result[key] = {**there, "command": new["command"]}
    elif is_wanted and key not in result:
        result[key] = new
    return result


def without_line(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the settings without our entry."""
    return {name: value for name, value in settings.items() if name != key or not is_ours(value)}


def is_ours(entry: Any) -> bool:
    """Return whether the entry only calls our shim, wherever that was installed."""
    words = words_of(entry)
    return len(words) == 2 and words[0].rpartition("/")[2] == SHIM and words[1] == EVENT


def offered_line(target: Target, environ: Mapping[str, str]) -> str:
    """Return ``NEW`` if a setup adds a status line, ``KEPT`` if the person has another, and else nothing."""
    key = target.client.status_line
    if not key:
        return ""
    paths: tuple[str, ...] = (target.settings,)
    if target.project:  # ours would hide those for all sessions of the project, and for all of the person's
        paths = places.settings_files(target.project, environ)
    read = map(read_object, paths)
    return KEPT if any(key in one and not is_ours(one[key]) for one in read) else NEW
