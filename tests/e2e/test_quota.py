"""The real client as its quota ends: the API refuses, and what the session holds goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.shown import takes_long
from tests.e2e.standin import Failed, bash, in_turn
from tests.e2e.terminal import Terminal
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from tests.e2e.client import Client

WORKER = {"AGENT_MAILBOX_ROLE": "worker", "AGENT_MAILBOX_NAME": "ann", "CLAUDE_CODE_MAX_RETRIES": "0"}
ALLOWED = ("--allowedTools", "Bash")


@pytest.mark.usefixtures("on_path")
@pytest.mark.claude_code
@pytest.mark.parametrize("place", ["-p", pytest.param("terminal", marks=takes_long)])
def test_the_end_of_a_quota_gives_back_what_a_session_holds(client: Client, place: str) -> None:
    """Its claimed task is open again, its role mail goes to the other holder, and its lead hears of both once. At a
    terminal the session stays."""
    post = client.post
    post.register("lee")
    post.register("ben", "--role", "worker")
    post.ok("task", "add", "--to", "role:worker", "--title", "First", "--task-id", "task-a", "--session", "lee")
    mail = post.send("lee", "role:worker", "MAIL_ROLE", "--ack")
    refused = Failed(429, "This request would exceed your account's rate limit.")
    client.model.script = in_turn([bash("agent-mailbox task claim --next")], refused)
    if place == "terminal":
        with Terminal(client, *ALLOWED, env=WORKER) as terminal:
            terminal.wait(terminal.idle)
            terminal.submit("PROMPT")
            terminal.wait(lambda: post.unread("lee"))
            (session,) = (one for one in post.ok("roster", "list")["agents"] if one["name"] == "ann")
            assert session["state"] == "alive"
            terminal.kill()  # told to end, it takes five seconds
    else:
        with client.start("-p", "PROMPT", *ALLOWED, env=WORKER) as process:
            process.communicate(timeout=PATIENCE)
    assert "| MAIL_ROLE" in client.model.asked("PROMPT")[0]
    (task,) = post.ok("task", "show", "task-a").values()
    steps = [one["type"] for one in task["history"] if one["outcome"] == "applied"]
    assert (task["state"], steps) == ("open", ["task_assignment", "task_claim", "task_dropped"])
    assert post.check("ben") == [mail]
    (heard,) = post.ok("check", "--session", "lee")["messages"]
    assert heard["content"].startswith("ann cannot go on: rate_limit: API Error: Request rejected (429)")
    assert heard["content"].endswith("It gave back: task-a (First), 1 message to its roles.")
