"""The client's settings: do the hooks that call us lead anywhere? For the doctor; nothing here is ever written.

Belongs here: where Claude Code keeps its settings, which of its hooks are ours, what each needs to run.
"""

from __future__ import annotations

import os
import shlex
import shutil

from ..core import codec
from ..core.records import BadLine
from ..doctor.findings import Problem
from . import install
from . import install_merge as merge
from .hook import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

PROGRAM = "agent-mailbox"
SHIMS = ("agent-mailbox-hook", "check-mailbox.sh", "session-start.sh")
INSTALL = "`agent-mailbox install claude-code`"
MAX_SETTINGS = 4 << 20
"""Bytes of a settings file that are read: a person wrote it."""


def examine(directory: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Hooks of ours that cannot run, in the user's settings and those of the mailbox's and the present project; notes
    where only some of the events are hooked, one is hooked more than once, or the shim is an earlier version's."""
    hooked: dict[str, list[str]] = {}
    bells: dict[str, list[str]] = {}
    for path, project in _files(directory, environ).items():
        text = _read(path)
        if text is None:
            continue
        settings = codec.parse(text, MAX_SETTINGS, ours=False)
        if isinstance(settings, BadLine):
            yield Problem(path, None, f"not JSON ({settings.reason}): the client passes its hooks by", note=True)
            continue
        for event, command in _commands(settings):
            if PROGRAM in command or any(shim in command for shim in SHIMS[:2]):
                (bells if merge.is_bell({"command": command}) else hooked).setdefault(event, []).append(path)
                wrong = _wrong(command, project, environ)
                if wrong is not None:
                    yield Problem(path, _line(text, command), f"the hook of {event} cannot run: {wrong}")
    yield from _missing(hooked)
    yield from _doubled(hooked, "")
    yield from _doubled(bells, " for its doorbell")
    if hooked or bells:
        yield from _stale(environ)


def _missing(hooked: Mapping[str, list[str]]) -> Iterator[Problem]:
    missing = [event for event in EVENTS if event not in hooked]
    if hooked and missing:
        what = f"hooks {', '.join(hooked)}, but not {', '.join(missing)}: {INSTALL} puts in all of them"
        yield Problem(next(iter(hooked.values()))[0], None, what, note=True)


def _doubled(hooked: Mapping[str, list[str]], what_for: str) -> Iterator[Problem]:
    for event, places in hooked.items():
        if len(places) > 1:
            others = sorted(set(places[:-1]) - {places[-1]})
            where = f", and in {', '.join(others)}" if others else ""
            what = f"{event} calls us {len(places)} times{what_for}, here{where}: once is enough; remove the others"
            yield Problem(places[-1], None, what, note=True)


def _stale(environ: Mapping[str, str]) -> Iterator[Problem]:
    """The shim that an installation wrote: is it the one that it would write now?"""
    path, text = install.shim(environ)
    there = _read(path) if text is not None else None
    if there is not None and there != text:
        yield Problem(path, None, f"it was written by another installation: {INSTALL} renews it", note=True)


def _files(directory: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The settings files there may be, each with the project in which its commands run."""
    here = environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    home = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME") or "/", ".claude")
    found = {os.path.join(home, "settings.json"): here}
    for project in (here, os.path.dirname(directory)):
        for name in ("settings.json", "settings.local.json"):
            found.setdefault(os.path.join(project, ".claude", name), project)
    return found


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_SETTINGS)
    except OSError:
        return None


def _commands(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(event, command) of every hook, as far as the settings have the shape of settings."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            inner = group.get("hooks") if isinstance(group, dict) else None
            for hook in inner if isinstance(inner, list) else ():
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str):
                    yield event, command


def _line(text: bytes, command: str) -> int | None:
    place = text.find(codec.dumps(command).encode("utf-8", "surrogatepass"))
    return None if place < 0 else text.count(b"\n", 0, place) + 1


# -- can it run? ------------------------------------------------------------------------------------------------------


def _wrong(command: str, project: str, environ: Mapping[str, str]) -> str | None:
    """Why the command cannot run; None where nothing speaks against it."""
    for variable, value in (("CLAUDE_PROJECT_DIR", project), ("HOME", environ.get("HOME") or "")):
        command = command.replace(f"${{{variable}}}", value).replace(f"${variable}", value)
    try:
        words = shlex.split(command)
    except ValueError:
        return "its quotes do not match; correct the command"
    while words and "=" in words[0].partition("/")[0]:
        words.pop(0)  # a variable set for the command
    for number, word in enumerate(words):
        ours = os.path.basename(word) in (PROGRAM, *SHIMS)
        if ours or (number == 0 and "/" in word):
            wrong = _wrong_program(word, project, environ, started=number == 0)
            if wrong is not None:
                return wrong
    return None


def _wrong_program(word: str, project: str, environ: Mapping[str, str], *, started: bool) -> str | None:
    if "/" not in word:
        path = shutil.which(word, path=environ.get("PATH"))
        if path is None:
            return f"there is no {word} on PATH; install it, or write the command's whole path"
    else:
        path = os.path.join(project, os.path.expanduser(word))
        if not os.path.isfile(path):
            return f"{path} is not there; correct the command, or run {INSTALL}"
        if started and not os.access(path, os.X_OK):
            return f"{path} may not be run; `chmod +x` it"
    if os.path.basename(path) in SHIMS:
        return _wrong_shim(path, environ)
    return _wrong_interpreter(path)


def _wrong_shim(path: str, environ: Mapping[str, str]) -> str | None:
    """The shims take what an installation wrote into them, else the checkout's own Python, else the installed program
    (``hooks/agent-mailbox-hook``)."""
    python, main = _baked(path)
    baked = bool(python)
    if not baked:
        python = os.path.normpath(os.path.join(os.path.dirname(path), "..", ".venv", "bin", "python"))
    if os.access(python, os.X_OK) and (not baked or os.path.exists(main)):
        return None
    installed = shutil.which(PROGRAM, path=environ.get("PATH"))
    if installed is not None:
        return _wrong_interpreter(installed)
    if baked:
        return f"{path} needs {python} and {main}, and one is gone; install agent-mailbox again, then run {INSTALL}"
    return f"neither is {python} there nor {PROGRAM} on PATH; run scripts/demo, or install agent-mailbox"


def _baked(path: str) -> tuple[str, str]:
    """The interpreter and the start file that an installation wrote into a shim; empty where it wrote none."""
    lines = (_read(path) or b"").decode("utf-8", "surrogateescape").splitlines()
    line = next((line for line in lines if line.startswith("python=")), "")
    try:
        values = dict(word.partition("=")[::2] for word in shlex.split(line))
    except ValueError:
        values = {}
    return values.get("python", ""), values.get("main", "")


def _wrong_interpreter(path: str) -> str | None:
    """A script whose interpreter is gone (a virtual environment that was removed) does not start."""
    try:
        with open(path, "rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    words = first[2:].split() if first.startswith(b"#!") else []
    if words and not os.path.exists(words[0]):
        return f"{path} needs {os.fsdecode(words[0])}, which is gone; install agent-mailbox again"
    return None
