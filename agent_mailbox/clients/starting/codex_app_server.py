"""Codex's background server, asked over its socket: to begin a session, to bring one back, and what else it runs.

Belongs here: the words for it (seen with 0.169 and 0.171; ``codex app-server generate-json-schema`` has all). One
server runs the sessions of all the user's terminals. ``codex_server`` is about what it leaves on the disk.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any

from ...errors import Refused
from ...known_clients.codex import CODEX
from .. import codex_server
from .start import MOST, PATIENCE, Begun, ended_if_lost, spawn_server, wait_until_it_listens

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from .start import Start

ASKED = 10.0
"""Seconds for a question about what the server runs."""
_WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The errors of an answer that is none, or has another shape."""


def start_codex(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have Codex's background server begin or bring back a session; start the server if none runs."""
    home = CODEX.find_home(environ)
    line = _connected(home)
    server = None if line else spawn_server([*start.words, "app-server", "--listen", "unix://"], start, environ)
    with ended_if_lost(server):
        line = line or wait_until_it_listens("Codex", server, start.log, lambda: _connected(home))
        return Begun(_begin_codex(start, register, line), server=server.pid if server else 0)


def _begin_codex(start: Start, register: Callable[[str], None], line: socket.socket) -> str:
    try:
        with line:
            talk = _Talk(line, PATIENCE)
            model = {"model": start.model} if start.model else {}
            place = {"cwd": start.directory, **model}
            if start.session_id:
                talk.ask("thread/resume", {"threadId": start.session_id, **place})
            me = start.session_id or str(talk.ask("thread/start", place)["thread"]["id"])
            register(me)
            words = [{"type": "text", "text": start.prompt, "text_elements": []}]
            talk.ask("turn/start", {"threadId": me, "input": words})
    except _WRONG as error:
        raise Refused(f"Codex's server does not answer as expected: {error}", f"see {start.log}") from None
    return me


def is_listening(environ: Mapping[str, str]) -> bool:
    """Return whether Codex's background server runs."""
    line = _connected(CODEX.find_home(environ))
    if line is not None:
        line.close()
    return line is not None


def serves_others(ours: Container[str], environ: Mapping[str, str]) -> bool:
    """Return whether the server has a terminal at it, or runs a session that is neither one of ours nor a subagent's. A
    server that does not answer may run any."""
    home = CODEX.find_home(environ)
    try:
        if codex_server.count_terminals(home):
            return True
        line = _connected(home)
        if line is None:
            return False  # nobody can reach a session in it any more
        with line:
            talk = _Talk(line, ASKED)
            loaded = [one for one in talk.ask("thread/loaded/list", {})["data"] if one not in ours]
            told = (talk.ask("thread/read", {"threadId": one})["thread"] for one in loaded)
            return any(one.get("parentThreadId") is None for one in told)
    except _WRONG:
        return True


def _connected(home: str) -> socket.socket | None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(PATIENCE)
    try:
        line.connect(
            os.path.realpath(codex_server.socket_of(home))
        )  # its own place may be longer than the system takes
    except OSError:
        line.close()
        return None
    return line


class _Talk:
    """JSON-RPC over a WebSocket (RFC 6455) on an open socket, for so many seconds; raises ``ValueError`` for what is
    none."""

    def __init__(self, line: socket.socket, seconds: float) -> None:
        self._line, self._count, self._rest, self._until = line, 0, b"", time.monotonic() + seconds
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
        self.ask("initialize", {"clientInfo": {"name": "agent-mailbox", "version": "1"}})
        self.tell("initialized", {})

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
            if len(whole) + size > MOST:
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
        left = self._until - time.monotonic()
        if left <= 0 or len(self._rest) > 2 * MOST:
            raise ValueError("it does not come to an end")
        self._line.settimeout(left)
        data = self._line.recv(1 << 16)
        if not data:
            raise ValueError("it closed the connection")
        return data
