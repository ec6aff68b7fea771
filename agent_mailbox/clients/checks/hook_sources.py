"""The sources of a client's hooks: the settings of the user and of projects, and the plugins they enable. Read only.

Belongs here: which files there are, which hooks they hold, which projects the person trusts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.records import BadLine, Record
from ...core.text import clipped, neutral
from ...known_clients.every_client import USUAL
from ...known_clients.known_client import BEFORE_TOOL, PERMISSION
from ...store.files.small_files import read_if_possible
from ..client_files import read_object
from ..install import commented
from ..install.hook_entries import calls_us, is_group
from .asked_tools import MAX_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MAX_STATE = 64 << 20
"""Bytes read of the client's own state."""
MOST = 100
"""Characters of another's command that are told."""
_COMMANDS = ("command", "bash")
"""The keys of a hook's command."""
MANAGED = USUAL.managed
"""Settings of the machine's administrator, which overrule all others."""


class HookSource(Record):
    """One file with hooks. ``settings`` is None if it is not JSON, and ``reason`` says why. Its commands run in
    ``project``, whose own it is if ``of_project``; its ``plugin`` lies in ``root``."""

    path: str
    text: bytes
    settings: dict[str, Any] | None
    project: str
    reason: str = ""
    of_project: bool = False
    plugin: str = ""
    root: str = ""

    def each_hook(self) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """Yield (event, group, hook) for every hook; skip what has another shape."""
        hooks = (self.settings or {}).get("hooks")
        for event, groups in hooks.items() if isinstance(hooks, dict) else ():
            for group in groups if isinstance(groups, list) else ():
                for hook in group["hooks"] if is_group(group) else ():
                    yield event, group, hook
                if isinstance(group, dict) and not is_group(group) and not group.keys().isdisjoint(_COMMANDS):
                    yield event, group, group  # of a client whose hooks stand in no groups

    def changing_hooks(self, events: Collection[str] = (BEFORE_TOOL, PERMISSION)) -> Iterator[str]:
        """Yield the commands of other tools' hooks that may change a call after ours judged it."""
        for event, _, hook in self.each_hook():
            if event in events and isinstance(hook, dict) and not calls_us(hook):
                command = next((hook[key] for key in _COMMANDS if key in hook), None)
                yield clipped(neutral(str(command)), MOST)

    def has_setting(self, key: str) -> bool:
        """Return whether this setting is on."""
        return (self.settings or {}).get(key) is True


def find_sources(projects: Mapping[str, None], here: str, environ: Mapping[str, str]) -> list[HookSource]:
    """Return the user's settings, those of the projects, and the hooks of the plugins they enable."""
    found = [read_source(os.path.join(USUAL.find_home(environ), "settings.json"), here)]
    names = ("settings.json", "settings.local.json")
    found += [
        read_source(os.path.join(p, USUAL.directory, name), p, of_project=True) for p in projects for name in names
    ]
    there: dict[str, HookSource] = {}
    for one in found:
        if one is not None:
            there.setdefault(one.path, one)  # in the home directory they are also a project's
    return [*there.values(), *_plugin_sources(list(there.values()), projects, here, environ)]


def managed_sources() -> list[HookSource]:
    """Return the administrator's settings."""
    return [found for path in MANAGED if (found := read_source(path, "/")) is not None]


def read_source(
    path: str, project: str, *, of_project: bool = False, plugin: str = "", root: str = "", comments: bool = False
) -> HookSource | None:
    """Return a settings file; None if there is none to read. ``comments``: its client accepts them."""
    text = read_if_possible(path, through_links=True)
    if text is None:
        return None
    plain = text
    if comments:
        plain = commented.blanked(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    value = codec.parse(plain, MAX_SETTINGS, ours=False)
    if isinstance(value, BadLine):
        return HookSource(path, text, None, project, value.reason, of_project, plugin, root)
    return HookSource(path, text, value, project, "", of_project, plugin, root)


def _plugin_sources(
    given: list[HookSource], projects: Mapping[str, None], here: str, environ: Mapping[str, str]
) -> Iterator[HookSource]:
    enabled: dict[str, bool] = {}
    for one in given:  # later files overrule earlier ones
        table = (one.settings or {}).get("enabledPlugins")
        enabled |= {name: on is True for name, on in table.items()} if isinstance(table, dict) else {}
    list_of_plugins = os.path.join(USUAL.find_home(environ), "plugins", "installed_plugins.json")
    installed = read_object(list_of_plugins, MAX_STATE).get("plugins")
    for name, entries in installed.items() if isinstance(installed, dict) else ():
        for entry in entries if isinstance(entries, list) and enabled.get(name) else ():
            root = entry.get("installPath") if isinstance(entry, dict) else None
            project = entry.get("projectPath") if isinstance(entry, dict) else None
            if not isinstance(root, str) or (project is not None and project not in projects):
                continue
            path = os.path.join(root, "hooks", "hooks.json")
            found = read_source(path, project or here, plugin=name, root=root)
            if found is not None:
                yield found


def is_trusted(project: str, environ: Mapping[str, str]) -> bool | None:
    """Return whether the person told the client to trust the project, or a directory above it; None if never asked."""
    base = environ.get(USUAL.home_variable) or environ.get("HOME") or "/"
    projects = read_object(os.path.join(base, USUAL.state_file), MAX_STATE).get("projects")
    if not isinstance(projects, dict):
        return None
    directory = os.path.realpath(project)
    while True:
        said = projects.get(directory)
        if isinstance(said, dict) and said.get("hasTrustDialogAccepted") is True:
            return True
        if directory == os.path.dirname(directory):
            return False
        directory = os.path.dirname(directory)
