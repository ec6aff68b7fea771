"""Starting a client's session in the background, by the client's own way or in a window of tmux.

Belongs here: the words for each client. A session's id is known before its first turn, so that its entry in the roster
is there before. ``start_servers`` speaks to the servers of Codex and OpenCode.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

from ...core import codec
from ...core.records import Record
from ...core.text import neutral
from ...errors import Refused
from ...identity import background_jobs
from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from ...store.files import small_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE = 60.0
"""Seconds that a client may take to begin a session."""
LAST = 10.0
"""Seconds that a client's service may take to let go of a session."""
LOOK = 0.1
"""Seconds between two looks."""


class Start(Record):
    """A session to start. ``words``: the person's program and its arguments. ``session_id``: the one to bring back;
    empty for a new one. ``wishes``: who it is, for a client that gets it by variables. ``log``: a file for what a
    server says."""

    name: str
    client: str
    words: tuple[str, ...]
    prompt: str
    directory: str
    model: str = ""
    worktree: bool = False
    session_id: str = ""
    wishes: Mapping[str, str] = {}
    log: str = ""


class Begun(Record):
    """A session that has begun. ``server``: the process that runs it, if ``up`` started that; ``window`` of tmux."""

    session_id: str
    server: int = 0
    window: str = ""


def start_claude(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have Claude Code's background service begin or bring back a session."""
    if start.session_id:
        _let_go(start, environ)
        register(start.session_id)
    words = [*start.words, "--bg", *_claude_words(start, start.session_id), "--", start.prompt]
    said = run_client(words, start.directory, environ)
    if start.session_id:
        _refuse_copy(start, said, environ)
        return Begun(start.session_id)
    me = _begun_session(said, environ)
    register(me)  # its first hook comes a second later
    return Begun(me)


def has_talk(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether Claude Code still has the session's talk, without which it can bring back nothing. It removes old
    ones, and a session that was killed in its first turn has none. True if it is unknown."""
    projects = os.path.join(CLAUDE_CODE.find_home(environ), "projects")
    names = small_files.list_names(projects)
    return not names or any(os.path.exists(os.path.join(projects, name, f"{session_id}.jsonl")) for name in names)


def wait_while(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until that is not so any more, but no longer than so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and is_so():
        time.sleep(LOOK)


def _let_go(start: Start, environ: Mapping[str, str]) -> None:
    """Have the service let go of a session that it still lists, as after a restart of the machine.

    It would make a copy of that one."""
    if background_jobs.of(start.session_id, environ) is not None:
        run_client([*start.words, "stop", start.session_id[:8]], start.directory, environ)
        wait_while(lambda: background_jobs.of(start.session_id, environ) is not None, LAST)


def _refuse_copy(start: Start, said: str, environ: Mapping[str, str]) -> None:
    """End a copy of a session, and raise ``Refused``. The service makes one while it still holds the session."""
    for word in _told_session(said):
        if not start.session_id.startswith(word):
            run_client([*start.words, "stop", word], start.directory, environ)
            raise Refused("Claude Code made a copy of its session, which was ended", "run `up` again in a few seconds")


def _told_session(said: str) -> list[str]:
    return said.partition("backgrounded")[2].split()[1:2]


def _begun_session(said: str, environ: Mapping[str, str]) -> str:
    """Return the session that the service says it began: it chooses the id, and tells the beginning (2.1.329)."""
    home = CLAUDE_CODE.find_home(environ)
    for word in _told_session(said):
        data = small_files.read_if_possible(os.path.join(home, "jobs", os.path.basename(word), "state.json"))
        job = codec.parse(data or b"", ours=False)
        me = job.get("sessionId") if isinstance(job, dict) else None
        if isinstance(me, str) and me.startswith(word):
            return me
    raise Refused(f"Claude Code did not say which session it began: {neutral(said)[:200]}", "see `claude agents`")


def _claude_words(start: Start, me: str) -> list[str]:
    which = ["--resume", me] if start.session_id else ["--session-id", me] if me else []
    tree = ["--worktree", start.name] if start.worktree and not start.session_id else []
    return [*which, *tree, *(["--model", start.model] if start.model else [])]


def run_client(words: Sequence[str], directory: str, environ: Mapping[str, str]) -> str:
    """Run a client's command that ends by itself; return what it said. Raise ``Refused`` if it fails."""
    try:
        done = subprocess.run(
            words, cwd=directory, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{words[0]} cannot be started: {error}", "check it by hand in a terminal") from None
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        raise Refused(f"{shlex.join(words[:2])} failed ({done.returncode}): {said[-500:]}", "try it in a terminal")
    return said


def start_in_tmux(start: Start, register: Callable[[str], None], environ: Mapping[str, str], session: str) -> Begun:
    """Start a client in a window of its own of a tmux session, which is made if it is missing."""
    me = start.session_id or (str(uuid.uuid4()) if start.client == CLAUDE_CODE.word else "")
    if me:
        register(me)
    variables = [word for name, value in start.wishes.items() for word in ("-e", f"{name}={value}")]
    words = shlex.join([*start.words, *_terminal_words(start, me)])
    has = subprocess.run(["tmux", "has-session", "-t", f"={session}"], env=dict(environ), capture_output=True)
    new = ["new-window", "-t", f"={session}:"] if has.returncode == 0 else ["new-session", "-s", session]
    printed = ["-d", "-P", "-F", "#{window_id} #{pane_pid}", "-n", start.name]  # no -c: tmux runs `#(…)` in it
    window, pid = run_client(["tmux", *new, *printed, *variables, words], start.directory, environ).split()[-2:]
    return Begun(me, server=int(pid), window=window)


def _terminal_words(start: Start, me: str) -> list[str]:
    if start.client == CLAUDE_CODE.word:
        return [*_claude_words(start, me), "--", start.prompt]
    model = ["--model", start.model] if start.model else []
    if start.client == CODEX.word:
        return [*(["resume", me] if start.session_id else []), *model, "--", start.prompt]
    return [*(["--session", me] if start.session_id else []), *model, "--prompt", start.prompt]


def spawn_server(words: Sequence[str], start: Start, environ: Mapping[str, str]) -> int:
    """Start a client's server, which outlives us; return its process. It writes into ``start.log``."""
    with open(os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        try:
            return subprocess.Popen(
                words,
                cwd=start.directory,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ).pid
        except OSError as error:
            raise Refused(f"{words[0]} cannot be started: {error.strerror}", "check it in a terminal") from None
