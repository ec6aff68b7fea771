"""The parts that all ways to start a client's session share.

Belongs here: the session to start, running a client's command, and waiting for its server. A program that is asked may
say nothing, half a line, or no text. Whatever was started is then ended, since nothing else knows of it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from ...core.records import Record
from ...errors import Refused
from ...store.files import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    T = TypeVar("T")

PATIENCE = 60.0
"""Seconds that a client may take to begin a session."""
LAST = 10.0
"""Seconds that a client's service may take to let go of a session."""
STOPS = 20.0
"""Seconds that a client may take to end a session: a team has many."""
LOOK = 0.1
"""Seconds between two looks."""
MOST = 16 << 20
"""Bytes of an answer, and of what a server prints before it listens."""


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


def wait_while(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until that is not so any more, but no longer than so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and is_so():
        time.sleep(LOOK)


def run_client(words: Sequence[str], directory: str, environ: Mapping[str, str], seconds: float = PATIENCE) -> str:
    """Run a client's command that ends by itself; return what it printed. Raise ``Refused`` if it fails."""
    try:
        done = programs.ask(words, seconds, directory=directory, environ=environ)
    except programs.NoAnswer as error:
        raise Refused(f"{shlex.join(words[:2])} was ended: {error.strerror}", "try it in a terminal") from None
    except OSError as error:
        raise Refused(f"{words[0]} cannot be started: {error.strerror}", "check it in a terminal") from None
    if why := done.complaint():
        raise Refused(f"{shlex.join(words[:2])} failed: {why}", "try it in a terminal")
    return done.out.decode(errors="replace").strip()


def spawn_server(words: Sequence[str], start: Start, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a client's server, which outlives us. It writes into ``start.log``."""
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
            )
        except OSError as error:
            raise Refused(f"{words[0]} cannot be started: {error.strerror}", "check it in a terminal") from None


@contextlib.contextmanager
def ended_if_lost(server: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """End a server, if one was started, with a ``with`` block that fails: nothing else would know of it."""
    try:
        yield
    except BaseException:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if server is not None and server.poll() is None:
                os.killpg(server.pid, number)
                wait_while(lambda: server.poll() is None, LAST)
        raise


def wait_until_it_listens(
    client: str, server: subprocess.Popen[bytes] | None, log: str, look: Callable[[], T | None]
) -> T:
    """Return what a look finds once the server listens. Raise ``Refused`` if it ends before, takes too long, or prints
    without end."""
    until = time.monotonic() + PATIENCE
    while (found := look()) is None:
        if server is None or server.poll() is not None or time.monotonic() > until or os.path.getsize(log) > MOST:
            raise Refused(f"{client}'s server did not begin to listen", f"see {log}")
        time.sleep(0.05)
    return found
