"""Many who connect to a gateway, from as many addresses of the loopback network as a test wants. They mean no good."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.swarm.machine import Machine


@contextmanager
def crowd(port: int, connections: int, source: str = "127.0.0.2") -> Iterator[list[socket.socket]]:
    """Connections that say nothing, held until the block ends."""
    held: list[socket.socket] = []
    try:
        for _ in range(connections):
            held += [socket.create_connection(("127.0.0.1", port), 30, source_address=(source, 0))]
        yield held
    finally:
        for one in held:
            one.close()


@cache
def context(ca: str) -> ssl.SSLContext:
    """Trusts an authority alone."""
    return ssl.create_default_context(cafile=ca)


def secured(machine: Machine, source: str = "127.0.0.1") -> ssl.SSLSocket:
    """A connection with TLS; raises ``OSError`` where there is no place."""
    plain = socket.create_connection(("127.0.0.1", machine.port), 30, source_address=(source, 0))
    return context(str(machine.authority.ca)).wrap_socket(plain, server_hostname="localhost")


def is_let_in(machine: Machine, source: str) -> bool:
    """Whether an address is answered now."""
    try:
        with secured(machine, source) as line:
            line.sendall(b"GET /swarm/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return line.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def post(machine: Machine, body: bytes) -> int:
    """The status of a message that comes by a connection of its own."""
    head = f"POST /swarm/message HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    with secured(machine) as line:
        line.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        said = line.recv(4096)
        while line.recv(4096):
            pass
    return int(said.split()[1])


def beside(machine: Machine, path: str, method: str = "GET") -> httpx.Response:
    """An answer of the local API at its socket."""
    transport = httpx.HTTPTransport(uds=str(machine.swarm_home / "local.sock"))
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:
        return client.request(method, path)


def numbers(machine: Machine) -> dict[str, float]:
    """The metrics, by name and labels."""
    lines = beside(machine, "/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name.removeprefix("agent_mailbox_swarm_"): float(value) for name, _, value in pairs}


def told(machine: Machine) -> list[dict[str, Any]]:
    """What the gateway wrote to standard error; every whole line is an object."""
    whole = (machine.scratch / "gateway.log").read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def memory(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
