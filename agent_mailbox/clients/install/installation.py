"""``install CLIENT`` and back: what changes in which file, as a plan that can be shown before it is carried out.

Belongs here: which files, the decisions about each, the order, and which hooks a client's version knows. ``merge``
merges texts, ``foreign_files`` writes and remembers files, ``places`` says where each client has them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from ...core.records import Record
from ...core.text import shell_quoted
from ...errors import BadData
from ...store.files import paths, programs
from ...store.files.small_files import Storing
from ...store.locks.lock import FileLock
from ...store.user_state import removed_hooks
from .. import places, texts
from ..foreign_fields import rules_of
from ..permission import file_guard as ours
from ..places import Target
from . import foreign_files as files
from . import hook_entries, merge, opencode_plugin, shared_section, status_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...known_clients.known_client import KnownClient, Wanted

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAIN = os.path.join(PACKAGE, "__main__.py")
UNBAKED = "python= main= state="
"""The line of the shim that an installation fills in."""


class Bounds(Record):
    """The client's own restrictions. ``asks``: rules about which it always asks. ``sandbox``: commands reach only
    ``hosts`` and do not write what is ``kept``. ``alone``: install only these, for the sessions call us already."""

    asks: tuple[str, ...] = ()
    sandbox: bool = False
    kept: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    alone: bool = False


UNBOUND = Bounds()


class InstallPart(Record):
    """One file, and what becomes of its bytes (None: no file; equal: no change). ``add`` gets whether they are as we
    wrote them, ``remove`` the file before us; ``whole``: all of it is ours."""

    path: str
    add: Callable[[bytes | None, bool], bytes]
    remove: Callable[[bytes, bytes | None], bytes | None]
    whole: bool = False


class InstallPlan(Record):
    """The changes, in order, and the files left alone: (path, why). ``place``: whose sessions it is about, a project's
    directory, or empty for all of the user's. ``removes``: it takes our hooks out there."""

    changes: tuple[files.Change, ...]
    left: tuple[tuple[str, str], ...]
    place: str = ""
    removes: bool = False


# -- the shim ---------------------------------------------------------------------------------------------------------


def shim_file(environ: Mapping[str, str]) -> tuple[str, bytes | None]:
    """Return the path of the shim that hooks call, and its text if it is to be written there.

    A checkout with an environment of its own has a shim that finds it. Else the shim is written into the user's data
    directory, with the paths of interpreter and package: hooks start without the person's PATH.
    """
    if (beside := checkout_shim()) is not None:
        return beside, None
    data = environ.get("XDG_DATA_HOME") or ""
    if not data.startswith("/"):
        data = os.path.join(os.path.abspath(environ.get("HOME") or "/"), ".local", "share")
    return os.path.join(data, "agent-mailbox", hook_entries.SHIM), _baked_shim(environ)


def checkout_shim() -> str | None:
    """Return the shim of a checkout with an environment of its own; None elsewhere."""
    root = os.path.dirname(PACKAGE)
    beside = os.path.join(root, "hooks", hook_entries.SHIM)
    has_both = os.access(os.path.join(root, ".venv", "bin", "python"), os.X_OK) and os.access(beside, os.X_OK)
    return beside if has_both else None


def own_places(environ: Mapping[str, str], project: str) -> tuple[str, ...]:
    """Return what sandboxed commands must not write, because it decides or runs outside. That is also each place of
    the project where the PATH would find another program by our name."""
    environment = os.path.dirname(os.path.dirname(sys.executable))
    ours = [paths.state_directory(environ), paths.configuration_directory(environ), os.path.realpath(PACKAGE)]
    ours += [shim_file(environ)[0], *([environment] if os.path.exists(os.path.join(environment, "pyvenv.cfg")) else [])]
    within = f"{os.path.realpath(project)}/"
    searched = [os.path.realpath(place) for place in (environ.get("PATH") or "").split(os.pathsep) if place]
    planted = [os.path.join(place, hook_entries.PROGRAM) for place in searched if f"{place}/".startswith(within)]
    return tuple(dict.fromkeys([*filter(os.path.exists, ours), *planted]))


