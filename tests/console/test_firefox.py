"""The console's three views in Debian's Firefox. Its start takes long, so ``scripts/night console`` runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import Running
from tests.console.firefox import FIREFOX, Firefox
from tests.helpers import MESSAGES, until
from tests.night import NIGHT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

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
