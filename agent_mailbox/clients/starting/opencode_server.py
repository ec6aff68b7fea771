"""OpenCode's server, which runs one session for ``up``.

Belongs here: how it is started and asked (seen with 1.18). It tells its address on loopback as it begins to listen.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import socket
import threading
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from ...errors import Refused
from .start import MOST, PATIENCE, Begun, ended_if_lost, spawn_server, wait_until_it_listens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .start import Start

_HOST = "127.0.0.1"
_LISTENS = re.compile(rb"listening on http://127\.0\.0\.1:(\d{1,5})\b[^\n]*\n")
_BEGINNING = 1 << 16


def start_opencode(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a server for one session, with a password that nobody else has."""
    password = secrets.token_hex(16)
    own = {**environ, "OPENCODE_SERVER_PASSWORD": password}
    server = spawn_server([*start.words, "serve", "--hostname", _HOST, "--port", "0"], start, own)
    with ended_if_lost(server):
        port = wait_until_it_listens("OpenCode", server, start.log, lambda: _port(start.log))
        return Begun(_begin(start, register, port, password), server=server.pid)


def _begin(start: Start, register: Callable[[str], None], port: int, password: str) -> str:
    try:
        me = start.session_id or str(_call(port, password, "/session", {"title": start.name})["id"])
        register(me)
        provider, _, model = start.model.partition("/")
        chosen = {"model": {"providerID": provider, "modelID": model}} if model else {}
        asked = {**chosen, "parts": [{"type": "text", "text": start.prompt}]}
        _call(port, password, f"/session/{me}/prompt_async", asked)
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(f"OpenCode's server does not answer as expected: {error}", f"see {start.log}") from None
    return me


def _call(port: int, password: str, path: str, value: Any) -> Any:
    """Return the answer to a call, all of which takes no longer than ``PATIENCE``. No proxy of the environment's has
    part in it."""
    secret = base64.b64encode(f"opencode:{password}".encode()).decode()
    head = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
    line = HTTPConnection(_HOST, port, timeout=PATIENCE)
    line.connect()
    limit = threading.Timer(PATIENCE, line.sock.shutdown, [socket.SHUT_RDWR])
    limit.start()
    try:
        line.request("POST", path, json.dumps(value).encode(), head)
        answer = line.getresponse()
        said = answer.read(MOST)
        if answer.status >= 300:
            raise ValueError(f"{answer.status} {answer.reason}")
        return json.loads(said or b"null")
    finally:
        limit.cancel()
        line.close()


def _port(log: str) -> int | None:
    """Return the port that a server told as it began to listen."""
    with open(log, "rb") as file:
        told = _LISTENS.search(file.read(_BEGINNING))
    return int(told[1]) if told else None
