"""Files that run a gateway for good, and the proxy that gets its certificate: as far as they can be run here."""

from __future__ import annotations

import json
import plistlib
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.commands import main as registered
from agent_mailbox.swarm.protocol import tokens
from tests.helpers import PATIENCE, ROOT, until
from tests.ports import free_port
from tests.proxies import documented_nginx
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person, refused

FILES = ROOT / "docs" / "deployment"
UNIT = FILES / "agent-mailbox-swarm@.service"
CONTAINER = (FILES / "Containerfile").read_text(encoding="utf-8")


def unit(key: str) -> list[str]:
    """The words of a line of the unit."""
    found = re.search(rf"^{key}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


def test_each_serves_by_options_that_exist() -> None:
    """The unit's command, the container's, and launchd's, whose file is valid."""
    registered.load_command("swarm")  # all its modules: with one of them imported, the others would never be loaded
    from agent_mailbox.swarm.swarm_commands import serve

    with (FILES / "agent-mailbox-swarm.plist").open("rb") as file:
        plist = plistlib.load(file)
    container = [json.loads(one) for one in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", CONTAINER, re.MULTILINE)]
    for words in (unit("ExecStart"), plist["ProgramArguments"], [*container[0], *container[1]]):
        assert Path(words[0]).name == "agent-mailbox"
        assert words[1:3] == ["swarm", "serve"]
        given = serve.make_context("serve", words[3:]).params
        assert (given["bind"], given["self_signed"]) == ("0.0.0.0:8443", True)
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert unit("Restart") == ["on-failure"]


def test_the_gateway_s_systemd_unit_is_valid_and_confined(tmp_path: Path) -> None:
    """The gateway's unit has no fault by systemd's judgement, and lets the gateway reach little."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    there = tmp_path / UNIT.name
    there.write_text(UNIT.read_text().replace(unit("ExecStart")[0], sys.executable))
    judged = subprocess.run([analyze, "verify", "--man=no", there], capture_output=True, text=True, timeout=PATIENCE)
    assert (judged.returncode, judged.stderr) == (0, "")
    words = [analyze, "security", "--offline=true", "--threshold=20", "--no-pager", there]
    judged = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert judged.returncode == 0, judged.stdout


def test_they_ask_a_gateway_whether_it_is_ready(machine: Make) -> None:
    """The container's check and the unit's, with a gateway that runs, and with none."""
    a = machine("alpha").serve()
    found = re.search(r"^HEALTHCHECK CMD (.*)$", CONTAINER, re.MULTILINE)
    assert found is not None
    check = json.loads(found[1].replace("/gateway/", f"{a.swarm_home}/"))
    ready = [word.replace("/home/%i/.swarm", str(a.swarm_home)) for word in unit("ExecStartPost")]
    ready[ready.index("30")] = "0"
    ours = [[sys.executable, *check[1:]], *([ready] if shutil.which(ready[0]) else [])]

    def codes() -> set[bool]:
        return {subprocess.run(words, capture_output=True, timeout=PATIENCE).returncode == 0 for words in ours}

    assert codes() == {True}
    a.kill()
    assert codes() == {False}


def test_the_proxy_that_gets_its_certificate(machine: Make, tmp_path: Path) -> None:
    """Caddy with the example as it is, but for an authority of its own: the gateway is behind it and the local API
    is not. (Nobody can ask a public authority here.)"""
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    a, port = machine("alpha", trusted_proxies=["127.0.0.1"]).serve("--behind-proxy"), free_port()
    found = re.search(
        r"```text\n(alpha\.example \{\n.*?)```", (ROOT / "docs/internals/gateway.md").read_text(), re.DOTALL
    )
    assert found is not None
    text = found[1].replace("alpha.example", f"localhost:{port}").replace("127.0.0.1:8443", f"127.0.0.1:{a.port}")
    around = "{\n admin off\n local_certs\n skip_install_trust\n auto_https disable_redirects\n"
    (tmp_path / "Caddyfile").write_text(f"{around}  storage file_system {tmp_path / 'store'}\n}}\n{text}")
    root = tmp_path / "store" / "pki" / "authorities" / "local" / "root.crt"
    words = [caddy, "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=-3, stderr=-3) as proxy:
        try:
            until(lambda: proxy.poll() is not None or _answers(root, port))
            assert _status(root, port, "/swarm/health") == 200
            for path in ("/api/inbox", "/swarm", "/", "/swarm/../api/inbox"):
                assert _status(root, port, path) == 404, path
        finally:
            proxy.terminate()
            proxy.wait(PATIENCE)


def _answers(root: Path, port: int) -> bool:
    try:
        return _status(root, port, "/swarm/health") == 200
    except OSError:
        return False


def _status(root: Path, port: int, path: str) -> int:
    context = ssl.create_default_context(cafile=str(root))
    with (
        socket.create_connection(("localhost", port), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return int(wrapped.makefile("rb").readline().split()[1])


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
