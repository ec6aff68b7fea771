"""The real client after the package was removed, and its hooks were not."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

from tests.claude.test_removed import Remains
from tests.e2e.standin import conversation, in_turn, use
from tests.e2e.test_mcp import AT_ONCE
from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from tests.e2e.client import Client

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    given = asked.get("params") or {}
    text = {"content": [{"type": "text", "text": "GOT " + json.dumps(given.get("arguments"))}]}
    tool = {"name": "get", "description": "gets", "inputSchema": {"type": "object"}}
    told = {"initialize": {"protocolVersion": given.get("protocolVersion"), "capabilities": {"tools": {}},
                           "serverInfo": {"name": "docs", "version": "1"}},
            "tools/list": {"tools": [tool]}, "tools/call": text}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told.get(asked["method"], {})}), flush=True)
"""
"""A server of one tool, which says what it was given."""


def test_without_the_package_a_strange_repository_is_left_alone(client: Client) -> None:
    """A server's tool gets an address, a file is written through a link; the mailbox of another project stays closed.
    The session is told nothing: no mailbox is there."""
    post = client.post
    post.ok("send", "--from", "a", "--to", "b", "--body", "x")
    remains = Remains(post)
    settings = client.project / ".claude/settings.local.json"
    command = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    settings.write_text(settings.read_text().replace(command.removesuffix(" Stop"), str(remains.path)))
    server = {"command": sys.executable, "args": ["-c", SERVER]}
    (configuration := post.scratch / "mcp.json").write_text(json.dumps({"mcpServers": {"docs": server}}))
    (client.project / "link").symlink_to(post.home)
    client.model.script = in_turn(
        [use("mcp__docs__get", url="https://example.org/", about="~ \\ /")],
        [use("Write", file_path=str(client.project / "link/x.txt"), content="WRITTEN")],
        [use("mcp__docs__get", path=str(post.box / MESSAGES))],
    )
    words = ("--mcp-config", configuration, "--strict-mcp-config", "--allowedTools", "mcp__docs,Write")
    words = (*words, "--permission-mode", "bypassPermissions", "--output-format", "stream-json", "--verbose")
    env: dict[str, str | None] = {**AT_ONCE, "AGENT_MAILBOX_DIR": None, "PATH": "/usr/bin:/bin", "IS_SANDBOX": "1"}
    with client.start("-p", "PROMPT_ONE", *words, "--include-hook-events", env=env) as process:
        out = process.communicate()[0].decode()
    assert process.returncode == 0, out
    talk = conversation([body for body in client.model.requests if body.get("tools")][-1])
    results: list[Any] = [
        block
        for message in client.model.requests[-1]["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_result"
    ]
    assert [bool(one.get("is_error")) for one in results] == [False, False, True], talk
    assert (post.home / "x.txt").read_text() == "WRITTEN"
    assert "GOT" in talk
    assert "the mailbox's own" in talk
    assert "To remove them" not in out
    assert shutil.which("agent-mailbox", path="/usr/bin:/bin") is None
