"""The parts that all ways to start a client's session share.

Belongs here: the session to start, running a client's command, and waiting for its server. A program that is asked may
say nothing, half a line, or no text. Whatever was started is then ended, since nothing else knows of it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, cast

from ...core.records import Record
from ...errors import Refused
from ...known_clients.every_client import STARTED
from ...store.files import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO, TypeVar

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
WRONG = (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The errors of an answer that is none, or has another shape."""


class Start(Record):
    """A session to start. ``words``: the person's program and its arguments. ``session_id``: the one to bring back;
    empty for a new one. ``wishes``: who it is, for a client that gets it by variables. ``log``: a file for what a
    server says. ``note_server`` takes that server's process before anything is asked of it."""

    name: str
    client: str
    words: tuple[str, ...]
    prompt: str
    directory: str
    note_server: Callable[[int], None]
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


@contextlib.contextmanager
def answering_server(
    start: Start, environ: Mapping[str, str], words: Sequence[str], look: Callable[[], T | None], there: T | None = None
) -> Iterator[tuple[T, int]]:
    """Yield what a look finds once a client's server listens, and its process: 0 if it was ``there``. Else these words
    start it. It outlives us, but not a ``with`` block that fails: nothing else would know of it.

    Raise ``Refused`` if it ends before, takes too long, prints without end, or does not answer as the block expects."""
    server = _spawn_server(words, start, environ) if there is None else None
    title, until = STARTED[start.client].title, time.monotonic() + PATIENCE
    try:
        while there is None and (there := look()) is None:
            is_over = server is None or server.poll() is not None or time.monotonic() > until
            if is_over or os.path.getsize(start.log) > MOST:
                raise Refused(f"{title}'s server did not begin to listen", f"see {start.log}")
            time.sleep(0.05)
        yield there, server.pid if server else 0
    except BaseException as error:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if server is not None and server.poll() is None:
                os.killpg(server.pid, number)
                wait_while(lambda: server.poll() is None, LAST)
        if isinstance(error, WRONG):
            raise Refused(f"{title}'s server does not answer as expected: {error}", f"see {start.log}") from None
        raise


def _spawn_server(words: Sequence[str], start: Start, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Return a server's process. It begins once that is noted: never, if we are killed before."""
    held = ["/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", *words]
    with open(os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        server = subprocess.Popen(
            held, cwd=start.directory, env=environ, stdin=subprocess.PIPE, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    with cast("IO[bytes]", server.stdin) as begins:
        start.note_server(server.pid)
        begins.write(b"\n")
    return server


@contextlib.contextmanager
def closed_after(line: socket.socket, seconds: float) -> Iterator[None]:
    """Close a connection with a ``with`` block, or after so many seconds: then what is read from it ends."""
    limit = threading.Timer(seconds, line.shutdown, [socket.SHUT_RDWR])
    limit.start()
    try:
        yield
    finally:
        limit.cancel()
        line.close()
