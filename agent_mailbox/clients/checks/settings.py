"""The client's settings: do the hooks that call us lead anywhere? For the doctor; it writes nothing.

Belongs here: the problems of an installation as a whole: none, several, a partial one, one that the client ignores.
``hook_sources`` finds the hooks, ``runnable`` says whether one can run, ``other_clients`` checks Codex and Gemini CLI.
"""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

from ...control_plane import control_log
from ...control_plane.standing import find_standing, withholds
from ...core import frame
from ...core.findings import Problem
from ...core.records import Record
from ...core.roster import DEAD
from ...core.text import typed
from ...known_clients.claude_code import COMMANDS, FILE_TOOLS
from ...known_clients.every_client import USUAL
from ...known_clients.known_client import BEFORE_TOOL, BELL, FILES, PERMIT
from ...mailbox.open_mailbox import OpenMailbox
from ...store.files.small_files import read_if_possible
from .. import texts
from ..foreign_fields import rules_of
from ..hooks.hook_events import HOOKS
from ..install import installation
from ..install.hook_entries import PROGRAM, SHIM, calls_us, is_covering, part_called, without_exec
from . import codex_checks, enforcing, hook_sources, other_clients, runnable
from .runnable import INSTALL, SHIMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..places import Target
    from .hook_sources import HookSource


class FoundHook(Record):
    """A hook that calls us: where, for which event, by what command; ``part``: which of an event's hooks it is."""

    source: HookSource
    event: str
    command: str
    part: str = ""


