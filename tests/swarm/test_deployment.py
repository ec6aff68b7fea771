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
from pathlib import Path

import pytest

from agent_mailbox.commands import main as registered
from tests.helpers import PATIENCE, ROOT, until
from tests.ports import free_port
from tests.swarm.conftest import Make

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
