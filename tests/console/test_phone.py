"""The way from a phone: found in what this machine's own programs say, or told how to make it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.console import phone
from tests.helpers import PATIENCE, Post, refused

if TYPE_CHECKING:
    from pathlib import Path

NGINX = """
server { listen 80; server_name other.example; location / { proxy_pass http://127.0.0.1:8642; } }
server { listen 127.0.0.1:8443 ssl; server_name console.example; location / { proxy_pass http://127.0.0.1:8642; } }
"""
CADDY = "a.example {\n  reverse_proxy 127.0.0.1:1\n}\nb.example {\n  encode gzip\n  reverse_proxy localhost:8642\n}\n"


def served(host: str, port: int) -> str:
    """What ``tailscale serve status --json`` says."""
    return json.dumps({"Web": {f"{host}:443": {"Handlers": {"/": {"Proxy": f"http://127.0.0.1:{port}"}}}}})


def test_each_way_is_found_by_the_port_that_it_leads_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tailscale's, then nginx's with its port, then Caddy's, if nobody but root wrote its file; none is made up."""
    said = {"tailscale": served("laptop.tail1.ts.net", 8642), "nginx": NGINX}
    monkeypatch.setattr(phone, "_output_of", lambda name, *_: said.get(name, ""))
    monkeypatch.setattr(phone, "CADDYFILE", str(tmp_path / "Caddyfile"))
    (tmp_path / "Caddyfile").write_text(CADDY)
    (tmp_path / "Caddyfile").chmod(0o644)
    assert phone.find_way(8642) == phone.Way("tailscale serve", "https://laptop.tail1.ts.net")
    said["tailscale"] = served("laptop.tail1.ts.net", 1)
    assert phone.find_way(8642) == phone.Way("nginx", "https://console.example:8443")
    said.clear()
    if (tmp_path / "Caddyfile").stat().st_uid == 0:
        assert phone.find_way(8642) == phone.Way("caddy", "https://b.example")
    (tmp_path / "Caddyfile").chmod(0o666)
    with pytest.raises(phone.Refused, match="port 8642") as error:
        phone.find_way(8642)
    assert "--origin" in error.value.hint or "tailscale serve --bg 8642" in error.value.hint


def test_the_link_is_told_with_its_way_and_as_a_picture(post: Post, tmp_path: Path) -> None:
    """The console answers to the address that was found; without a way it says what to run, and does not start."""
    pytest.importorskip("segno")
    program = tmp_path / "bin/tailscale"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{served('laptop.tail1.ts.net', 8642)}'\n")
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    refused(post.call("console", "--port", "9", "--phone", env=env), 1, "tailscale serve --bg 9")
    child = post.start("console", "--phone", env=env, stdin=subprocess.DEVNULL, forked=True)
    assert child.stdout is not None
    lines = [child.stdout.readline().decode() for _ in range(4)]
    child.terminate()
    out, _ = child.communicate(timeout=PATIENCE)
    if "cannot listen" in "".join(lines):
        pytest.skip("the usual port is taken here")
    text = "".join(lines) + out.decode()
    assert "a phone reaches it behind tailscale serve" in text
    assert "https://laptop.tail1.ts.net/#token=" in text
    assert "█" in text
