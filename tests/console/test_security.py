"""Who may ask the console what: each rule of its guard, refused over a real socket."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.console.guard import LINK_SECONDS, MAX_BODY, MAX_SESSIONS, AllowedHosts, Gate
from tests.console.conftest import Running
from tests.helpers import MESSAGES, PATIENCE, ROOT, Post, refused, refused_both, until
from tests.surroundings import NOBODY_SAID

NOBODY: dict[str, str | None] = {"Cookie": None}
PAGES = ("/", "/agents", "/channel?to=all", "/search?q=x", "/timeline", "/receipts?ids=x", "/events?page=/&last=")
ACTS = (
    "/send",
    "/reply",
    "/read",
    "/ack",
    "/release",
    "/resend",
    "/decide",
    "/assign",
    "/mode",
    "/revoke",
    "/state",
    "/leave",
)


def mail(console: Running) -> list[str]:
    """What was sent, by its text."""
    return [m["content"] for m in console.post.objects(MESSAGES)]


# -- who may in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_nothing_is_shown(shared: Running, path: str) -> None:
    """Neither pages, nor the stream; a cookie that is nobody's is none."""
    shared.post.send("ada", "bo", "SECRET")
    for cookie in (None, f"agent-mailbox-{shared.port}=guess"):
        for accept in ("text/html", "text/event-stream"):
            answer = shared.ask(path, headers={"Cookie": cookie, "Accept": accept})
            assert answer.status == 401
            assert "SECRET" not in answer.text
            assert "Ada" not in answer.text


@pytest.mark.parametrize("path", ACTS)
def test_without_a_session_nothing_is_done(shared: Running, path: str) -> None:
    """However well the rest of the request looks."""
    before = shared.post.snapshot()
    assert shared.ask(path, {"to": "ada", "body": "x", "id": "y"}, headers=NOBODY).status == 401
    assert shared.post.snapshot() == before


def test_a_launch_link_works_once(post: Post) -> None:
    """The second who has it is refused, and so is a guess."""
    with Running(post) as console:
        assert console.ask("/session", {"token": "guess"}).status == 401
        console.enter()
        again = console.ask("/session", {"token": console.token})
        assert again.status == 401
        assert "set-cookie" not in again.headers
        assert console.ask("/").status == 200


def test_the_cookie_is_for_this_server_s_pages_alone(post: Post) -> None:
    """HttpOnly, SameSite=Strict, for the session, named by the port; it holds neither token nor anything to read."""
    with Running(post) as console:
        cookie = console.ask("/session", {"token": console.token}).headers["set-cookie"]
        name, _, rest = cookie.partition("=")
        assert name == f"agent-mailbox-{console.port}"
        assert {part.strip().lower() for part in rest.split(";")[1:]} == {"httponly", "samesite=strict", "path=/"}
        assert console.token not in cookie


def test_sessions_die_with_the_process_and_with_signing_out(post: Post) -> None:
    """A cookie of an earlier process, at the same port, is nobody's."""
    with Running(post) as console:
        console.enter()
        assert console.ask("/leave", {}).status == 303
        assert console.ask("/").status == 401
        port, cookie = console.port, console.cookie
    with Running(post, "--port", port) as again:
        again.cookie = cookie
        assert again.port == port
        assert again.ask("/").status == 401


def test_a_link_is_void_after_a_while_and_when_there_is_a_newer_one() -> None:
    """A sign-in link is void after a while and once there is a newer one. Too many sessions end the oldest."""
    now = 0.0
    gate = Gate(lambda: now)
    first, second = gate.new_link_token(), gate.new_link_token()
    assert gate.exchange_token(first) is None
    now = LINK_SECONDS
    assert gate.exchange_token(second) is None
    cookies = [gate.exchange_token(gate.new_link_token()) for _ in range(MAX_SESSIONS + 1)]
    assert gate.session_of(cookies[0]) is None
    assert all(gate.session_of(cookie) is not None for cookie in cookies[1:])
    assert len({*cookies}) == MAX_SESSIONS + 1


# -- from where -------------------------------------------------------------------------------------------------------


