"""The console behind the person's own proxy: the configuration in docs/console.md, in a real nginx with TLS.

Also the way from a phone: found in what this machine's own programs say, or told how to make it.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from agent_mailbox.console import phone
from agent_mailbox.console.guard import AllowedHosts, checked_origin
from tests.browsers import BROWSER_PATIENCE
from tests.console.conftest import Running
from tests.helpers import PATIENCE, Post, refused
from tests.ports import free_port
from tests.proxies import documented_nginx

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture
def proxied(post: Post, tmp_path: Path) -> Iterator[Running]:
    """A console behind nginx, with a request that waits; both end with the test."""
    post.register("ada", "--name", "Ada")
    asked = ("control", "request", "permission", "--tool", "Bash", "--session", "ada", "--request-id", "perm-1")
    post.ok(*asked, "--input", '{"command": "make deploy"}')
    port, cert, key = free_port(), tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = trustme.CA().issue_cert("localhost")
    issued.private_key_pem.write_to_path(str(key))
    issued.cert_chain_pems[0].write_to_path(str(cert))
    with Running(post, "--origin", f"https://localhost:{port}") as console:
        here = {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/ssl/console.pem": str(cert),
            "/etc/ssl/console.key": str(key),
            "console.example": "localhost",
            "127.0.0.1:8642": f"127.0.0.1:{console.port}",
        }
        with documented_nginx("docs/console.md", tmp_path / "nginx", port, here):
            yield console


def test_a_request_is_approved_from_a_phone(proxied: Running, browser: Browser) -> None:
    """The printed link opens a live page on a phone over TLS. An approval there reaches the agent."""
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    context: Any = browser.new_context(**phone, ignore_https_errors=True)
    context.set_default_timeout(BROWSER_PATIENCE)
    page = context.new_page()
    assert proxied.link.startswith(f"{proxied.url}#token=")
    page.goto(proxied.link)
    page.wait_for_selector(".link-state.live")
    (cookie,) = context.cookies()
    assert cookie["name"] == f"__Host-agent-mailbox-{proxied.port}"
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, True, "Strict", "/")
    page.goto(proxied.url)
    page.wait_for_selector(".link-state.live")
    page.locator("#r-perm-1 a").tap()
    card = page.locator("#details .card")
    card.get_by_role("button", name="Approve").tap()
    card.wait_for(state="detached")
    assert proxied.post.ok("control", "wait", "perm-1", "--session", "ada")["request"]["state"] == "approved"


def test_the_console_answers_to_the_proxy_s_address_alone(proxied: Running) -> None:
    """The console behind a proxy refuses each other host name, and a change from each other origin."""
    host = proxied.url.removeprefix("https://").rstrip("/")
    right: dict[str, str | None] = {"Host": host, "Origin": f"https://{host}"}
    entered = proxied.ask("/session", {"token": proxied.token}, headers=right)
    assert entered.status == 303, entered.text
    proxied.cookie = entered.headers["set-cookie"].partition(";")[0]
    for wrong in (proxied.host, f"localhost:{proxied.port}", "localhost", f"evil.{host}", f"{host}.evil", f"{host}@x"):
        assert proxied.ask("/", headers={"Host": wrong}).status == 421, wrong
    decision = {"request": "perm-1", "decision": "approve"}
    for origin in (None, f"http://{host}", f"http://{proxied.host}", "https://localhost", "https://evil", "null"):
        assert proxied.ask("/decide", decision, headers={**right, "Origin": origin}).status == 403, origin
    for site in (None, "same-site", "cross-site", "none"):
        assert proxied.ask("/decide", decision, headers={**right, "Sec-Fetch-Site": site}).status == 403, site
    other = proxied.cookie.replace("__Host-", "")
    assert proxied.ask("/", headers={**right, "Cookie": other}).status == 401
    assert proxied.post.ok("control", "pending", "--session", "user")["requests"][0]["state"] == "open"
    assert proxied.ask("/", headers=right).status == 200


@pytest.mark.parametrize(
    "origin",
    ["http://x", "console.example", "https://", "https://a/b", "https://a b", "https://u@x", "https://x:y", "*"],
)
def test_a_console_origin_other_than_https_is_refused(post: Post, origin: str) -> None:
    """Anything else is malformed, and no console starts."""
    refused(post.call("console", "--port", "0", "--origin", origin, "--json"), 2, "https")


def test_an_origin_is_written_as_browsers_write_it() -> None:
    """An origin is kept in lower case and without the usual port, as browsers write it."""
    assert checked_origin("HTTPS://Console.Example:443/") == "https://console.example"
    assert checked_origin("https://[::1]:8443") == "https://[::1]:8443"
    hosts = AllowedHosts("127.0.0.1", 8642, "https://console.example")
    assert hosts.is_allowed("Console.example")
    assert not hosts.is_allowed("console.example:8642")


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
