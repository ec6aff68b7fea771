"""Starting a client's session in the background, by the client's own way or in a window of tmux.

Belongs here: the words for each client, and what is said to its server (seen with Codex 0.169 and 0.171, OpenCode
1.18). Codex has a socket, OpenCode an address on loopback. A session's id is known before its first turn, so that its
entry in the roster is there before. A new one of ``claude --bg`` tells its id once it began, a second before its first
hook: that second is all there is.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from ..core.records import Record
from ..core.text import neutral
from ..errors import Refused
from ..identity import background_jobs
from ..known_clients.claude_code import CLAUDE_CODE
from ..known_clients.codex import CODEX
from ..store.files import small_files
from .foreign_fields import read_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    T = TypeVar("T")

PATIENCE = 60.0
"""Seconds that a client may take to begin a session."""
LAST = 10.0
"""Seconds that a client's service may take to let go of a session."""
LOOK = 0.1
"""Seconds between two looks."""
_MOST = 16 << 20
_LISTENS = "listening on "


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


def start_member(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a session in the background, as its client does that."""
    if start.client == CLAUDE_CODE.word:
        return start_claude(start, register, environ)
    return (start_codex if start.client == CODEX.word else start_opencode)(start, register, environ)


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
        me = read_object(os.path.join(home, "jobs", os.path.basename(word), "state.json")).get("sessionId")
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


def start_opencode(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a server of OpenCode for one session, with a password that nobody else has."""
    password = secrets.token_hex(16)
    own = {**environ, "OPENCODE_SERVER_PASSWORD": password}
    pid = spawn_server([*start.words, "serve", "--hostname", "127.0.0.1", "--port", "0"], start, own)
    with _or_end(pid):
        url = _wait_until("OpenCode", pid, start.log, lambda: _address(start.log))
        return Begun(_begin_opencode(start, register, url, password), server=pid)


def _begin_opencode(start: Start, register: Callable[[str], None], url: str, password: str) -> str:
    secret = base64.b64encode(f"opencode:{password}".encode()).decode()

    def call(path: str, value: Any) -> Any:
        head = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
        request = urllib.request.Request(f"{url}{path}", json.dumps(value).encode(), head)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read(_MOST) or b"null")

    try:
        me = start.session_id or str(call("/session", {"title": start.name})["id"])
        register(me)
        provider, _, model = start.model.partition("/")
        chosen = {"model": {"providerID": provider, "modelID": model}} if model else {}
        call(f"/session/{me}/prompt_async", {**chosen, "parts": [{"type": "text", "text": start.prompt}]})
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise Refused(f"OpenCode's server does not answer as expected: {error}", f"see {start.log}") from None
    return me


@contextlib.contextmanager
def _or_end(server: int) -> Iterator[None]:
    """End a server, if one was started, with a ``with`` block that fails: nothing else would know of it."""
    try:
        yield
    except BaseException:
        if server:
            with contextlib.suppress(OSError):
                os.killpg(server, signal.SIGTERM)
        raise


def _address(log: str) -> str | None:
    """Return the address that a server told as it began to listen."""
    with open(log, encoding="utf-8", errors="replace") as file:
        told = (line.partition(_LISTENS)[2] for line in file if _LISTENS in line and line.endswith("\n"))
        return next((words.split()[0] for words in told), None)


def _wait_until(client: str, server: int, log: str, look: Callable[[], T | None]) -> T:
    """Return what a look finds once the server listens. Raise ``Refused`` if it ends before, or takes too long."""
    until = time.monotonic() + PATIENCE
    while (found := look()) is None:
        if os.waitpid(server, os.WNOHANG)[0] or time.monotonic() > until:
            raise Refused(f"{client}'s server did not begin to listen", f"see {log}")
        time.sleep(0.05)
    return found


def start_codex(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have Codex's background server begin or bring back a session; start the server if none runs."""
    path = _socket_of(environ)
    server, line = 0, _connected(path)
    if line is None:
        server = spawn_server([*start.words, "app-server", "--listen", "unix://"], start, environ)
    with _or_end(server):
        line = line or _wait_until("Codex", server, start.log, lambda: _connected(path))
        return Begun(_begin_codex(start, register, line), server=server)


def _begin_codex(start: Start, register: Callable[[str], None], line: socket.socket) -> str:
    try:
        with line:
            talk = _Talk(line)
            talk.ask("initialize", {"clientInfo": {"name": "agent-mailbox", "version": "1"}})
            talk.tell("initialized", {})
            model = {"model": start.model} if start.model else {}
            place = {"cwd": start.directory, **model}
            if start.session_id:
                talk.ask("thread/resume", {"threadId": start.session_id, **place})
            me = start.session_id or str(talk.ask("thread/start", place)["thread"]["id"])
            register(me)
            words = [{"type": "text", "text": start.prompt, "text_elements": []}]
            talk.ask("turn/start", {"threadId": me, "input": words})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"Codex's server does not answer as expected: {error}", f"see {start.log}") from None
    return me


def is_listening(environ: Mapping[str, str]) -> bool:
    """Return whether Codex's background server runs."""
    line = _connected(_socket_of(environ))
    if line is not None:
        line.close()
    return line is not None


def _socket_of(environ: Mapping[str, str]) -> str:
    return os.path.join(CODEX.find_home(environ), "app-server-control", "app-server-control.sock")


def _connected(path: str) -> socket.socket | None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(PATIENCE)
    try:
        line.connect(os.path.realpath(path))  # its own place may be longer than the system takes
    except OSError:
        line.close()
        return None
    return line


class _Talk:
    """JSON-RPC over a WebSocket (RFC 6455) on an open socket; raises ``ValueError`` for what is none."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._count, self._rest = line, 0, b""
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        line.sendall(
            f"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ValueError("it takes no WebSocket")

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of a call; raise ``ValueError`` for its error."""
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        while True:
            said = json.loads(self._message())
            if isinstance(said, dict) and said.get("id") == self._count and "method" not in said:
                if "error" in said:
                    raise ValueError(f"{method}: {str(said['error'])[:300]}")
                return said["result"]

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell something that has no answer."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, value: Mapping[str, Any]) -> None:
        data, mask = json.dumps(value).encode(), secrets.token_bytes(4)
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        length = length if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big")
        self._line.sendall(b"\x81" + length + mask + bytes(c ^ mask[at % 4] for at, c in enumerate(data)))

    def _message(self) -> bytes:
        """Return the next text, whole; control frames are passed by."""
        whole = b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            size = int.from_bytes(self._take({126: 2, 127: 8}[size]), "big") if size > 125 else size
            if len(whole) + size > _MOST:
                raise ValueError("its answer is too long")
            data = self._take(size)
            if first & 0x0F < 3:
                whole += data
                if first & 0x80:
                    return whole

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += self._more()
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _more(self) -> bytes:
        data = self._line.recv(1 << 16)
        if not data:
            raise ValueError("it closed the connection")
        return data
