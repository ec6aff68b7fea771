"""The console's three views in Debian's Firefox. Its start takes long, so ``scripts/night console`` runs it."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import pytest
from websockets.sync.client import connect

from tests.console.conftest import Running
from tests.helpers import MESSAGES, PATIENCE, until
from tests.night import NIGHT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post


FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Control": "\ue009"}
LISTENING = "WebDriver BiDi listening on "


class Firefox:
    """A window of it, for a ``with`` block; the errors that its pages report are kept."""

    def __init__(self, profile: Path) -> None:
        assert FIREFOX is not None
        words = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        address = next(line for line in self._process.stderr if LISTENING in line).partition(LISTENING)[2].strip()
        self._connected = ExitStack()
        to_session = connect(f"{address}/session", max_size=None, open_timeout=PATIENCE)
        self._socket = self._connected.enter_context(to_session)
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        self._ask("session.new", {"capabilities": {}})
        self._ask("session.subscribe", {"events": ["log.entryAdded"]})
        self._window: str = self._ask("browsingContext.getTree", {})["contexts"][0]["context"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connected.close()
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE)

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("method") == "log.entryAdded" and told["params"]["level"] == "error":
                self.problems.append(told["params"]["text"])
            if told.get("id") == number:
                assert told["type"] == "success", told
                result: dict[str, Any] = told["result"]
                return result

    def go(self, url: str) -> None:
        """Open a page; return once it is live."""
        self._ask("browsingContext.navigate", {"context": self._window, "url": url, "wait": "complete"})
        self.wait_for("document.querySelector('.link-state.live')")

    def look(self, expression: str) -> Any:
        """Return what an expression of the page gives, as JSON; None while the page is being left."""
        function = f"() => JSON.stringify(({expression}) ?? null)"
        params = {"functionDeclaration": function, "awaitPromise": True, "target": {"context": self._window}}
        result = self._ask("script.callFunction", params)
        return json.loads(result["result"]["value"]) if result["type"] == "success" else None

    def wait_for(self, expression: str) -> None:
        """Wait until an expression of the page is true."""
        until(lambda: self.look(f"Boolean({expression})"))

    def text(self, selector: str) -> str:
        """Return the text of the first element that is so."""
        found: str = self.look(f"document.querySelector({json.dumps(selector)}).innerText")
        return found

    def click(self, selector: str) -> None:
        """Press the middle of an element, once it is there."""
        one = f"[...document.querySelectorAll({json.dumps(selector)})].find(e => e.getClientRects().length)"
        self.wait_for(one)
        box = self.look(f"{one}.scrollIntoView({{block: 'center'}}) ?? {one}.getBoundingClientRect()")
        place = {"x": round(box["x"] + box["width"] / 2), "y": round(box["y"] + box["height"] / 2)}
        acts = [
            {"type": "pointerMove", **place},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self._act({"type": "pointer", "id": "mouse", "actions": acts})

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        for sign in text:
            self.press(sign)

    def press(self, *keys: str) -> None:
        """Press keys together: those before the last one are held."""
        codes = [KEYS.get(key, key) for key in keys]
        acts = [{"type": "keyDown", "value": code} for code in codes]
        acts += [{"type": "keyUp", "value": code} for code in reversed(codes)]
        self._act({"type": "key", "id": "keyboard", "actions": acts})

    def _act(self, source: dict[str, Any]) -> None:
        self._ask("input.performActions", {"context": self._window, "actions": [source]})


pytestmark = [
    pytest.mark.skipif(not NIGHT, reason="takes long: scripts/night console"),
    pytest.mark.skipif(FIREFOX is None, reason="no firefox here (on Debian: apt-get install firefox-esr)"),
]


def test_one_decides_answers_searches_and_sees_news_in_firefox(post: Post, tmp_path: Path) -> None:
    """The launch link signs in, keys decide, an answer reaches its thread, and a channel shows what comes. No page
    reports an error."""
    for name in ("Ada", "Bo"):
        post.register(name.lower(), "--name", name, "--tags", "project:x", "--lead", "user")
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session")
    approved, denied = (post.ok(*words, who)["request"]["id"] for who in ("ada", "bo"))

    def decisions() -> dict[str, tuple[bool, str]]:
        said = (json.loads(m["content"]) for m in post.objects(MESSAGES) if "permission_response" in m["content"])
        return {one["requestId"]: (one["approved"], one.get("notes", "")) for one in said}

    profile = tmp_path / "profile"
    profile.mkdir()
    with Running(post) as console, Firefox(profile) as firefox:
        firefox.go(console.link)
        for request, keys, reason in ((approved, "y", ""), (denied, "n", "not today")):
            firefox.click(f"#r-{request} a")
            firefox.wait_for(f"document.querySelector('#details .card[data-request=\"{request}\"]')")
            firefox.press(keys)
            if reason:
                firefox.type(reason)
                firefox.press("Enter")
        until(lambda: decisions() == {approved: (True, ""), denied: (False, "not today")})
        asked = post.send("ada", "user", "May I?", "--ack")
        firefox.click(f'#inbox [data-message="{asked}"] a')
        firefox.click("#reply")
        firefox.type("You may.")
        firefox.press("Control", "Enter")
        until(lambda: post.objects(MESSAGES)[-1]["content"] == "You may.")
        firefox.go(f"{console.url}channel?to=project:x")
        post.send("bo", "project:x", "LIVE in the fox", "--subject", "Foxes")
        firefox.wait_for("document.querySelector('.list').innerText.includes('LIVE in the fox')")
        firefox.wait_for("document.querySelector('#topics').innerText.includes('Foxes')")
        firefox.press("/")
        firefox.type("fox")
        firefox.press("Enter")
        firefox.wait_for("location.pathname === '/search' && document.querySelectorAll('.message').length === 1")
        firefox.go(f"{console.url}fleet")
        assert "Ada" in firefox.text(".fleet-board")
        assert firefox.problems == []
