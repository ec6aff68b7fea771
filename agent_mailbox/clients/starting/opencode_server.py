"""OpenCode's server, which runs one session for ``up``.

Belongs here: how it is started and asked (seen with 1.18). It tells its address on loopback as it begins to listen.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from .start import MOST, PATIENCE, Begun, answering_server, closed_after

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
    words = [*start.words, "serve", "--hostname", _HOST, "--port", "0"]
    with answering_server(start, own, words, lambda: _port(start.log)) as (port, pid):
        me = start.session_id or str(_call(port, password, "/session", {"title": start.name})["id"])
        register(me)
        provider, _, model = start.model.partition("/")
        chosen = {"model": {"providerID": provider, "modelID": model}} if model else {}
        asked = {**chosen, "parts": [{"type": "text", "text": start.prompt}]}
        _call(port, password, f"/session/{me}/prompt_async", asked)
    return Begun(me, server=pid)


def _call(port: int, password: str, path: str, value: Any) -> Any:
    """Return the answer to a call, all of which takes no longer than ``PATIENCE``. No proxy of the environment's has
    part in it."""
    secret = base64.b64encode(f"opencode:{password}".encode()).decode()
    head = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
    line = HTTPConnection(_HOST, port, timeout=PATIENCE)
    line.connect()
    with closed_after(line.sock, PATIENCE):
        line.request("POST", path, json.dumps(value).encode(), head)
        answer = line.getresponse()
        said = answer.read(MOST)
        if answer.status >= 300:
            raise ValueError(f"{answer.status} {answer.reason}")
        return json.loads(said or b"null")


def _port(log: str) -> int | None:
    """Return the port that a server told as it began to listen."""
    with open(log, "rb") as file:
        told = _LISTENS.search(file.read(_BEGINNING))
    return int(told[1]) if told else None
