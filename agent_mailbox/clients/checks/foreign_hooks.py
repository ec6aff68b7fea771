"""Hooks and plugins of other tools that may change a call after ours judged it, in the settings of each client.

Belongs here: the files where a client looks for them, and their names. Read only. ``enforcing`` and ``ran_calls`` tell
of them.
"""

from __future__ import annotations

import glob
import os
import tomllib
from typing import TYPE_CHECKING

from ...core.text import clipped, neutral
from ...known_clients.every_client import USUAL
from ...known_clients.known_client import BEFORE_TOOL, PERMISSION, PERMIT
from ...store.files.small_files import read_if_possible
from ..install import opencode_plugin
from ..places import user_directory
from . import hook_sources
from .hook_sources import MOST, HookSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...known_clients.known_client import KnownClient


def find_changing(client: KnownClient, project: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the file and the command of each that may change a call of a session in that project."""
    if client is USUAL:
        events = {BEFORE_TOOL, PERMISSION}
        sources = hook_sources.find_sources({project: None}, project, environ)
    else:
        events = {wanted.on for wanted in client.hooks() if wanted.event in (BEFORE_TOOL, PERMIT, PERMISSION)}
        events |= {event[0].lower() + event[1:] for event in events}  # Copilot CLI takes both spellings
        sources = [source for path in _files_of(client, project, environ) if (source := _read(client, path, project))]
    for source in sources:
        if client.is_plugin:
            yield from ((source.path, name) for name in _plugins_of(source))
        else:
            yield from ((source.path, command) for command in source.changing_hooks(events))


def _files_of(client: KnownClient, project: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the client's files with hooks, each once, the user's first."""
    bases = (user_directory(client, environ), os.path.join(project, client.directory))
    found = dict[str, None]()
    for base, settings in zip(bases, reversed(client.settings), strict=True):
        found[os.path.join(base, settings)] = None
        for pattern in client.hook_files:
            found.update(dict.fromkeys(sorted(glob.glob(os.path.join(glob.escape(base), pattern)))))
    if client.is_plugin:
        found.update(dict.fromkeys(os.path.join(project, name) for name in client.beside))
    yield from found


def _read(client: KnownClient, path: str, project: str) -> HookSource | None:
    if not path.endswith(".toml"):
        return hook_sources.read_source(path, project, comments=client.has_comments or client.is_plugin)
    text = read_if_possible(path, through_links=True)
    try:
        return None if text is None else HookSource(path, text, tomllib.loads(text.decode()), project)
    except ValueError:
        return None  # the client does not start with it


def _plugins_of(source: HookSource) -> Iterator[str]:
    """Yield the other plugins that a file is, or names."""
    named = (source.settings or {}).get("plugin")
    if source.path.endswith((".json", ".jsonc")):
        yield from (clipped(neutral(str(name)), MOST) for name in named) if isinstance(named, list) else ()
    elif opencode_plugin.hook_of(source.text) is None:
        yield clipped(neutral(os.path.basename(source.path)), MOST)