def _baked_shim(environ: Mapping[str, str]) -> bytes:
    text = files.read_packaged(hook_entries.SHIM)
    python, main, state = map(shell_quoted, (sys.executable, MAIN, paths.state_directory(environ)))
    return text.replace(f"\n{UNBAKED}".encode(), os.fsencode(f"\npython={python} main={main} state={state}"), 1)


# -- the parts --------------------------------------------------------------------------------------------------------


def _install_parts(
    target: Target, hook: str, program: str, bounds: Bounds, *, removes: bool = False, line: bool = False
) -> Iterator[InstallPart]:
    client = target.client
    more: dict[str, Any] = {"permissions": {merge.ASK: [*bounds.asks]}}
    if bounds.sandbox:
        more["sandbox"] = texts.sandbox_settings(program, bounds.kept, bounds.hosts)
    if bounds.alone:
        yield _settings_part(os.path.realpath(target.settings), merge.Ours((), more))
        return
    more["permissions"][merge.ALLOW] = [*texts.allow_rules(program)] if client.has_rules else []
    for name, text in client.files(texts.make_wording(program, is_for_user=not target.project)).items():
        if not removes and shared_section.is_told(target, name):
            continue
        yield _whole_file(os.path.realpath(os.path.join(target.base, name)), text.encode("utf-8", "surrogateescape"))
    if client.is_plugin:
        yield _whole_file(os.path.realpath(target.settings), opencode_plugin.plugin_text(hook, program).encode())
        return
    if client.memory:
        yield _memory_part(os.path.realpath(target.memory))
    wanted = fitting_hooks(client, os.environ)
    hooks = [(one, one.command_line(texts.hook_command(hook, one.event, client))) for one in wanted]
    ours = merge.Ours(hooks, more | {"version": 1}, client.time_key) if client.is_flat else merge.Ours(hooks, more)
    yield _settings_part(
        os.path.realpath(target.settings), ours, (client.status_line, hook, line), comments=client.has_comments
    )  # last: the hooks call what is written before


def _whole_file(path: str, text: bytes) -> InstallPart:
    return InstallPart(
        path,
        add=lambda data, untouched: text if data is None or untouched else data,
        remove=lambda data, _: None if data == text else data,
        whole=True,
    )


