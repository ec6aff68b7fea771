"""The clients we install into, side by side: which hooks each has, and where they call us already.

Belongs here: reading that off the table and off the settings. It writes nothing and judges no hook; the doctor does.
"""

from __future__ import annotations

import os

from ...core.records import Record
from ..install import client_table, opencode_plugin
from ..install.hook_entries import BELL, FILES, PERMIT, calls_us
from . import hook_sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..install.client_table import InstallTarget

ABILITIES = {
    "start": ("SessionStart",),
    "prompt": ("UserPromptSubmit",),
    "between tools": ("PostToolUse",),
    "stop": ("Stop",),
    "end": ("SessionEnd",),
    "wake when idle": (BELL,),
    "permit": (PERMIT,),
    "guard": ("PreToolUse",),
    "guard files": (FILES,),
}
"""The things a client's sessions can have, and our hooks that all must be there for each."""


class ClientOverview(Record):
    """A client: what its hooks do for a session, and the settings files that call us."""

    name: str
    abilities: tuple[str, ...]
    installed: tuple[str, ...]


def overview(here: str, environ: Mapping[str, str]) -> list[ClientOverview]:
    """Return every client, with its settings of the directory ``here`` and of the user."""
    return [
        ClientOverview(client.name, _abilities(client), _installed(client, here, environ))
        for client in client_table.CLIENTS
    ]


def _abilities(client: InstallTarget) -> tuple[str, ...]:
    hooks = {wanted.event for wanted in client.hooks}
    return tuple(name for name, needed in ABILITIES.items() if hooks.issuperset(needed))


def _installed(client: InstallTarget, here: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    places = (client_table.project(client, here).settings, client_table.user(client, environ).settings)
    is_installed = _is_ours if client.is_plugin else _calls_us
    return tuple(path for path in dict.fromkeys(map(os.path.realpath, places)) if is_installed(path))


def _is_ours(path: str) -> bool:
    return opencode_plugin.hook_of(hook_sources.read(path) or b"") is not None


def _calls_us(path: str) -> bool:
    source = hook_sources.source(path, "")
    return source is not None and any(calls_us(hook) for _, _, hook in source.hooks())
