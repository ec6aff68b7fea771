"""The proxy's configuration in docs/internals/gateway.md, as it is written there, with a real nginx and gateway."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.swarm.protocol import tokens
from tests.helpers import until
from tests.ports import free_port
from tests.proxies import documented_nginx
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person, refused


class Proxied(Machine):
    """A machine whose peers reach it by the proxy."""

    def __init__(self, scratch: Path, agent: str, authority: Authority, **settings: Any) -> None:
        self.proxied = free_port()
        super().__init__(scratch, agent, authority, through=self.proxied, **settings)


@pytest.fixture
def behind(tmp_path: Path, authority: Authority) -> Iterator[Proxied]:
    """A gateway behind nginx; both end with the test."""
    machine = Proxied(tmp_path, "alpha", authority, trusted_proxies=["127.0.0.1"], requests_per_minute=20)
    here = {
        "listen 443 ssl": f"listen 127.0.0.1:{machine.proxied} ssl",
        "/etc/ssl/alpha.pem": str(authority.cert),
        "/etc/ssl/alpha.key": str(authority.key),
        "alpha.example": "localhost",
        "127.0.0.1:8443": f"127.0.0.1:{machine.port}",
    }
    with documented_nginx("docs/internals/gateway.md", tmp_path / "nginx", machine.proxied, here):
        machine.serve("--behind-proxy")
        yield machine
        machine.kill()


def test_the_documented_proxy_serves_a_gateway(behind: Proxied, machine: Make) -> None:
    """Over HTTP/2 and 1.1: another machine joins and both write; what is too large is refused; neither the local API
    nor anything else is behind it; and a forwarded address that a client makes up counts for nothing."""
    beta = machine("beta").serve()
    behind.register("ann")
    swarm = behind.ok("swarm", "create", "demo", "--session", "ann")["swarm"]["swarm_id"]
    beta.register("bob")
    url = behind.ok("swarm", "invite", "demo")["url"]
    assert beta.ok("swarm", "join", url, "--session", "bob")["status"] == "accepted"
    behind.send("ann", "swarm:demo/beta", "outward")
    beta.send("bob", "swarm:demo/alpha", "inward")
    until(lambda: (behind.received(), beta.received()) == (["inward"], ["outward"]))

    line, old = Line(behind, port=behind.proxied), Line(behind, http2=False, port=behind.proxied)
    assert line.get("/swarm/health").http_version == "HTTP/2"
    assert old.get("/swarm/health").http_version == "HTTP/1.1"
    for path in ("/api/inbox", "/api/wake", "/", "/swarm", "/swarm/../api/inbox", "/swarm/%2e%2e/api/inbox"):
        assert _raw(behind, path) == 404, path
    mine = Person("carol")
    joined = line.post("join", mine.joining(tokens.parse_url(behind.ok("swarm", "invite", "demo")["url"]).token))
    assert joined.status_code == 200, joined.text
    most = mine.envelope(swarm, "alpha", "x" * 60_000)
    assert line.post("message", most).status_code == 200
    refused(line.post("message", b"x" * (256 * 1024 + 1)), 413, "PAYLOAD_TOO_LARGE")
    refused(old.post("message", b"x" * (256 * 1024 + 1)), 413, "PAYLOAD_TOO_LARGE")
    announced = "Content-Type: application/json\r\nContent-Length: 8000000\r\n"
    assert _raw(behind, "/swarm/message", "POST", announced) == 413  # which the gateway is not bothered with
    invented = [
        line.post("message", b"{}", x_forwarded_for=f"203.0.113.{i}", forwarded=f"for=203.0.113.{i}").status_code
        for i in range(20)
    ]
    assert invented[0] == 400
    assert invented[-1] == 429


def _raw(machine: Proxied, path: str, method: str = "GET", headers: str = "") -> int:
    """The status of a path as it is spelt (a client of HTTP would resolve its dots), before any body is sent."""
    context = ssl.create_default_context(cafile=str(machine.authority.ca))
    with (
        socket.create_connection(("localhost", machine.proxied)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n".encode())
        return int(wrapped.makefile("rb").readline().split()[1])
