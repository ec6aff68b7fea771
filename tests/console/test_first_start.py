"""The first start of the console in a large mailbox: its pages are there at once, beside the building of the index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.console import desk
from agent_mailbox.mailbox import mail_pages
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.projection import index_keys
from tests.console.conftest import Running
from tests.helpers import MESSAGES, Post, until

if TYPE_CHECKING:
    import pytest

BUILDING = "The search index is being built"


def test_pages_cover_the_newest_mail_until_the_index_is_there(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """They say so, and find the rest once it is built; here another process is building, which holds the lock.

    Much mail is less of it in this process, from which the console is forked."""
    monkeypatch.setattr(desk, "MUCH", 2 << 20)
    monkeypatch.setattr(mail_pages, "NEWS", 1 << 20)
    long = "x" * 60_000
    lines = [
        {
            "id": f"long-{n}",
            "sender": "zed",
            "recipient": "all",
            "timestamp": "2026-03-16T12:00:00.000Z",
            "content": text,
        }
        for n, text in enumerate(["oldest word", *[long] * (desk.MUCH // len(long) + 1), "newest word"])
    ]
    post.append(MESSAGES, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    lock = FileLock(str(post.file(".cache", index_keys.LOCK)), 0)
    post.file(".cache").mkdir(exist_ok=True)
    with lock.take(), Running(post) as console:
        console.enter()
        page = " ".join(console.ask("/search?q=word").text.split())
        assert BUILDING in page
        assert "newest 1 of 2 MB" in page
        assert "newest word" in page
        assert "oldest word" not in page
        assert console.ask("/timeline").status == 200
        newest = lines[-1]["id"]
        assert "No agent was shown this message yet" in console.ask(f"/?open={newest}").text
        assert "in the newest mail" in console.ask("/?open=long-0").text
        lock.release()
        until(lambda: BUILDING not in console.ask("/").text)
        page = console.ask("/search?q=word").text
        assert "newest word" in page
        assert "oldest word" in page