def test_another_name_for_this_server_is_refused(shared: Running) -> None:
    """DNS rebinding: the browser believes it speaks with its own site; only its Host header tells."""
    for host in (
        "evil.example",
        f"evil.example:{shared.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "",
        f"[::1]:{shared.port}x",
    ):
        for path, fields in (("/", None), ("/send", {"to": "ada", "body": "REBOUND"}), ("/static/console.js", None)):
            answer = shared.ask(path, fields, headers={"Host": host, "Origin": f"http://{host}" if fields else None})
            assert answer.status in (400, 421), (host, path)
    assert shared.ask("/", headers={"Host": f"localhost:{shared.port}"}).status == 200
    assert "REBOUND" not in mail(shared)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": None},
    ],
    ids=str,
)
def test_a_change_is_taken_from_our_own_pages_only(shared: Running, headers: dict[str, str | None]) -> None:
    """The cookie alone moves nothing: not for another origin, nor for another port of this host (``same-site``)."""
    filled = {name: value and value.replace("{port}", str(shared.port)) for name, value in headers.items()}
    answer = shared.ask("/send", {"to": "ada", "body": "FORGED"}, headers=filled)
    assert answer.status == 403
    assert "FORGED" not in mail(shared)


@pytest.mark.parametrize("path", ["/", "/events?page=/&last=", "/static/console.js", "/receipts?ids=x"])
def test_other_pages_load_nothing_of_ours(shared: Running, path: str) -> None:
    """Neither as a script, an image, a frame nor by fetch; to follow a link here is another matter."""
    for site in ("cross-site", "same-site"):
        for mode, dest in (("no-cors", "script"), ("cors", "empty"), ("navigate", "iframe"), ("no-cors", "image")):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            assert shared.ask(path, headers=headers).status == 403
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert shared.ask("/", headers=followed).status == 200


def test_changes_are_posts_and_other_methods_are_none(shared: Running) -> None:
    """A GET changes nothing, and nobody is told what may be asked across origins."""
    before = shared.post.snapshot()
    for path in ACTS:
        assert shared.ask(f"{path}?to=ada&body=x").status == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = shared.ask("/send", method=method, headers={"Origin": "https://evil.example"})
        assert answer.status == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert shared.post.snapshot() == before


