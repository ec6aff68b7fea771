"""The commands on a page work when pasted."""

from __future__ import annotations

import html
import shlex
from typing import TYPE_CHECKING

from agent_mailbox.console.error_pages import describe_error
from agent_mailbox.core.compose import EXAMPLE_ID
from agent_mailbox.errors import AGAIN, Busy
from agent_mailbox.mailbox.sending import retryable
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


def test_an_error_of_a_form_names_no_option_of_a_command(running: Running) -> None:
    """A form has no options. Its error says what to write, and a form that is sent again has its id already."""
    running.post.register("ada", "--name", "Ada")
    for path, fields, said in (
        ("/send", {"to": "ada", "body": " "}, "the body is empty. write its text"),
        ("/send", {"to": ",", "body": "x"}, "the message has no recipient. name an agent"),
        ("/send", {"to": "@bo", "body": "x"}, "without the sign: bo;"),
        ("/send", {"to": "Adda", "body": "x"}, "role:Adda insists on a role"),
        ("/send", {"to": "ada", "body": "x", "message_id": "1"}, "leave the id out"),
        ("/add-note", {"to": "project:x", "subject": " "}, "the note has no title. name it in a few words"),
        ("/assign", {"to": "ada", "subject": " "}, "the task has no title. name it in a few words"),
    ):
        told = running.does(path, **fields)["said"]
        assert said in told
        assert "--" not in told.replace("`agent-mailbox roster list --dir", "")
    late = retryable(Busy("the log is busy", AGAIN), [EXAMPLE_ID])
    assert describe_error(late, str)[0]["hint"] == "repeat it: nothing is sent twice"


def test_a_form_that_was_sent_before_says_that_it_may_be_sent_again(running: Running) -> None:
    """The back button brings a form as it was: with another text it is a new message, under the id that comes with the
    refusal. With the same text it is the one that was sent."""
    post = running.post
    fields = {"to": "all", "body": "first", "message_id": EXAMPLE_ID}
    for _ in range(2):
        assert running.does("/send", **fields)["kind"] == "done"
    refused = running.does("/send", **{**fields, "body": "second"})
    assert (refused["status"], "send it again" in refused["said"], "leave the id out" in refused["said"]) == (
        409,
        True,
        False,
    )
    assert running.does("/send", to="all", body="second", message_id=refused["message_id"])["kind"] == "done"
    assert [m["content"] for m in post.objects(MESSAGES)] == ["first", "second"]
