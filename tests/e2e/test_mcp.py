"""The MCP server in the real client: its model checks its mail and answers, by tools alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.every_client import MCP_CLIENT
from agent_mailbox.mcp.tool_schemas import TOOLS
from tests.e2e.client import npm_file
from tests.e2e.shown import shows
from tests.e2e.standin import conversation, in_turn, use
from tests.helpers import DOOR, MESSAGES, PATIENCE, READS
from tests.night import NIGHT

if TYPE_CHECKING:
    from tests.e2e.client import Client
    from tests.helpers import Post

INSPECTOR = "0.15.0"
AT_ONCE: dict[str, str | None] = {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false"}
"""Has the client wait for the server before it asks the model, and tell the model of all tools."""


@shows(MCP_CLIENT, "tools", by=CLAUDE_CODE)
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


@pytest.mark.skipif(not NIGHT, reason="the inspector is large: scripts/night")
def test_the_protocol_s_own_inspector_finds_the_tools_and_calls_them(post: Post) -> None:
    """The inspector of MCP lists our tools, reads mail with one, and gets an error as the tool's own."""
    inspector = npm_file("@modelcontextprotocol/inspector", INSPECTOR, ".bin/mcp-inspector")
    post.register("cy")
    post.send("bob", "cy", "READY_QUESTION")
    told = {"AGENT_MAILBOX_SESSION": "cy", "AGENT_MAILBOX_DIR": str(post.box), "PYTHONPATH": str(DOOR)}
    told |= {name: post.env[name] for name in post.env if name.startswith("AGENT_MAILBOX_TEST")}
    given = [word for name, value in told.items() for word in ("-e", f"{name}={value}")]

    def inspected(*words: str) -> Any:
        command = [inspector, "--cli", *given, sys.executable, "-m", "agent_mailbox", "mcp", "--method", *words]
        return json.loads(
            subprocess.run(command, check=True, capture_output=True, env=post.env, timeout=PATIENCE).stdout
        )

    assert {tool["name"] for tool in inspected("tools/list")["tools"]} == {*TOOLS}
    assert "| READY_QUESTION" in inspected("tools/call", "--tool-name", "check")["content"][0]["text"]
    assert inspected("tools/call", "--tool-name", "who", "--tool-arg", "session=user")["isError"] is True
