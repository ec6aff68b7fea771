"""Starting a client in a window of tmux."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import uuid
from typing import TYPE_CHECKING

from ...core.text import neutral
from ...errors import Refused
from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from ...store.files import programs
from ...store.files.small_files import make_file
from .claude_background import claude_words
from .start import Begun, run_client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .start import Start

_PATIENCE = 10.0
"""Seconds that tmux may take."""
_HELD = 'while [ ! -e "$0" ] && kill -0 "$1"; do sleep 0.1; done 2>/dev/null; rm -- "$0" && shift && exec "$@"'
"""The program of a window: it begins the client once its process is noted, and ends if `up` is gone before."""


def start_in_tmux(start: Start, register: Callable[[str], None], environ: Mapping[str, str], session: str) -> Begun:
    """Make a window for a client in a tmux session, which is made if it is missing. ``let_begin`` begins the client."""
    me = start.session_id or (str(uuid.uuid4()) if start.client == CLAUDE_CODE.word else "")
    variables = [word for name, value in start.wishes.items() for word in ("-e", f"{name}={value}")]
    held = ["/bin/sh", "-c", _HELD, _mark_of(start), str(os.getpid())]
    words = shlex.join([*held, *start.words, *_terminal_words(start, me)])
    before = _windows(session, start.name, environ)
    new = ["new-session", "-s", session] if before is None else ["new-window", "-t", f"={session}:"]
    printed = ["-d", "-P", "-F", "#{window_id} #{pane_pid}", "-n", start.name]  # no -c: tmux runs `#(…)` in it
    try:
        said = run_client(["tmux", *new, *printed, *variables, words], start.directory, environ, _PATIENCE)
        found = re.fullmatch(r"(@\d+) (\d{1,10})", said)
        if found is None:
            see = f"`tmux attach -t {shlex.quote(session)}` shows whether it runs"
            raise Refused(f"tmux did not say which window it made: {neutral(said)[:200]!r}", see)
        if me:
            register(me)
    except BaseException:
        with contextlib.suppress(Refused):
            for window in (_windows(session, start.name, environ) or set()) - (before or set()):
                programs.why_failed(["tmux", "kill-window", "-t", window], _PATIENCE, environ=environ)
        raise
    return Begun(me, server=int(found[2]), window=found[1])


def let_begin(start: Start) -> None:
    """Let the client in a window begin."""
    make_file(_mark_of(start), b"")


def _mark_of(start: Start) -> str:
    return f"{start.log}.{os.getpid()}"


def session_name(mailbox: str) -> str:
    """Return the name of the tmux session of a mailbox's team."""
    above = os.path.basename(os.path.dirname(mailbox))
    name = "".join(c if c.isalnum() else "-" for c in above) or "team"
    return f"agent-mailbox-{name}"


def _windows(session: str, name: str, environ: Mapping[str, str]) -> set[str] | None:
    """Return the windows of that name; None if there is no such session. Another team's session may have the same
    name, and its member, too."""
    words = ["tmux", "list-windows", "-t", f"={session}", "-F", "#{window_id} #{window_name}"]
    try:
        done = programs.ask(words, _PATIENCE, environ=environ)
    except OSError as error:
        raise Refused(f"tmux does not answer: {error.strerror}", "try `tmux ls` in a terminal") from None
    rows = (row.partition(" ") for row in done.out.decode(errors="replace").splitlines())
    return {window for window, _, title in rows if title == name and window.startswith("@")} if not done.code else None


def _terminal_words(start: Start, me: str) -> list[str]:
    if start.client == CLAUDE_CODE.word:
        return [*claude_words(start, me), "--", start.prompt]
    model = ["--model", start.model] if start.model else []
    if start.client == CODEX.word:
        return [*(["resume", me] if start.session_id else []), *model, "--", start.prompt]
    return [*(["--session", me] if start.session_id else []), *model, "--prompt", start.prompt]