def check_settings(directory: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of our hooks: those that cannot run or fail, in the user's settings, the mailbox's and the
    present project's, and plugins. Notes name missing, partial, doubled, outdated and ignored ones."""
    here = environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    projects = dict.fromkeys((here, os.path.dirname(directory)))
    found: list[FoundHook] = []
    all_of_them = hook_sources.find_sources(projects, here, environ)
    for source in all_of_them:
        yield from source.note_unreadable()
        for hook in _own_hooks(source):
            yield from runnable.check_hook(source, hook.event, hook.command, way_in(source), environ)
            found.append(hook)
    elsewhere = yield from other_clients.check_other_clients(projects, here, environ)
    if found:
        yield from _note_hooks(found)
        yield from _passed_by(found, all_of_them, environ)
        yield from _note_open(directory, found, all_of_them)
        yield from _note_outdated(all_of_them)
        yield from _try_hooks(found, environ)
    elif not elsewhere:
        yield from _note_missing(directory, here, environ)
    if elsewhere:
        yield from codex_checks.check_waking(directory, environ)
    yield from enforcing.examine(directory, environ)
    if found or elsewhere:
        yield from _note_stale(
            [*(way_in(hook.source) for hook in found if not hook.source.plugin), *elsewhere], environ
        )


def other_sources(target: Target, environ: Mapping[str, str]) -> list[HookSource]:
    """Return what besides the target makes the same sessions call us: every hook would run twice."""
    project = target.project or os.getcwd()
    return _sources_beside(target.settings, {project: None}, project, environ)


def covering_sources(target: Target, environ: Mapping[str, str]) -> list[HookSource]:
    """Return what besides the target makes all its sessions call us already: for all sessions, only the user's."""
    if target.project:
        return other_sources(target, environ)
    return _sources_beside(target.settings, {}, os.getcwd(), environ)


def _sources_beside(
    settings: str, projects: Mapping[str, None], here: str, environ: Mapping[str, str]
) -> list[HookSource]:
    """Return what besides these settings has sessions call us."""
    found = hook_sources.find_sources(projects, here, environ)
    path = os.path.realpath(settings)
    return [source for source in found if os.path.realpath(source.path) != path and any(_own_hooks(source))]


def own_plugins(environ: Mapping[str, str]) -> list[HookSource]:
    """Return the plugins of ours that the user's own settings enable, or the present directory's."""
    found = hook_sources.find_sources({os.getcwd(): None}, os.getcwd(), environ)
    return [source for source in found if source.plugin and any(_own_hooks(source))]


def is_there(target: Target) -> bool:
    """Return whether the target's settings call us."""
    source = hook_sources.read_source(target.settings, "")
    return source is not None and any(_own_hooks(source))


def way_out(source: HookSource) -> str:
    """Return the command that removes what is installed there."""
    if source.plugin:
        return f"`claude plugin uninstall {source.plugin}`"
    if source.of_project and not source.path.endswith(".local.json"):
        return f"take them out of {source.path} by hand"
    if source.of_project:
        return f"`agent-mailbox uninstall claude-code --project {typed(source.project)}`"
    return "`agent-mailbox uninstall claude-code --user`"


def way_in(source: HookSource) -> str:
    """Return what renews the installation that is there."""
    if source.plugin:
        return f"an update of the plugin {source.plugin}"
    if source.of_project and not source.path.endswith(".local.json"):
        return f"an edit of {source.path}, which no command of ours wrote,"
    return runnable.installing_command(USUAL.name, source.project if source.of_project else "")


def source_name(source: HookSource) -> str:
    """Return the source's name, for people."""
    return f"the plugin {source.plugin}" if source.plugin else source.path


def _own_hooks(source: HookSource) -> Iterator[FoundHook]:
    for event, group, hook in source.each_hook():
        command = hook.get("command") if isinstance(hook, dict) else None
        matcher = FILE_TOOLS if part_called(hook) == FILES else COMMANDS if event == BEFORE_TOOL else None
        if not isinstance(command, str) or (matcher is not None and not is_covering(group, matcher)):
            continue
        if PROGRAM in command or any(shim in command for shim in SHIMS[:2]):
            yield FoundHook(source, event, command, part_called(hook))


# -- the installation as a whole --------------------------------------------------------------------------------------


def _note_missing(directory: str, here: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Note that no hook calls us, only if the client is in use: a mailbox serves others as well."""
    if os.path.isdir(USUAL.find_home(environ)) or os.path.isdir(os.path.join(here, USUAL.directory)):
        what = f"no hook of Claude Code calls us, so its sessions do not see mail by themselves: {INSTALL} adds hooks"
        yield Problem(directory, None, what, note=True)


def _note_hooks(found: Sequence[FoundHook]) -> Iterator[Problem]:
    parts: dict[str, dict[str, list[HookSource]]] = {"": {}, BELL: {}, PERMIT: {}, FILES: {}}
    for hook in found:
        parts[hook.part].setdefault(hook.event, []).append(hook.source)
    hooked = parts[""]
    newer = [wanted for wanted in USUAL.hooks() if wanted.since]
    is_older = any(wanted.other in hooked for wanted in newer if wanted.other)
    spared = {wanted.on if is_older else wanted.other for wanted in newer}  # the client's version has no such event
    missing = [event for event in HOOKS if event not in hooked and event not in spared]
    if missing:
        what = f"hooks {', '.join(hooked)}, but not {', '.join(missing)}: {way_in(found[0].source)} adds all of them"
        yield Problem(found[0].source.path, None, what, note=True)
    if parts[PERMIT] and not parts[FILES]:
        what = f"no hook keeps tools from writing the mailbox's files: {way_in(found[0].source)} adds it"
        yield Problem(found[0].source.path, None, what, note=True)
    whys = {"": "", BELL: " for its doorbell", PERMIT: " for what it may do", FILES: " for the files it may write"}
    for part, why in whys.items():
        yield from _note_doubled(found, parts[part], why)


def _note_doubled(found: Sequence[FoundHook], hooked: Mapping[str, list[HookSource]], why: str) -> Iterator[Problem]:
    doubled: dict[tuple[str, ...], list[str]] = {}
    for event, sources in hooked.items():
        if len(sources) > 1:
            doubled.setdefault(tuple(source.path for source in sources), []).append(event)
    by_path = {hook.source.path: hook.source for hook in found}
    for where, events in doubled.items():
        more = [by_path[path] for path in dict.fromkeys(where) if path != where[-1]]
        also = "".join(f", and in {source_name(other)} ({way_out(other)})" for other in more)
        calls = "calls" if len(events) == 1 else "call"
        here = "in this plugin" if by_path[where[-1]].plugin else "here"
        what = (
            f"{', '.join(events)} {calls} us {len(where)} times{why}, {here}{also}: once is enough; remove the others"
        )
        yield Problem(where[-1], None, what, note=True)


def _passed_by(
    found: Sequence[FoundHook], all_of_them: Sequence[HookSource], environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield settings by which the client runs no hooks, and projects it does not trust."""
    for source in (*hook_sources.managed_sources(), *(source for source in all_of_them if not source.plugin)):
        if source.has_setting("disableAllHooks"):
            yield Problem(source.path, None, "disableAllHooks is set: no hook runs, ours included; take it out")
    for source in hook_sources.managed_sources():
        if source.has_setting("allowManagedHooksOnly"):
            what = "allowManagedHooksOnly is set: the client runs only its administrator's hooks, so none of ours"
            yield Problem(source.path, None, f"{what}; ask them to put ours in")
    for project in dict.fromkeys(hook.source.project for hook in found if hook.source.of_project):
        if hook_sources.is_trusted(project, environ) is False:
            what = f"{project} is not trusted: its hooks do not run; start `claude` there once and answer its question"
            yield Problem(project, None, what, note=True)


def _note_open(directory: str, found: Sequence[FoundHook], all_of_them: Sequence[HookSource]) -> Iterator[Problem]:
    """Yield agents that only hooks restrict: a failing hook fails open, and one of another tool may change what ours
    judged."""
    box = OpenMailbox(directory)
    roster = control_log.of(box).roster
    bound = [a for a in roster.agents.values() if a.state != DEAD and withholds(find_standing(box, a.session_id))]
    if not bound:
        return
    for source in all_of_them:
        yield from (hook_sources.changed_by(source.path, command) for command in source.changing_hooks())
    asking = (rules_of(source.settings or {}, "ask") for source in all_of_them)
    if not any(all(rule in asks for rule in texts.FLOOR) for asks in asking):
        names = ", ".join(frame.name_of(agent.session_id, roster) for agent in bound[:3])
        more = f" and {len(bound) - 3} others" if len(bound) > 3 else ""
        what = f"{names}{more}: kept from something by our hooks alone, and a failing hook fails open"
        more = "`agent-mailbox install claude-code --closed` makes the client ask"
        yield Problem(found[0].source.path, None, f"{what}: {more}", note=True)


def _note_outdated(all_of_them: Sequence[HookSource]) -> Iterator[Problem]:
    """Yield rules of an earlier version, by which an agent decides unasked."""
    for source in all_of_them:
        if freed := [rule for rule in rules_of(source.settings or {}, "allow") if texts.is_outdated(rule)]:
            what = f"{', '.join(freed)}: decisions run unasked, by rules of an earlier version"
            yield Problem(source.path, None, f"{what}; {way_in(source)} takes them out")


# -- does it do its work? ---------------------------------------------------------------------------------------------


def _try_hooks(found: Sequence[FoundHook], environ: Mapping[str, str]) -> Iterator[Problem]:
    """Try each program that hooks call once, if the person installed it; yield those that fail."""
    programs: dict[tuple[str, ...], FoundHook] = {}
    for hook in found:
        wrong = runnable.why_not_runnable(hook.command, hook.source.project, environ, hook.source.root)
        if wrong is None and (program := _own_program(hook, environ)):
            programs.setdefault(program, hook)
    for program, hook in programs.items():
        wrong = runnable.try_hook(program, environ)
        if wrong is not None:
            what = f"the hook of {hook.event} calls {program[0]}, which fails silently: {wrong}"
            line = hook.source.line_of(hook.command)
            yield Problem(hook.source.path, line, f"{what}; install agent-mailbox again")


def _own_program(hook: FoundHook, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the program if it is the one on ``PATH``, an installation's shim, or an installed plugin's; else
    nothing."""
    if not calls_us({"command": hook.command}):
        return ()
    command = hook.command.replace("${CLAUDE_PLUGIN_ROOT}", hook.source.root)
    words = without_exec(shlex.split(command))
    own = [installation.shim_file(environ)[0]]
    if hook.source.root:
        own.append(os.path.join(hook.source.root, "hooks", SHIM))
    if len(words) == 2 and words[0] in own:
        return (words[0],)
    if words[:2] == [PROGRAM, "hook"] and (path := shutil.which(PROGRAM, path=environ.get("PATH"))) is not None:
        return (path, "hook")
    return ()


def _note_stale(ways: Sequence[str], environ: Mapping[str, str]) -> Iterator[Problem]:
    """Note that the installed shim differs from the one this installation would write; the first of the ways renews
    it."""
    path, text = installation.shim_file(environ)
    there = read_if_possible(path, through_links=True) if text is not None else None
    if there is not None and there != text and ways:
        yield Problem(path, None, f"it was written by another installation: {ways[0]} renews it", note=True)
