"""The hooks of clients other than Claude Code: do those that call us lead anywhere? For the doctor; it writes nothing.

Belongs here: their files, and the problems of an installation there. ``runnable`` knows what a command needs to run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.findings import Problem
from ...core.text import shell_quoted
from ...known_clients.every_client import CLIENTS, USUAL
from ...store.files.small_files import read_if_possible
from ..install import opencode_plugin
from ..install.hook_entries import calls_us, part_called
from . import codex_checks, hook_sources, runnable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from ...known_clients.known_client import KnownClient
    from .hook_sources import HookSource


def check_other_clients(
    projects: Mapping[str, None], here: str, environ: Mapping[str, str]
) -> Generator[Problem, None, list[str]]:
    """Yield hooks of ours that cannot run; notes if only some events are hooked, one more than once, or Codex skips
    them. The generator's value: the commands that renew what is there."""
    anything: list[str] = []
    for client in CLIENTS:
        if client is USUAL:
            continue  # ``settings`` looks at its hooks, and calls this
        files = _files_calling_us(client, projects, here, environ)
        if client.is_plugin:
            found = yield from _check_plugins(client, files, environ)
            anything += [_renewing_command(client, path, environ) for path in found]
            continue
        read = (hook_sources.read_source(*file, comments=client.has_comments) for file in files.items())
        sources = [source for source in read if source is not None]
        if not client.is_installed:
            yield from _check_idle(client, sources, environ)
            continue
        hooked: dict[tuple[str, str], list[str]] = {}
        for source in sources:
            yield from _looked_at(client, source, environ, hooked)
        yield from _note_events(client, hooked, environ)
        anything += [_renewing_command(client, path, environ) for paths in hooked.values() for path in paths]
    return anything


def _check_idle(client: KnownClient, sources: Sequence[HookSource], environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a note for each file in which an earlier version left hooks that do nothing now."""
    for source in sources:
        if source.calls_us():
            remove = _renewing_command(client, source.path, environ).replace(" install ", " uninstall ", 1)
            what = f"our hooks of {client.title} do nothing: remove them with {remove}"
            yield Problem(source.path, None, what, note=True)


def _check_plugins(
    client: KnownClient, files: Mapping[str, str], environ: Mapping[str, str]
) -> Generator[Problem, None, list[str]]:
    """Yield the problems of our plugins in a client: a missing hook, a plugin installed twice. The generator's value:
    their paths."""
    there: list[str] = []
    for path, project in files.items():
        text = read_if_possible(path, through_links=True) or b""
        hook = opencode_plugin.hook_of(text)
        if hook is None:
            continue
        there.append(path)
        renewed = _renewing_command(client, path, environ)
        wrong = runnable.why_not_runnable(shell_quoted(hook), project, environ)
        if wrong is not None:
            line = text.count(b"\n", 0, text.find(b"\nconst HOOK")) + 2
            what = f"the plugin cannot call its hook: {wrong.replace(runnable.INSTALL, renewed)}"
            yield Problem(path, line, what)
        elif opencode_plugin.is_another(text):
            yield Problem(path, None, f"it is not this version's plugin: {renewed} renews an unedited one", note=True)
    if len(there) > 1:
        also = ", ".join(there[:-1])
        what = f"{client.title} calls us {len(there)} times, also from {also}: once is enough; remove the others"
        yield Problem(there[-1], None, what, note=True)
    return there


def _renewing_command(client: KnownClient, path: str, environ: Mapping[str, str]) -> str:
    """Return the command that renews what a file of the client's has of us."""
    own = os.path.join(client.find_home(environ), client.settings[1])
    project = path.removesuffix(os.path.join("/", client.directory, client.settings[0])) or "/"
    return runnable.installing_command(client.name, "" if path == own else project)


def _files_calling_us(
    client: KnownClient, projects: Mapping[str, None], here: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the client's files that may call us, each with the directory in which it does."""
    own = os.path.join(client.find_home(environ), client.settings[1])
    files = {os.path.realpath(own): (own, here)}
    for project in projects:
        path = os.path.join(project, client.directory, client.settings[0])
        files.setdefault(os.path.realpath(path), (path, project))
    return dict(files.values())


def _looked_at(
    client: KnownClient, source: HookSource, environ: Mapping[str, str], hooked: dict[tuple[str, str], list[str]]
) -> Iterator[Problem]:
    """Yield the problems of each hook in one file; fill in which events are hooked where, by event and part."""
    yield from source.note_unreadable()
    for event, _, hook in source.each_hook():
        if calls_us(hook):
            hooked.setdefault((event, part_called(hook)), []).append(source.path)
            renews = _renewing_command(client, source.path, environ)
            yield from runnable.check_hook(source, event, hook["command"], renews, environ)
    skipped = codex_checks.untrusted_events(source.path, source.settings or {}, environ) if client.trusts_hooks else ()
    if skipped:
        how = f"start {client.program}, enter /hooks"
        what = f"{client.title} skips the hooks of {', '.join(skipped)} until you trust them: {how}"
        yield Problem(source.path, None, what, note=True)


def _note_events(
    client: KnownClient, hooked: Mapping[tuple[str, str], list[str]], environ: Mapping[str, str]
) -> Iterator[Problem]:
    there = dict.fromkeys(event for event, _ in hooked)
    missing = [event for event in client.events if event not in there]
    if hooked and missing:
        first = next(iter(hooked.values()))[0]
        puts = f"{_renewing_command(client, first, environ)} adds all of them"
        yield Problem(first, None, f"hooks {', '.join(there)}, but not {', '.join(missing)}: {puts}", note=True)
    for (event, _), where in hooked.items():
        if len(where) > 1:
            also = "".join(f", and in {path}" for path in sorted(set(where[:-1]) - {where[-1]}))
            what = f"{event} calls us {len(where)} times, here{also}: once is enough; remove the others"
            yield Problem(where[-1], None, what, note=True)