def test_an_overlong_request_body_is_refused(shared: Running) -> None:
    """Announced, or sent in pieces that say nothing of their number."""
    announced = shared.ask("/send", b"", headers={"Content-Length": str(MAX_BODY + 1)})
    assert announced.status == 413
    piece = b"%x\r\n%b\r\n" % (1 << 16, b"x" * (1 << 16))
    chunked = {"Transfer-Encoding": "chunked", "Content-Length": None}
    endless = shared.ask("/send", piece * (MAX_BODY // (1 << 16) + 2) + b"0\r\n\r\n", headers=chunked)
    assert endless.status == 413
    assert shared.ask("/send", b"to=ada&body=%FF", headers={"Accept": "application/json"}).status == 400


# -- what answers carry -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/console.js", "/agents", "/agent?id=nobody"])
def test_every_answer_carries_the_same_headers(shared: Running, path: str) -> None:
    """Signed in or not: no inline script, no framing, no sniffing, no referrer, no other origin."""
    for headers in (None, NOBODY):
        answer = shared.ask(path, headers=headers)
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        kept = path.startswith("/static/") and answer.status == 200
        assert answer.headers["cache-control"] == ("private, max-age=31536000, immutable" if kept else "no-store")


def test_no_page_has_script_or_style_of_its_own(shared: Running) -> None:
    """No page contains inline script or style, and none loads anything from elsewhere."""
    for path in ("/", "/agents", "/channel?to=all", "/timeline", "/search", "/dead", "/archive"):
        text = shared.ask(path).text
        assert re.search(r"<script(?! src=)|\sstyle=|<style|\son[a-z]+=|javascript:", text) is None
        assert set(re.findall(r'(?:src|href)="(https?:[^"]*)"', text)) == set()


def test_after_a_form_the_browser_is_sent_nowhere_else(shared: Running) -> None:
    """``next`` is a place of ours, whatever it says."""
    for given in ("https://evil.example/", "//evil.example", "/\\evil.example", "evil", "", "/ok\r\nX: y"):
        answer = shared.ask("/ack", {"id": "none", "next": given})
        assert (answer.status, answer.headers["location"]) == (303, "/"), given
    assert shared.ask("/ack", {"id": "none", "next": "/agents?dead=1"}).headers["location"] == "/agents?dead=1"


# -- starting it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "CODEX_SESSION_ID", "GEMINI_CLI", "AGENT_MAILBOX_SESSION"]
)
def test_an_agent_s_terminal_opens_no_console(post: Post, name: str) -> None:
    """There only the person acts; no socket is opened, no link made."""
    env = {**NOBODY_SAID, name: "1"}
    result = refused_both(post.run, 1, "console", "--port", "0", env=env, said=("only the person may run",))
    assert "token" not in result.stdout + result.stderr


def test_a_console_without_its_libraries_says_how_to_get_them(post: Post) -> None:
    """``console`` without its libraries names them and the extra that brings them."""
    code = (
        "import sys, importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name in ('nh3', 'uvicorn') else real(name, *more)\n"
        "from agent_mailbox.launch import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    result = refused(post.python(code, "console", "--port", "0"), 1, "uvicorn, nh3", "[console]'")
    assert result.stdout == ""


def test_nothing_but_the_console_imports_its_libraries(post: Post) -> None:
    """No other command imports the console's libraries, and neither does ``console --help``."""
    code = (
        "import sys\n"
        "from agent_mailbox.launch import main\n"
        "main(sys.argv[1:])\n"
        "named = ('starlette', 'uvicorn', 'jinja2', 'markdown_it', 'nh3', 'python_multipart', 'asyncio')\n"
        "print([m for m in named if m in sys.modules])"
    )
    for words in (["console", "--help"], ["status", "--session", "x"], ["control", "pending", "--session", "x"]):
        assert post.python(code, *words).stdout.splitlines()[-1] == "[]", words


def test_the_link_is_written_into_no_file(post: Post, tmp_path: Path) -> None:
    """Output that goes to a file is a log; with a terminal or a pipe somebody reads it."""
    log = tmp_path / "log"
    for words in ([], ["--json"]):
        with open(log, "wb") as file:
            child = post.start("console", "--port", "0", *words, stdin=subprocess.DEVNULL, stdout=file)
            _, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 1
        assert b"must not be kept in a file" in err
        assert b"token" not in log.read_bytes()


@pytest.mark.parametrize("as_json", [False, True])
def test_enter_shows_both_links_again_and_nothing_to_a_program(post: Post, as_json: bool) -> None:
    """A browser may not know our host name. To a program there is one document alone."""
    master, slave = os.openpty()
    os.write(master, b"\n")
    child = post.start("console", "--port", "0", *(["--json"] if as_json else []), stdin=slave)
    assert child.stdout is not None
    try:
        lines = [child.stdout.readline().decode() for _ in range(1 if as_json else 6)]
        if as_json:
            connection = http.client.HTTPConnection("127.0.0.1", json.loads(lines[0])["port"], timeout=PATIENCE)
            connection.request("GET", "/")  # it serves
            assert connection.getresponse().status
    finally:
        child.terminate()
        out, _ = child.communicate(timeout=PATIENCE)
        os.close(slave)
        os.close(master)
    assert out == b""
    for link, other in [] if as_json else [lines[1:3], lines[4:6]]:
        host, _, token = link.partition("/#token=")
        assert ".localhost:" in host
        assert other.startswith("for a browser that does not know that name: http://127.0.0.1:")
        assert other.endswith(f"/#token={token}")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_hangup_that_the_person_has_ignored_ends_no_console(post: Post) -> None:
    """One below ``nohup`` outlives its terminal."""
    child = post.start("console", "--port", "0", "--json", under=("nohup",), stdin=subprocess.DEVNULL)
    assert child.stdout is not None
    try:
        port = json.loads(child.stdout.readline())["port"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/")  # it serves
        assert connection.getresponse().status
        (ignored,) = re.findall(r"^SigIgn:\s*(\w+)", Path(f"/proc/{child.pid}/status").read_text(), re.MULTILINE)
    finally:
        child.terminate()
        child.communicate(timeout=PATIENCE)
    assert int(ignored, 16) & 1 << signal.SIGHUP - 1


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_browser_is_opened_by_way_of_a_private_file(post: Post, tmp_path: Path, end: signal.Signals) -> None:
    """A command's words can be listed by everyone on the machine: the link does not stand there, nor in the output."""
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    opener, seen = tmp_path / "browser", tmp_path / "seen"
    opener.write_text(f'#!{sys.executable}\nimport sys\nopen("{seen}.part", "w").write(" ".join(sys.argv[1:]))\n'
                      f'import os\nos.rename("{seen}.part", "{seen}")\n')  # fmt: skip
    opener.chmod(0o700)
    env: dict[str, str | None] = {"BROWSER": f"{opener} %s", "XDG_RUNTIME_DIR": str(runtime)}
    child = post.start("console", "--port", "0", "--open", env=env, stdin=subprocess.DEVNULL)
    try:
        until(seen.exists)
        words = seen.read_text()
        (page,) = runtime.glob("*/open.html")
        assert words == f"file://{page}"
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        token = re.search(r"#token=([\w-]+)", page.read_text())
        assert token is not None
        assert token.group(1) not in words
        command = Path(f"/proc/{child.pid}/cmdline").read_text()
        assert token.group(1) not in command
    finally:
        child.send_signal(end)
        out, err = child.communicate(timeout=PATIENCE)
    assert token.group(1).encode() not in out + err
    assert not page.exists()


def test_a_wider_host_is_warned_of_and_names_are_still_checked(post: Post) -> None:
    """Any literal address will do there, for no name server can turn it round; a name will not."""
    with Running(post, "--host", "0.0.0.0") as console:
        console.enter()
        assert console.ask("/").status == 200
        assert console.ask("/", headers={"Host": f"evil.example:{console.port}"}).status == 421
        console._process.terminate()
        assert console._process.stderr is not None
        assert b"is open to the network" in console._process.stderr.read()
    hosts = AllowedHosts("0.0.0.0", 80)
    assert hosts.is_allowed("192.0.2.7:80")
    assert hosts.is_allowed("[2001:db8::1]:80")
    assert not hosts.is_allowed("evil.example:80")
    assert not AllowedHosts("127.0.0.1", 80).is_allowed("192.0.2.7:80")


def test_a_host_is_a_name_and_a_port_which_browsers_leave_out_where_it_is_80() -> None:
    """The console accepts a host only as a name with its port. Browsers leave out port 80."""
    for given in ("localhost", "127.0.0.1:80", "[::1]", "[::1]:80", "LOCALHOST:80"):
        assert AllowedHosts("127.0.0.1", 80).is_allowed(given), given
        assert not AllowedHosts("127.0.0.1", 8642).is_allowed(given), given
    for given in (
        "",
        ":80",
        "[localhost]:80",
        "::1:80",
        "localhost:",
        "localhost:80:80",
        "localhost:80/",
        "x@localhost:80",
    ):
        assert not AllowedHosts("127.0.0.1", 80).is_allowed(given), given


def test_a_console_on_a_taken_port_says_so(post: Post, shared: Running) -> None:
    """``console`` on a port in use says that it cannot listen, and names ``--port``."""
    refused(post.call("console", "--port", shared.port), 1, "cannot listen", "--port")


def test_the_process_needs_nothing_of_its_files_in_the_package_directory(shared: Running) -> None:
    """Assets are served from the package; what is beside them is not to be had."""
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
        assert shared.ask(path).status in (404, 405), path
    assert (ROOT / "agent_mailbox/console/app.py").exists()


def test_agents_notice_nothing_when_it_dies(post: Post) -> None:
    """Killed at any moment, it leaves no lock and no trace in the logs."""
    post.register("ada")
    with Running(post) as console:
        console.enter()
        assert console.ask("/").status == 200
        console.kill()
        message: Any = post.send("ada", "user", "still here")
        assert post.unread("user") == [message]
    assert post.doctor() == []
    assert os.listdir(post.box)
