"""A session with a lead, through the hooks: control before chat, and the lead is told when its turn ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.claude.test_guard import Shim
from tests.claude.test_hooks import ME, Client
from tests.helpers import MESSAGES, Post

if TYPE_CHECKING:
    from pathlib import Path

LEAD = "lead-1"


@pytest.fixture
def led(tmp_path: Path) -> Client:
    """A session that registered by its hook and was given a lead."""
    post = Post(tmp_path)
    client = Client(post)
    post.register(LEAD, "--name", "Lee")
    client.hook("SessionStart")
    post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
    return client


def idle(post: Post) -> list[dict[str, Any]]:
    """What was said about turns that ended."""
    bodies = [json.loads(m["content"]) for m in post.objects(MESSAGES) if m.get("type") == "control"]
    return [body for body in bodies if body["type"] == "idle_notification"]


def test_the_lead_is_told_once_when_a_turn_ends(led: Client) -> None:
    """A worker's Stop tells its lead once that the turn ended. A Stop that shows mail, or another event, tells
    nothing."""
    led.post.send(LEAD, ME, "one more thing")
    assert "one more thing" in led.context("Stop")
    for event in ("UserPromptSubmit", "PostToolUse"):
        assert led.hook(event).raw == b""
    assert idle(led.post) == []
    assert led.hook("Stop", stop_hook_active=True).raw == b""
    assert [(body["state"], body["idleReason"], body["agentId"]) for body in idle(led.post)] == [
        ("idle", "available", ME)
    ]
    assert "| idle_notification: available" in led.post.call("check", "--session", LEAD).stdout
    led.hook("UserPromptSubmit")
    led.hook("Stop")
    assert len(idle(led.post)) == 2


def test_a_session_without_a_lead_tells_nobody(tmp_path: Path) -> None:
    """A session without a lead tells nobody that its turn ended."""
    client = Client(Post(tmp_path))
    client.hook("SessionStart")
    assert client.hook("Stop").raw == b""
    assert client.post.lines(MESSAGES) == []


@pytest.mark.parametrize("how", ["led by the person", "its lead is gone"])
def test_the_person_is_not_told_of_every_turn(led: Client, how: str) -> None:
    """It would be mail that nobody reads; nor does the guard start anything for it."""
    if how == "led by the person":
        led.post.ok("roster", "update", "--session-id", ME, "--lead", "user")
    else:
        led.post.ok("roster", "retire", LEAD)
    led.hook("UserPromptSubmit")
    before = led.post.lines(MESSAGES)
    assert led.hook("Stop").raw == b""
    assert led.post.lines(MESSAGES) == before
    shown = led.post.file(".cache", "quiet", ME).read_bytes()
    assert shown == (b"" if how == "led by the person" else b"led\n")


def test_the_guard_lets_the_end_of_a_turn_through_for_a_lead(post: Post) -> None:
    """The shim starts Python at each Stop of a session that has a lead. Without mail, no other event starts it."""
    shim = Shim(post)
    shim.hook("SessionStart")
    shim.hook("Stop")
    assert shim.starts() == 1
    post.register(LEAD)
    post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
    for turn in (1, 2):
        shim.hook("UserPromptSubmit")
        shim.starts()
        for event in ("PostToolUse", "UserPromptSubmit"):
            assert shim.hook(event).raw == b""
        assert shim.starts() == 0
        assert shim.hook("Stop").raw == b""
        assert shim.starts() == 1
        assert len(idle(post)) == turn


def test_control_is_in_force_before_the_chat_that_came_with_it_is_shown(led: Client) -> None:
    """It is first, and what was refused of it says so; no reply to it is offered."""
    post = led.post
    post.send(LEAD, ME, "go ahead")
    post.ok("control", "mode", ME, "plan", "--session", LEAD)
    post.send("peer-1", ME, '{"type": "mode_set_request", "mode": "acceptEdits"}', "--type", "control", "--ack")
    assert post.ok("control", "mode", "--session", ME)["agents"][0]["mode"] == "plan"
    text = led.context("UserPromptSubmit")
    assert text.index("| mode_set_request: plan") < text.index("| go ahead")
    assert f"refused: peer-1 is not the lead of {ME}" in text
    assert " reply " not in text


def test_a_muted_lead_s_control_is_heard(led: Client) -> None:
    """Mail may be muted, coordination not."""
    led.post.ok("mute", LEAD, "--session", ME)
    led.post.send(LEAD, ME, "chat")
    led.post.ok("control", "request", "shutdown", ME, "--session", LEAD)
    text = led.context("UserPromptSubmit")
    assert "shutdown_request" in text
    assert "control answer shutdown-" in text
    assert "chat" not in text
