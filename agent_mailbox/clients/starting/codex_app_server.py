"""Codex's background server, asked over its socket: to begin a session, to bring one back, and what else it runs.

Belongs here: the words for it (seen with 0.169 and 0.171; ``codex app-server generate-json-schema`` has all). One
server runs the sessions of all the user's terminals. ``codex_server`` is about what it leaves on the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any

from ...known_clients.codex import CODEX
from .. import codex_server
from .start import MOST, PATIENCE, WRONG, Begun, answering_server, closed_after

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping
    from typing import IO

    from .start import Start

ASKED = 10.0
"""Seconds for a question about what the server runs."""
_LINE = 1 << 16


def start_codex(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have Codex's background server begin or bring back a session; start the server if none runs."""
    home = CODEX.find_home(environ)
    words = [*start.words, "app-server", "--listen", "unix://"]
    server = answering_server(start, environ, words, lambda: _connected(home), _connected(home))
    with server as (line, pid), _talk(line, PATIENCE) as talk:
        model = {"model": start.model} if start.model else {}
        place = {"cwd": start.directory, **model}
        if start.session_id:
            talk.ask("thread/resume", {"threadId": start.session_id, **place})
        me = start.session_id or str(talk.ask("thread/start", place)["thread"]["id"])
        register(me)
        said = [{"type": "text", "text": start.prompt, "text_elements": []}]
        talk.ask("turn/start", {"threadId": me, "input": said})
    return Begun(me, server=pid)


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
        with _talk(line, ASKED) as talk:
            loaded = [one for one in talk.ask("thread/loaded/list", {})["data"] if one not in ours]
            told = (talk.ask("thread/read", {"threadId": one})["thread"] for one in loaded)
            return any(one.get("parentThreadId") is None for one in told)
    except WRONG:
        return True


def _connected(home: str) -> socket.socket | None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(PATIENCE)
    try:
        line.connect(os.path.realpath(codex_server.socket_of(home)))  # which is short enough for the system
    except OSError:
        line.close()
        return None
    return line


@contextlib.contextmanager
def _talk(line: socket.socket, seconds: float) -> Iterator[_Talk]:
    """Talk on an open socket for a ``with`` block, but no longer than so many seconds."""
    with closed_after(line, seconds), line.makefile("rb") as file:
        yield _Talk(line, file)


class _Talk:
    """JSON-RPC over a WebSocket (RFC 6455); raises ``ValueError`` for what is none. No proxy is between, against which
    its key and masks would be secrets."""

    def __init__(self, line: socket.socket, file: IO[bytes]) -> None:
        self._line, self._file, self._count = line, file, 0
        line.sendall(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: YWdlbnQtbWFpbGJveC11cA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        if b" 101 " not in file.readline(_LINE):
            raise ValueError("it takes no WebSocket")
        while file.readline(_LINE).strip():
            pass
        self.ask("initialize", {"clientInfo": {"name": "agent-mailbox", "version": "1"}})
        self._send({"jsonrpc": "2.0", "method": "initialized", "params": {}})

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

    def _send(self, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        kind, width = (len(data), 0) if len(data) < 126 else (126, 2) if len(data) < 1 << 16 else (127, 8)
        length = len(data).to_bytes(width, "big") if width else b""
        self._line.sendall(bytes([0x81, 0x80 | kind]) + length + b"\0\0\0\0" + data)

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
        data = self._file.read(size)
        if len(data) < size:
            raise ValueError("it ends, or takes too long")
        return data
