"""The way from a phone to this console: ``tailscale serve``, or a proxy that this machine's own files name.

Belongs here: its https address, and the link as a picture for a terminal. Nothing is started or changed, and no open
port is asked: any program may listen there, and would get the link.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..core.records import Record
from ..errors import Refused
from ..store.files import programs

SECONDS = 10
CADDYFILE = "/etc/caddy/Caddyfile"
HTTPS = "443"


class Way(Record):
    """A way to the console: what leads there, and its https address."""

    name: str
    origin: str


def find_way(port: int) -> Way:
    """Return the way on which a phone reaches a port of this machine; raise ``Refused`` with how to make one."""
    for way in (*_ways_by_tailscale(port), *_ways_by_nginx(port), *_ways_by_caddy(port)):
        return way
    if shutil.which("tailscale"):
        how = f"run `tailscale serve --bg {port}`, then `agent-mailbox console --phone` again"
    else:
        how = "put a proxy with TLS before it, and name it with --origin URL (docs/console.md: From a phone)"
    raise Refused(f"nothing with TLS leads to port {port} of this machine", how)


def _ways_by_tailscale(port: int) -> Iterator[Way]:
    try:
        served = json.loads(_output_of("tailscale", "serve", "status", "--json"))
        sites = served.get("Web") or {}
        for site, found in sites.items():
            handler = (found.get("Handlers") or {}).get("/") or {}
            if _leads_to(str(handler.get("Proxy", "")), port):
                yield Way("tailscale serve", f"https://{site.removesuffix(f':{HTTPS}')}")
    except (ValueError, AttributeError):
        return  # not served, or another version's words


def _ways_by_nginx(port: int) -> Iterator[Way]:
    for block in re.split(r"\bserver\s*\{", _output_of("nginx", "-T"))[1:]:
        listens = re.search(r"\blisten\s+(?:\S*:)?(\d+)\s+ssl", block)
        name = re.search(r"\bserver_name\s+([\w.-]+)", block)
        target = re.search(r"\bproxy_pass\s+(\S+?)/?;", block)
        if listens and name and target and _leads_to(target[1], port):
            yield Way("nginx", f"https://{name[1]}" + ("" if listens[1] == HTTPS else f":{listens[1]}"))


def _ways_by_caddy(port: int) -> Iterator[Way]:
    try:
        with open(CADDYFILE, encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            text = file.read() if about.st_uid == 0 and not about.st_mode & 0o022 else ""
    except (OSError, ValueError):
        return
    for name, block in re.findall(r"^([\w.-]+\.[\w-]+)\s*\{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        target = re.search(r"\breverse_proxy\s+(\S+)", block)
        if target and _leads_to(target[1], port):
            yield Way("caddy", f"https://{name}")


def _leads_to(target: str, port: int) -> bool:
    return re.fullmatch(rf"(http://)?(127\.0\.0\.1|localhost|\[::1\])?:{port}/?", target) is not None


def _output_of(*words: str) -> str:
    program = shutil.which(words[0])
    if program is None:
        return ""
    try:
        done = programs.ask([program, *words[1:]], SECONDS)
    except OSError:
        return ""
    return "" if done.code else done.out.decode("utf-8", "replace")


def draw_link(link: str) -> str:
    """Return a link as a QR code for a terminal."""
    segno: Any = import_module("segno")
    drawn = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(out=drawn, compact=True, border=2)
    return drawn.getvalue()
