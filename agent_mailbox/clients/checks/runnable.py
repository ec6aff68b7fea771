"""Checks of one hook of ours: can it run, and does it do its work? First a look, then a try.

Belongs here: what a hook's command needs to run. A failing hook says nothing (the client goes on). So the doctor tries
the program, with a call that writes nothing and that it must answer: a command to be refused.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from typing import TYPE_CHECKING

from ...core.findings import Problem
from ...core.text import typed
from ...store.files import programs
from ...store.files.small_files import read_if_possible
from ..install.hook_entries import PROGRAM, SHIM, without_exec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .hook_sources import HookSource

SHIMS = (SHIM, "check-mailbox.sh", "session-start.sh")
INSTALL = "`agent-mailbox install claude-code`"
PATIENCE = 20
"""Seconds a hook may take when it is tried; the client waits half as long."""
_TRIAL = (
    b'{"session_id":"doctor-on-trial","hook_event_name":"PreToolUse","tool_name":"Bash",'
    b'"tool_input":{"command":"agent-mailbox send --body @doctor-on-trial"}}\n'
)


def installing_command(client: str, project: str = "") -> str:
    """Return the command that renews an installation: in this project, or the user's own."""
    is_here = project and os.path.realpath(project) == os.path.realpath(os.getcwd())
    scope = "" if is_here else f" --project {typed(project)}" if project else " --user"
    return f"`agent-mailbox install {client}{scope}`"


def why_not_runnable(command: str, project: str, environ: Mapping[str, str], root: str = "") -> str | None:
    """Return why the command cannot run; None if nothing is wrong. ``root`` is its plugin's place."""
    known = (("CLAUDE_PROJECT_DIR", project), ("HOME", environ.get("HOME") or ""), ("CLAUDE_PLUGIN_ROOT", root))
    for variable, value in known:
        command = command.replace(f"${{{variable}}}", value).replace(f"${variable}", value)
    try:
        words = without_exec(shlex.split(command))
    except ValueError:
        return "its quotes do not match; correct the command"
    while words and "=" in words[0].partition("/")[0]:
        words.pop(0)  # an assignment for the command
    for number, word in enumerate(words):
        ours = os.path.basename(word) in (PROGRAM, *SHIMS)
        if ours or (number == 0 and "/" in word):
            wrong = _wrong_program(word, project, environ, started=number == 0)
            if wrong is not None:
                return wrong
    return None


def check_hook(
    source: HookSource, event: str, command: str, renews: str, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the problem of a hook that cannot run. ``renews``: what renews the installation that it is of."""
    wrong = why_not_runnable(command, source.project, environ, source.root)
    if wrong is not None:
        what = f"the hook of {event} cannot run: {wrong.replace(INSTALL, renews)}"
        yield Problem(source.path, source.line_of(command), what)


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
            return f"{path} is not executable; run `chmod +x` on it"
    if os.path.basename(path) in SHIMS:
        return _wrong_shim(path, environ)
    return _wrong_interpreter(path)


def _wrong_shim(path: str, environ: Mapping[str, str]) -> str | None:
    """Return why a shim cannot run. It takes the Python that an installation wrote into it, else the checkout's own,
    else the installed program (``hooks/agent-mailbox-hook``)."""
    lines = (read_if_possible(path, through_links=True) or b"").decode("utf-8", "surrogateescape").splitlines()
    try:
        words = shlex.split(next((line for line in lines if line.startswith("python=")), ""))
    except ValueError:
        words = []
    values = dict(word.partition("=")[::2] for word in words)
    python, main = values.get("python", ""), values.get("main", "")
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
    return f"{python} is missing, and no {PROGRAM} is on PATH; run scripts/demo, or install agent-mailbox"


def _wrong_interpreter(path: str) -> str | None:
    """Return why a script cannot start: its interpreter is gone, as with a removed virtual environment.

    That of the installed command is in the entry point's script beside it (``start/agent-mailbox``).
    """
    for script in (path, f"{path}-python"):
        try:
            with open(script, "rb") as file:
                first = file.readline(512)
        except OSError:
            continue
        words = first[2:].split() if first.startswith(b"#!") else []
        if words and not os.path.exists(words[0]):
            return f"{script} needs {os.fsdecode(words[0])}, which is gone; install agent-mailbox again"
    return None


# -- trying it --------------------------------------------------------------------------------------------------------


def try_hook(program: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return what is wrong with the answer of a hook's program; None if it does its work.

    Run it only if the person installed it: a clone's settings may name a stranger's program.
    """
    kept = {k: v for k, v in environ.items() if not k.startswith(("CLAUDE", "AGENT_MAILBOX_", "XDG_"))}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            told = {**kept, "HOME": scratch}
            words = [*program, "PreToolUse"]
            done = programs.ask(words, PATIENCE, given=_TRIAL, directory=scratch, environ=told)
    except OSError as error:
        return f"it could not be tried: {error.strerror}"
    said = f" ({line})" if (line := done.last_line()) else ""
    if done.code:
        return f"tried, it ended with exit code {done.code}{said}"
    if not any(b'"permissionDecision":"%s"' % word in done.out for word in (b"ask", b"deny")):
        return f"tried, it did not refuse to send a file unasked{said}"
    return None
