"""The MCP server in the real client: its model checks its mail and answers, by tools alone."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.e2e.standin import conversation, in_turn, use
from tests.helpers import MESSAGES, READS

if TYPE_CHECKING:
    from tests.e2e.conftest import Client

AT_ONCE: dict[str, str | None] = {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false"}
"""Has the client wait for the server before it asks the model, and tell the model of all tools."""


def test_a_model_reads_and_answers_its_mail_by_tools(client: Client) -> None:
    """No hook of ours runs. The mail is in the model's next request, framed, and only once. The answer acks it, and is
    that of the agent that the person's configuration names."""
    post = client.post
    post.ok("uninstall", "claude-code", "--project", client.project)
    post.register("cy")
    post.register("bob")
    sent = post.send("bob", "cy", "READY_QUESTION", "--ack")
    server = {"command": sys.executable, "args": ["-m", "agent_mailbox", "mcp"], "env": {"AGENT_MAILBOX_SESSION": "cy"}}
    (configuration := post.scratch / "mcp.json").write_text(json.dumps({"mcpServers": {"mail": server}}))
    client.model.script = in_turn(
        [use("mcp__mail__check")],
        [use("mcp__mail__reply", id=sent[:8], body="READY_ANSWER")],
        [use("mcp__mail__check")],
    )
    words = ("--mcp-config", configuration, "--strict-mcp-config", "--allowedTools", "mcp__mail")
    client.ask("PROMPT_ONE", *words, env=AT_ONCE)
    bodies = [body for body in client.model.requests if "PROMPT_ONE" in conversation(body) and body.get("tools")]
    tools = {tool["name"] for tool in bodies[0]["tools"]}
    assert {f"mcp__mail__{name}" for name in ("check", "send", "reply", "search", "who")} <= tools
    talk = conversation(bodies[-1])
    assert "| READY_QUESTION" in talk
    assert [m["content"] for m in post.objects(MESSAGES)] == ["READY_QUESTION", "READY_ANSWER"]
    assert post.objects(MESSAGES)[-1]["sender"] == "cy"
    assert [r["event"] for r in post.objects(READS)] == ["read", "ack"]
