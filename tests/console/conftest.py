"""The console as its own process, asked over its socket; and its pages in the browser."""

from __future__ import annotations

import functools
import http.client
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

import pytest

from tests import browsers
from tests.console.forms import find_form, read_forms
from tests.e2e.client import npm_file
from tests.helpers import PATIENCE, PRODUCT, Post

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

browser, chromium = browsers.browser, browsers.chromium


class Answer:
    """What a request was answered with."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.text = body.decode("utf-8", "replace")


@functools.cache
def load_console() -> None:
    """Import what a console needs and compile its templates, once: each console is forked from this process."""
    from agent_mailbox.cli import loading_ahead
    from agent_mailbox.console import app

    for name in (
        *("anyio._backends._asyncio", "uvicorn.lifespan.on", "uvicorn.loops.asyncio"),
        *("uvicorn.protocols.http.h11_impl", "agent_mailbox.commands.console_command"),
    ):
        import_module(name)
    loading_ahead.load_rooms("console", "teams")
    app.make_templates("", str, "/static/1")


class Running:
    """A console that runs, for a ``with`` block."""

    def __init__(self, post: Post, *words: object, env: Mapping[str, str | None] | None = None, **how: Any) -> None:
        load_console()
        self.post = post
        self._process = post.start("console", "--port", "0", "--json", *words, env=env, forked=bool(PRODUCT), **how)
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline() or b"null")
        if told is None or "error" in told:
            _, err = self._process.communicate(timeout=PATIENCE)
            raise AssertionError(err.decode())
        self.url: str = told["url"]
        self.link: str = told["link"]
        self.port: int = told["port"]
        self.pid: int = told["pid"]
        self.cookie = ""

    @property
    def token(self) -> str:
        return self.link.partition("#token=")[2]

    @property
    def host(self) -> str:
        """What a browser says in its Host header."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def ask(
        self,
        path: str,
        fields: Mapping[str, str] | bytes | None = None,
        *,
        method: str | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """One request as a page of the console's own makes it; ``headers`` replace those, None takes one away."""
        body = urlencode(fields).encode() if isinstance(fields, dict) else fields
        method = method or ("GET" if fields is None else "POST")
        sent: dict[str, str | None] = {
            "Host": self.host,
            "Accept": "text/html",
            "Sec-Fetch-Site": "same-origin",
            "Cookie": self.cookie or None,
        }
        if method == "POST":
            sent |= {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        sent |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if isinstance(body, bytes) and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body if isinstance(body, bytes) else None)
            answer = connection.getresponse()
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            return Answer(answer.status, answer.headers, b"" if streams else answer.read())
        finally:
            connection.close()

    def enter(self) -> Self:
        """Exchange the launch link for a session."""
        answer = self.ask("/session", {"token": self.token})
        assert answer.status == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    def form(
        self, page: str, action: str, having: Mapping[str, str] | None = None, press: str = "", **written: str
    ) -> dict[str, str]:
        """A form of a page as it is there, filled in: every field that its template gives, and what is typed.

        ``having``: values by which the form is found; ``press``: the value of the button."""
        form = find_form(read_forms(self.ask(page).text), action, **(having or {}))
        assert written.keys() <= form.fields.keys(), (written, form.fields)
        where, fields = form.pressed(press)
        assert press == "" or where == action
        return {**fields, **written}

    def submit(
        self, page: str, action: str, having: Mapping[str, str] | None = None, press: str = "", **written: str
    ) -> dict[str, Any]:
        """Fill in and send a form of a page, as ``form`` does; what the page is told of it."""
        return self.does(action, **self.form(page, action, having, press, **written))

    def does(self, path: str, **fields: str) -> dict[str, Any]:
        """What the person does by a button; what the page is told of it."""
        answer = self.ask(path, fields, headers={"Accept": "application/json"})
        told: dict[str, Any] = json.loads(answer.text)
        return {"status": answer.status, **told}


@pytest.fixture
def running(post: Post) -> Iterator[Running]:
    """A console of an empty mailbox, the person signed in."""
    with Running(post) as console:
        yield console.enter()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A console that the tests of a module share, with two agents; nothing they do there hinders another."""
    post = Post(tmp_path_factory.mktemp("shared"))
    post.register("ada", "--name", "Ada", "--role", "architect", "--tags", "project:inscription")
    post.register("bo", "--name", "Bo", "--tags", "project:inscription")
    with Running(post) as console:
        yield console.enter()


class Window:
    """A page of the console in a browser of its own, the person signed in; problems it reported are kept."""

    def __init__(self, browser: Browser, console: Running, **how: Any) -> None:
        self.console = console
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
        if console.cookie:
            name, _, value = console.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": console.url}])
        self.context = context
        context.set_default_timeout(browsers.BROWSER_PATIENCE)
        # What the page puts off for some seconds, such as sending a decision, comes after a tenth of them.
        context.add_init_script(
            "const usual = window.setTimeout; window.setTimeout = (does, ms, ...more) =>"
            " usual(does, ms > 1900 && ms <= 5000 ? ms / 10 : ms, ...more);"
        )
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)

    def go(self, path: str, *, live: bool = True) -> Page:
        """Open a page; returns once it is live."""
        self.page.goto(self.console.url.rstrip("/") + path)
        if live:
            self.page.wait_for_selector(".link-state.live")
        return self.page

    def choose(self, request: str) -> Locator:
        """Choose a request in the inbox; its card beside the list."""
        self.page.locator(f"#r-{request} a").click()
        card = self.page.locator(f'#details .card[data-request="{request}"]')
        card.wait_for()
        return card

    def unhurried(self) -> Self:
        """Have no decision go and no notice fade by itself: a test slower than that would find them gone."""
        self.page.add_init_script(
            "const later = window.setTimeout;"
            "window.setTimeout = (does, ms, ...more) => later(does, ms >= 4500 ? 2 ** 31 - 1 : ms, ...more);"
        )
        return self

    def axe(self, program: Path, rules: Sequence[str] = (), within: str = "html") -> list[str]:
        """What axe-core finds wrong with the page or a part of it, by some of its rules or all of them.

        What stays in sight as one scrolls is laid out where it belongs: it would hide a half of what is below it."""
        if not self.page.evaluate("'axe' in window"):
            self.page.add_init_script(program.read_text())
            self.page.evaluate(program.read_text())
        how: dict[str, Any] = {"resultTypes": ["violations"], "iframes": False, "preload": False, "selectors": False}
        # without names of rules each, and the one which it leaves out by itself
        how |= {"runOnly": list(rules)} if rules else {"rules": {"target-size": {"enabled": True}}}
        found = self.page.evaluate(
            """async ([within, how]) => {
                for (const one of document.querySelectorAll("body *"))
                    if (getComputedStyle(one).position === "sticky") one.style.position = "static";
                const include = [...document.querySelectorAll(within)];
                return include.length ? (await axe.run({ include }, how)).violations : [];
            }""",
            [within, how],
        )
        return [
            f"{v['id']} ({v['impact']}): {node['html'][:160]} — {node['failureSummary'][:300]}"
            for v in found
            for node in v["nodes"][:3]
        ]


@pytest.fixture(scope="session")
def axe() -> Path:
    """The accessibility checker's script, pinned."""
    return npm_file("axe-core", "4.14.1", "axe-core/axe.min.js")