def _memory_part(path: str) -> InstallPart:
    def change_text(data: bytes | None, change: Callable[[str], str]) -> bytes:
        return change((data or b"").decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    return InstallPart(
        path,
        add=lambda data, _: change_text(data, lambda text: merge.with_section(path, text, texts.SECTION)),
        remove=lambda data, _: change_text(data, lambda text: merge.without_section(path, text)),
    )


def _settings_part(
    path: str, ours: merge.Ours, line: tuple[str, str, bool] = ("", "", False), *, comments: bool = False
) -> InstallPart:
    key, shim, is_wanted = line

    def read(data: bytes) -> tuple[dict[str, Any], merge.Form]:
        return merge.parse_settings(path, data, comments=comments)

    def add_ours(data: bytes | None, _: bool) -> bytes:
        settings, form = read(data or b"")
        current = merge.without_rules(settings, merge.ALLOW, texts.is_outdated)
        wanted = merge.merge_ours(path, merge.without_exclusions(current, texts.is_outdated_exclusion), ours)
        wanted = status_setting.with_line(wanted, key, shim, is_wanted=is_wanted) if key else wanted
        return data if data is not None and wanted == settings else merge.write_settings(wanted, form, settings)

    def remove_ours(data: bytes, original: bytes | None) -> bytes:
        settings, form = read(data)
        before = read(original)[0] if original else {}
        kept = merge.without_ours(
            settings, lambda key, rule: texts.is_rule(key, rule) and rule not in rules_of(before, key)
        )
        kept = merge.without_settings(kept, {"sandbox": ours.more.get("sandbox", {})}, before)
        kept = status_setting.without_line(kept, key) if key else kept
        return data if kept == settings else merge.write_settings(kept, form, settings)

    return InstallPart(path, add_ours, remove_ours)


# -- plans ------------------------------------------------------------------------------------------------------------


def plan_installation(
    target: Target, environ: Mapping[str, str], program: str, bounds: Bounds = UNBOUND, *, line: bool = False
) -> InstallPlan:
    """Return the plan of installing; it is empty if all is there. ``program`` is how an agent starts ours. ``line``:
    with a status line, if nobody has another there.

    Raises ``BadData`` for a file that cannot be merged into, ``StorageFailed``.
    """
    records = files.FileRecords(environ)
    hook, text = shim_file(environ)
    changes, left = [], []
    if text is not None and (there := files.read_foreign(hook)) != text:
        changes.append(files.Change(hook, there, text, None, 0o777))
    for part in _install_parts(target, hook, program, bounds, line=line):
        data, entry = files.read_foreign(part.path), records.find_record(part.path)
        untouched = data is not None and entry is not None and files.checksum_of(data) in entry.written
        wanted = part.add(data, untouched)
        if wanted != data:
            changes.append(files.Change(part.path, data, wanted, _record_after(part, data, wanted, entry, untouched)))
        elif part.whole and wanted != part.add(None, False):
            left.append((part.path, "it is not ours, or was edited"))
    changes += shared_section.spared_file(target, records)
    return InstallPlan(tuple(changes), tuple(left), target.project)


def _record_after(
    part: InstallPart, data: bytes | None, wanted: bytes, entry: files.Remembered | None, untouched: bool
) -> files.Remembered:
    """Return the record of a file that becomes ``wanted``. For a file edited while ours was in it, the original is
    unknown. Then the old record stays, in case the edit is taken back."""
    new = files.checksum_of(wanted)
    if entry is not None and untouched and data is not None:
        return entry.replace(written=(files.checksum_of(data), new))
    if data is None or part.remove(data, data) == data:
        above = reversed([*places.directories_above(part.path)])  # the uppermost first
        made = (*(entry.directories if entry else ()), *(one for one in above if not os.path.isdir(one)))
        return files.Remembered(original=data, written=(new,), directories=tuple(dict.fromkeys(made)))
    return entry or files.Remembered(original=None, written=(), directories=())


def plan_removal(target: Target, environ: Mapping[str, str], program: str, mailbox: str = "") -> InstallPlan:
    """Return the plan of uninstalling: an unedited file becomes what it was, any other loses only ours.

    Raises as ``plan_installation`` does.
    """
    records = files.FileRecords(environ)
    hook, _ = shim_file(environ)
    changes, left = [], []
    bounds = Bounds(sandbox=True, kept=(mailbox, *own_places(environ, os.path.dirname(target.base))))
    parts = [*_install_parts(target, hook, program, bounds, removes=True)]
    for part in reversed(parts):  # remove hooks before the files they call
        data, entry = files.read_foreign(part.path), records.find_record(part.path)
        if data is None:
            after = None
        elif entry is not None and files.checksum_of(data) in entry.written:
            after = entry.original
        else:
            try:
                after = part.remove(data, entry.original if entry else None)
            except BadData:
                if entry is not None or hook_entries.PROGRAM.encode() in data:
                    raise
                after = data  # nothing of ours is in it
            if entry is not None and entry.original is None and entry.written and _is_bare(after):
                after = None
        if after is not None and part.whole and entry is not None:
            left.append((part.path, "it was edited"))
        if after != data or entry is not None:
            changes.append(files.Change(part.path, data, after, None))
    if path := shared_section.missing_file(target, records):
        text = shared_section.own_text(texts.make_wording(program))
        part = _whole_file(path, wanted := text.encode("utf-8", "surrogateescape"))
        changes.append(files.Change(path, None, wanted, _record_after(part, None, wanted, None, False)))
    return InstallPlan(tuple(changes), tuple(left), target.project, removes=True)


def _is_bare(data: bytes | None) -> bool:
    """Return whether nothing is left but the number of the file's form."""
    return data is not None and data.translate(None, b" \t\r\n") in (b"", b"{}", b'{"version":1}')


def plan_diff(plan: InstallPlan) -> str:
    """Return the plan as a unified diff."""
    lines: list[str] = []
    for change in plan.changes:
        (old, was), (new, becomes) = _diff_side(change.path, change.before), _diff_side(change.path, change.after)
        lines += unified_diff(was, becomes, old, new, lineterm="")
    return "\n".join([*lines, ""]) if lines else ""


def _diff_side(path: str, data: bytes | None) -> tuple[str, list[str]]:
    if data is None:
        return "/dev/null", []
    return path, data.decode("utf-8", "backslashreplace").splitlines()


def carry_out(plan: InstallPlan, environ: Mapping[str, str]) -> list[str]:
    """Make the plan's changes; returns the paths of the files that changed.

    Killed at any step, each file is the old or the new one, and a retry completes it. Raises ``Busy`` if a file changed
    meanwhile or another process installs, ``Refused`` if one is read-only, ``StorageFailed``.
    """
    state = paths.state_directory(environ)
    if not plan.removes:
        removed_hooks.forget(state, plan.place)
    if not plan.changes:
        return []
    files.refuse_read_only(one.path for one in plan.changes if one.after != one.before)
    records = files.FileRecords(environ)
    with Storing("make", records.directory):
        os.makedirs(records.directory, mode=0o700, exist_ok=True)
    changed = []
    with FileLock(os.path.join(records.directory, "lock")):
        for change in plan.changes:
            files.carry_out(change, records)
            if change.after is not None and os.path.basename(change.path) == hook_entries.SHIM:
                # no tool may write it from now on
                ours.record_shims(state, (*ours.installed_shims(state), os.path.realpath(change.path)))
            if change.after != change.before:
                changed.append(change.path)
    if plan.removes:
        removed_hooks.note(state, plan.place)
    return changed


def written_shim(environ: Mapping[str, str]) -> list[str]:
    """Return the path of the shim that was written for hooks, if there is one."""
    hook, text = shim_file(environ)
    return [hook] if text is not None and os.path.exists(hook) else []


def forget_shim(environ: Mapping[str, str]) -> list[str]:
    """Remove the shim that was written for hooks, unless another installation calls it; returns its path if it went."""
    if not (written := written_shim(environ)) or not files.FileRecords(environ).none_left():
        return []
    (hook,) = written
    state = paths.state_directory(environ)
    with Storing("remove", hook):
        os.unlink(hook)
        ours.record_shims(state, (path for path in ours.installed_shims(state) if path != hook))
    place = os.path.dirname(hook)
    files.remove_empty((os.path.dirname(place), place))
    return written


# -- the client's version ---------------------------------------------------------------------------------------------


_PATIENCE = 10.0
"""Seconds that a client may take to say its version."""


def fitting_hooks(client: KnownClient, environ: Mapping[str, str]) -> Sequence[Wanted]:
    """Return the hooks, each on the event that the client's version on the ``PATH`` has for it, or on none.

    An older version may take no settings at all that name an event which it does not know. One that cannot be asked
    counts as new, as those that tests run."""
    hooks = client.hooks()
    if not any(wanted.since for wanted in hooks):
        return hooks
    if (version := _read_version(client.program, environ)) is None:
        return hooks
    return [one.replace(on=one.other, event=one.other, other=one.on) if version < one.since else one for one in hooks]


def _read_version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    path = shutil.which(program, path=environ.get("PATH", ""))
    if path is None:
        return None
    try:
        told = programs.ask([path, "--version"], _PATIENCE, environ=environ)
    except OSError:
        return None
    found = re.search(rb"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", told.out)
    return tuple(int(part) for part in found.groups()) if found else None
