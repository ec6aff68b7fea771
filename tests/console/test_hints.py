"""The commands on a page work when pasted."""

from __future__ import annotations

import html
import shlex
from typing import TYPE_CHECKING

from tests.console.conftest import Running
from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from tests.helpers import Post


def test_the_commands_on_a_page_name_the_mailbox_that_the_console_was_given(post: Post) -> None:
    """Each command on a page names the mailbox with its whole path, for its reader may be in another directory."""
    box = post.cwd / "a box"
    post.run("init", box)
    post.env.pop("AGENT_MAILBOX_DIR", None)
    assert post.call("send", "--from", "ann", "--to", "all", "--body", "x", "--dir", box).rc == 0
    place = f"--dir {shlex.quote(str(box))}"
    with Running(post, "--dir", "a box") as console:
        console.enter()
        shown = html.unescape(console.ask("/?open=no-such").text)
        assert f"`agent-mailbox history {place} --all` lists ids" in shown
        assert f"`agent-mailbox roster list {place}`" in console.does("/send", to="@ann", body="x")["said"]
        (box / MESSAGES).write_bytes(b"")
        assert f"<code>agent-mailbox doctor {place} --trust</code>" in html.unescape(console.ask("/").text)


def test_an_address_without_a_page_is_answered_by_a_page(running: Running) -> None:
    """A misspelt address leads on: it has the lists of all others, and is escaped as all else."""
    answer = running.ask("/inbx<b>")
    assert answer.status == 404
    assert "the console has no such page" in answer.text
    assert 'href="/search"' in answer.text
    assert "<b>" not in answer.text
