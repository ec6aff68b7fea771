"""The sources of a client's hooks: the settings of the user and of projects, and the plugins they enable. Read only.

Belongs here: which files there are, which hooks they hold, which projects the person trusts. Another tool's hook or
plugin may change a call after ours judged it.
"""

from __future__ import annotations

import glob
import os
import tomllib
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.findings import Problem
from ...core.records import BadLine, Record
from ...core.text import clipped, neutral
from ...known_clients.every_client import USUAL
from ...known_clients.known_client import BEFORE_TOOL, PERMISSION, PERMIT
from ...store.files.small_files import read_if_possible
from .. import places
from ..foreign_fields import MAX_SETTINGS, read_object
from ..install import commented, opencode_plugin
from ..install.hook_entries import calls_us, is_group

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ...known_clients.known_client import KnownClient

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

    def calls_us(self) -> bool:
        """Return whether a hook calls us."""
        return any(calls_us(hook) for _, _, hook in self.each_hook())

    def note_unreadable(self) -> Iterator[Problem]:
        """Yield a note if it is not JSON."""
        if self.settings is None:
            yield Problem(self.path, None, f"{self.reason}: the client ignores its hooks", note=True)

    def line_of(self, command: str) -> int | None:
        """Return the number of the line with a hook's command."""
        place = self.text.find(codec.dumps(command).encode("utf-8", "surrogatepass"))
        return None if place < 0 else self.text.count(b"\n", 0, place) + 1

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
    """Return the user's settings, those of the projects, and the hooks of the plugins they enable.

    Each file comes once: two projects may be spellings of one, and one may be the home directory."""
    user, *_ = places.settings_files(here, environ)
    found = {os.path.realpath(user): read_source(user, here)}
    for project in projects:
        for path in places.settings_files(project, environ):
            if (real := os.path.realpath(path)) not in found:
                found[real] = read_source(path, project, of_project=True)
    there = [source for source in found.values() if source is not None]
    return [*there, *_plugin_sources(there, projects, here, environ)]


def installed_settings(client: KnownClient, here: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a client's settings of the directory ``here`` and of the user that call us."""
    settings = (places.project_target(client, here).settings, places.user_target(client, environ).settings)

    def is_ours(path: str) -> bool:
        if client.is_plugin:
            return opencode_plugin.hook_of(read_if_possible(path, through_links=True) or b"") is not None
        source = read_source(path, "", comments=client.has_comments)
        return source is not None and source.calls_us()

    return tuple(filter(is_ours, dict.fromkeys(map(os.path.realpath, settings))))


def changed_by(path: str, command: str) -> Problem:
    """Return the note about another tool's hook in a file."""
    what = "another tool's hook, which may change a command that our rules let pass"
    return Problem(path, None, f"{command}: {what}", note=True)


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
    settings, reason = (None, value.reason) if isinstance(value, BadLine) else (value, "")
    return HookSource(path, text, settings, project, reason, of_project, plugin, root)


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
            if (found := read_source(path, project or here, plugin=name, root=root)) is not None:
                yield found


def is_trusted(project: str, environ: Mapping[str, str]) -> bool | None:
    """Return whether the person told the client to trust the project, or a directory above it; None if never asked."""
    base = environ.get(USUAL.home_variable) or environ.get("HOME") or "/"
    projects = read_object(os.path.join(base, USUAL.state_file), MAX_STATE).get("projects")
    if not isinstance(projects, dict):
        return None
    directory = os.path.realpath(project)
    said = (projects.get(place) for place in (directory, *places.directories_above(directory)))
    return any(isinstance(one, dict) and one.get("hasTrustDialogAccepted") is True for one in said)


def find_changing(client: KnownClient, project: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the file and the command of each other tool that may change a call of a session in that project."""
    if client is USUAL:
        events = {BEFORE_TOOL, PERMISSION}
        sources = find_sources({project: None}, project, environ)
    else:
        events = {wanted.on for wanted in client.hooks() if wanted.event in (BEFORE_TOOL, PERMIT, PERMISSION)}
        events |= {event[0].lower() + event[1:] for event in events}  # Copilot CLI takes both spellings
        read = (_read_hooks(client, path, project) for path in _files_of(client, project, environ))
        sources = [source for source in read if source is not None]
    for source in sources:
        if client.is_plugin:
            yield from ((source.path, name) for name in _plugins_of(source))
        else:
            yield from ((source.path, command) for command in source.changing_hooks(events))


def _files_of(client: KnownClient, project: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the client's files with hooks, each once, the user's first."""
    bases = (client.find_home(environ), os.path.join(project, client.directory))
    found = dict[str, None]()
    for base, settings in zip(bases, reversed(client.settings), strict=True):
        found[os.path.join(base, settings)] = None
        for pattern in client.hook_files:
            found.update(dict.fromkeys(sorted(glob.glob(os.path.join(glob.escape(base), pattern)))))
    if client.is_plugin:
        found.update(dict.fromkeys(os.path.join(project, name) for name in client.beside))
    yield from found


def _read_hooks(client: KnownClient, path: str, project: str) -> HookSource | None:
    if not path.endswith(".toml"):
        return read_source(path, project, comments=client.has_comments or client.is_plugin)
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
