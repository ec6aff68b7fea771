"""Starting a client in a window of tmux."""

from __future__ import annotations

import re
import shlex
import uuid
from typing import TYPE_CHECKING

from ...core.text import neutral
from ...errors import Refused
from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from ...store.files import programs
from .claude_background import claude_words
from .start import Begun, run_client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .start import Start

_PATIENCE = 10.0
"""Seconds that tmux may take."""


def start_in_tmux(start: Start, register: Callable[[str], None], environ: Mapping[str, str], session: str) -> Begun:
    """Start a client in a window of its own of a tmux session, which is made if it is missing."""
    me = start.session_id or (str(uuid.uuid4()) if start.client == CLAUDE_CODE.word else "")
    if me:
        register(me)
    variables = [word for name, value in start.wishes.items() for word in ("-e", f"{name}={value}")]
    words = shlex.join([*start.words, *_terminal_words(start, me)])
    new = ["new-window", "-t", f"={session}:"] if _has_session(session, environ) else ["new-session", "-s", session]
    printed = ["-d", "-P", "-F", "#{window_id} #{pane_pid}", "-n", start.name]  # no -c: tmux runs `#(…)` in it
    try:
        said = run_client(["tmux", *new, *printed, *variables, words], start.directory, environ, _PATIENCE)
        found = re.fullmatch(r"(@\d+) (\d{1,10})", said)
        if found is None:
            see = f"`tmux attach -t {shlex.quote(session)}` shows whether it runs"
            raise Refused(f"tmux did not say which window it made: {neutral(said)[:200]!r}", see)
    except BaseException:
        programs.why_failed(["tmux", "kill-window", "-t", f"={session}:={start.name}"], _PATIENCE, environ=environ)
        raise
    return Begun(me, server=int(found[2]), window=found[1])


def _has_session(session: str, environ: Mapping[str, str]) -> bool:
    try:
        return programs.ask(["tmux", "has-session", "-t", f"={session}"], _PATIENCE, environ=environ).code == 0
    except OSError as error:
        raise Refused(f"tmux does not answer: {error.strerror}", "try `tmux ls` in a terminal") from None


def _terminal_words(start: Start, me: str) -> list[str]:
    if start.client == CLAUDE_CODE.word:
        return [*claude_words(start, me), "--", start.prompt]
    model = ["--model", start.model] if start.model else []
    if start.client == CODEX.word:
        return [*(["resume", me] if start.session_id else []), *model, "--", start.prompt]
    return [*(["--session", me] if start.session_id else []), *model, "--prompt", start.prompt]
