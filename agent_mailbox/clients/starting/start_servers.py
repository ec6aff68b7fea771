"""Sessions that a client's own server runs: Codex's by its socket, OpenCode's by its address on loopback.

Belongs here: what is said to each (seen with Codex 0.169 and 0.171, OpenCode 1.18). A session has its id before its
first turn.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from ...errors import Refused
from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from .start_words import PATIENCE, Begun, Start, spawn_server, start_claude

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST = 16 << 20
_LISTENS = "listening on "


def start_member(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a session in the background, as its client does that."""
    if start.client == CLAUDE_CODE.word:
        return start_claude(start, register, environ)
    return (start_codex if start.client == CODEX.word else start_opencode)(start, register, environ)


def start_opencode(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a server of OpenCode for one session, with a password that nobody else has."""
    password = secrets.token_hex(16)
    own = {**environ, "OPENCODE_SERVER_PASSWORD": password}
    pid = spawn_server([*start.words, "serve", "--hostname", "127.0.0.1", "--port", "0"], start, own)
    url = _address(start.log, pid)
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
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"OpenCode's server does not answer as expected: {error}", f"see {start.log}") from None
    return Begun(me, server=pid)


def _address(log: str, pid: int) -> str:
    """Return the address that a server tells once it listens."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                if _LISTENS in line and line.endswith("\n"):
                    return line.partition(_LISTENS)[2].split()[0]
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        time.sleep(0.05)
    raise Refused("OpenCode's server did not begin to listen", f"see {log}")


def start_codex(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have Codex's background server begin or bring back a session; start the server if none runs."""
    path = _socket_of(environ)
    server, line = 0, _connected(path)
    if line is None:
        server = spawn_server([*start.words, "app-server", "--listen", "unix://"], start, environ)
        until = time.monotonic() + PATIENCE
        while line is None:
            if os.waitpid(server, os.WNOHANG)[0] or time.monotonic() > until:
                raise Refused("Codex's server did not begin to listen", f"see {start.log}")
            time.sleep(0.05)
            line = _connected(path)
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
    return Begun(me, server=server)


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
