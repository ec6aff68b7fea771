"""The real client: a command in another's name does not run and the model is told why; plain mail needs no asking."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows
from tests.e2e.standin import bash, in_turn
from tests.helpers import MESSAGES
from tests.night import nightly

if TYPE_CHECKING:
    from tests.e2e.client import Client

pytestmark = pytest.mark.usefixtures("on_path")


def outcome(client: Client, command: str, *words: object, **how: Any) -> tuple[str, bool]:
    """The model asks for a command: what it was told, and whether that was an error."""
    client.model.script = in_turn([bash(command)])
    before = len(client.model.requests)
    client.ask("PROMPT", *words, **how)
    for body in client.model.requests[before:]:
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "tool_result":
                    content = block["content"]
                    return content if isinstance(content, str) else json.dumps(content), block.get("is_error", False)
    raise AssertionError("the tool was not asked for")


@nightly
@shows(CLAUDE_CODE, "guard")
def test_another_s_name_is_refused_and_the_model_told_why(client: Client) -> None:
    """A command in another's name is refused and writes nothing, even if every command is allowed. A file is not sent
    unasked."""
    for command, said in (
        ("agent-mailbox send --from user --to bob --body FORGED", "'user' is another"),
        ("agent-mailbox roster update --tags project:forged --session-id OTHER", "'OTHER' is another"),
        ("agent-mailbox send --to bob --body @/etc/hostname", "sends the file /etc/hostname"),
    ):
        told, wrong = outcome(client, command, "--allowedTools", "Bash")
        assert said in told, command
        assert wrong
    assert not client.post.objects(MESSAGES)
    assert "OTHER" not in [a["session_id"] for a in client.post.ok("roster", "list")["agents"]]


@shows(CLAUDE_CODE, "plain mail unasked")
def test_plain_mail_runs_in_default_mode_without_asking(client: Client) -> None:
    """Plain mail runs unasked in a project that the person trusts. The client asks about a command without a rule."""
    for number, command in enumerate(
        (
            "agent-mailbox send --to bob --body SENT0",
            "agent-mailbox send --to bob --body SENT1 --json | cat",
        )
    ):
        told, wrong = outcome(client, command, "--permission-mode", "default")
        assert not wrong, told
        assert [m["content"] for m in client.post.objects(MESSAGES)][number] == f"SENT{number}"
    told, wrong = outcome(client, "agent-mailbox steward run", "--permission-mode", "default")
    assert wrong, told
