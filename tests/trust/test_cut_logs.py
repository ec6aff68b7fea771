"""A log that was cut, replaced or removed: whoever looks is told at once, and of what."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import BadData
from agent_mailbox.mailbox import queries
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.queries import MailQueries
from tests.claude.test_hooks import ME, Client
from tests.console.conftest import Running
from tests.helpers import MESSAGES, READS, ROSTER, Post, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_mailbox.core.inbox import Item


def cut(log: Path) -> None:
    """As a truncation leaves it."""
    os.truncate(log, log.stat().st_size // 2)


def emptied(log: Path) -> None:
    """As ``: > log`` leaves it."""
    os.truncate(log, 0)


def replaced(log: Path) -> None:
    """As a restored or pulled file: another one, of the same length."""
    other = log.with_name("other")
    other.write_bytes(log.read_bytes())
    other.replace(log)


def rewritten(log: Path) -> None:
    """As long as it was, in its place, with other bytes at its end."""
    with log.open("r+b") as file:
        file.seek(-40, 2)
        file.write(b"x" * 39)


def removed(log: Path) -> None:
    """Gone; of the messages there is a test of its own."""
    log.unlink()


HOW: dict[str, Callable[[Path], None]] = {
    "its last lines are missing": cut,
    "has 0 bytes, and had": emptied,
    "another file": replaced,
    "does not hold what was written": rewritten,
    "is gone; it had": removed,
}
CASES = [(log, how) for log in (MESSAGES, READS, ROSTER) for how in HOW if (log, HOW[how]) != (MESSAGES, removed)]


@pytest.fixture(name="quiet")
def _quiet(post: Post) -> Client:
    """A session that has read its mail, so that its quiet stamp is there; every log has lines."""
    client = Client(post)
    client.hook("SessionStart")
    client.post.register("ann")
    for text in ("one", "two"):
        client.post.send("ann", ME, text)
        assert text in client.context("UserPromptSubmit")
    assert client.hook("UserPromptSubmit").raw == b""
    assert client.post.check(ME) == []
    return client


@pytest.mark.parametrize(("log", "how"), CASES)
def test_every_door_says_so_with_the_file_and_what_it_misses(quiet: Client, log: str, how: str) -> None:
    """Commands on standard error, with the next step; the session's next hook, whichever that is, once."""
    post = quiet.post
    HOW[how](post.file(log))
    told = quiet.context("UserPromptSubmit")
    assert str(post.file(log)) in told
    assert how in told
    assert quiet.hook("PostToolUse").raw == b""
    for words in (
        ("check", "--session", ME),
        ("status", "--session", ME),
        ("wait", "--session", ME, "--timeout", "0"),
        ("history", "--all"),
        ("roster", "list"),
        ("control", "pending", "--session", ME),
        ("send", "--from", "ann", "--to", "all", "--body", "x"),
    ):
        warnings = [line for line in post.call(*words).warnings if str(post.file(log)) in line]
        assert len(warnings) == 1, words
        assert how in warnings[0]
        assert "doctor --trust" in warnings[0]
    assert str(post.file(log)) in quiet.context("SessionStart", source="resume")
    assert post.call("doctor").rc == 3
    post.ok("doctor", "--trust", "--yes")
    assert post.call("check", "--session", ME).warnings == []


@pytest.mark.parametrize("event", ["PostToolUse", "Stop"])
@pytest.mark.parametrize("log", [MESSAGES, READS, ROSTER])
def test_the_first_hook_after_a_cut_tells_of_it_and_the_next_is_still(quiet: Client, event: str, log: str) -> None:
    """The first hook after a log was cut tells of it, within a turn and at its end. The next hook is still. A session
    that the roster does not know any more is told, too."""
    emptied(quiet.post.file(log))
    assert log in json.dumps(quiet.hook(event).json)
    assert quiet.hook(event).raw == b""
    quiet.hook("UserPromptSubmit")  # a session that the roster lost registers, and is told once more
    assert quiet.hook("UserPromptSubmit").raw == b""


class Cutting(Delivery):
    """A look that finds nothing, right before the log is cut."""

    def look(self, session_id: str) -> list[Item]:
        """Look, then lose lines."""
        found = super().look(session_id)
        cut(Path(self.box.directory, MESSAGES))
        return found


@pytest.mark.parametrize("how", [cut, emptied, replaced], ids=lambda how: how.__name__)
def test_the_doctor_calls_no_cut_log_harmless(quiet: Client, how: Callable[[Path], None]) -> None:
    """Beside the problem of the cut is no note that takes it back."""
    how(quiet.post.file(MESSAGES))
    quiet.post.call("status", "--session", "ann")
    done = quiet.post.call("doctor")
    assert "nothing here counts as proven" in done.stdout
    assert "harmless" not in done.stdout


def test_a_wait_ends_with_an_error_when_a_log_is_cut_meanwhile(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for mail ends with an error when a log is cut meanwhile. It would otherwise wait for what is gone."""
    post.register("ann")
    post.send("ann", "bob", "x")
    monkeypatch.setattr(queries, "Delivery", Cutting)
    with pytest.raises(BadData, match="its last lines are missing") as told:
        MailQueries(Mailbox(str(post.box))).wait("eve", None)
    assert told.value.code == "broken"


def test_a_removed_messages_log_is_no_mailbox_that_never_was(quiet: Client) -> None:
    """Commands fail and hooks tell the person; no hint makes a new mailbox without a word of the old one."""
    post, env = quiet.post, {"AGENT_MAILBOX_DIR": None}
    project = post.box.parent
    post.file(MESSAGES).unlink()
    for words, at in ((("check", "--session", ME), env), (("check", "--session", ME), {}), (("doctor",), {})):
        result = refused(post.call(*words, "--json", env=at, cwd=project), 5, str(post.file(MESSAGES)), "is gone")
        assert "restore" in result.stderr
        assert result.json["error"]["code"] == "log_gone"
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        assert MESSAGES in quiet.hook(event).json["systemMessage"]
    assert post.call("init", post.box).rc == 0
    shutil.rmtree(post.box)
    refused(post.call("check", "--session", ME, env=env, cwd=project), 1, "no mailbox here")


def test_the_console_says_so_on_each_page(post: Post) -> None:
    """Beside what the page shows."""
    post.register("ann")
    post.send("ann", "all", "x")
    with Running(post) as console:
        console.enter()
        assert "doctor --trust" not in console.ask("/").text
        cut(post.file(MESSAGES))
        for path in ("/", "/agents", "/archive"):
            text = console.ask(path).text
            assert "its last lines are missing" in text
            assert "doctor --trust" in text
