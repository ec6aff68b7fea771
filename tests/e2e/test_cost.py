"""The cost of mail, counted in the real client's request bodies: four characters a token, its own frame included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.clients import doorbell
from agent_mailbox.clients.budget import client_frame
from agent_mailbox.clients.texts import SECTION
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.standin import bash, said
from tests.e2e.terminal import Terminal
from tests.e2e.test_doorbell import idle
from tests.helpers import ROOT
from tests.night import nightly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.client import Client
    from tests.e2e.standin import Body

pytestmark = pytest.mark.usefixtures("on_path")
SUBJECT, TEXT = "Schema?", "May I add a column?"
ACK, ALL = ("--ack",), ("--ack", "--priority", "high", "--thread", "PARENT")
SHAPES: list[tuple[int, str, tuple[str, ...], int]] = [
    (0, "me", (), 0),
    (1, "me", (), 24),
    (1, "me", ACK, 26),
    (1, "me", (*ACK, "--priority", "high"), 27),
    (1, "role:x", ALL, 30),
    (5, "me", (), 5 * 11),
    (5, "role:x", ALL, 5 * 17),
]
"""How many messages between two requests, to whom, with which options, and the most that they may cost in tokens."""


def texts(body: Body) -> Iterator[str]:
    """The texts of a request's conversation, in order."""
    for message in body["messages"]:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            yield block.get("text") or json.dumps(block)


def told(body: Body, event: str) -> list[str]:
    """What hooks of this event told the model, the client's frame included, but not what else is in the block."""
    found = []
    for text in texts(body):
        if f"{event} hook additional context: " in text:
            inside, _, after = text.partition("\n</system-reminder>")
            lines = inside.split("\n\n")[0]
            found.append(lines + (f"\n{after}</system-reminder>" if text.startswith("<system-reminder>") else ""))
    return found


def test_a_message_costs_at_most_thirty_tokens_with_everything_on(client: Client) -> None:
    """Beside its subject and text, from the tool's result to the next request; without mail nothing at all."""
    post = client.post
    parent = post.send("bob", "role:nobody", "the message that others answer")
    post.register("cat-1", "--name", "cat", "--role", "builder")
    asked = 0

    def script(body: Body) -> list[Body]:
        nonlocal asked
        if not body.get("tools") or asked == len(SHAPES):
            return [said("DONE")]
        count, to, words, _ = SHAPES[asked]
        asked += 1
        for _ in range(count):
            me = next(a["session_id"] for a in post.ok("roster", "list")["agents"] if a["session_id"] != "cat-1")
            given = ["--subject", SUBJECT, *[parent if word == "PARENT" else word for word in words]]
            post.send("cat-1", me if to == "me" else to, TEXT, *given)
        return [bash("true")]

    client.model.script = script
    session = client.ask("PROMPT_ONE", "--allowedTools", "Bash", env={"AGENT_MAILBOX_ROLE": "x"})["session_id"]
    deliveries = told([body for body in client.model.requests if body.get("tools")][-1], "PostToolBatch")
    costs = []
    for (count, _, _, most), text in zip([shape for shape in SHAPES if shape[0]], deliveries, strict=True):
        assert (text.count(SUBJECT), text.count(TEXT)) == (count, count)
        costs.append((len(text) - count * len(SUBJECT + TEXT)) / 4)
        assert costs[-1] <= most, text
        assert text.index("Agent mail") == client_frame("PostToolBatch")
    counted = sum(cost["tokens"] for cost in post.ok("status", "--session", session, "--cost")["cost"])
    assert sum(map(len, deliveries)) <= 4 * counted <= sum(map(len, deliveries)) + 8 * 14


@nightly
def test_two_hooks_before_one_request_bring_two_deliveries(client: Client) -> None:
    """The start's and the prompt's: each is within its own budget, and ``status`` counts both frames."""
    post = client.post
    post.file("config.toml").write_text("[hook]\ntokens = 200\n")
    for number in range(40):
        post.send("bob", "all", f"MAIL_{number:02} " + "word " * 20)
    session = client.ask("PROMPT_ONE")["session_id"]
    first = next(body for body in client.model.requests if body.get("tools"))
    parts = [text for event in ("SessionStart", "UserPromptSubmit") for text in told(first, event)]
    assert [text.count("Agent mail") for text in parts] == [1, 1]
    assert all(len(text) <= 800 + client_frame("UserPromptSubmit") for text in parts)
    assert post.ok("status", "--session", session, "--cost")["cost"]


@nightly
def test_a_turn_that_goes_on_at_its_end_has_the_client_s_reminder_around_the_mail(client: Client) -> None:
    """The client puts a reminder around mail at a turn's end, so that its frame is 29 characters longer."""

    def script(body: Body) -> list[Body]:
        if body.get("tools") and TEXT not in json.dumps(body):
            client.post.send("bob", "all", TEXT)
        return [said("DONE")]

    client.model.script = script
    client.ask("PROMPT_ONE")
    (text,) = told([body for body in client.model.requests if body.get("tools")][-1], "Stop")
    assert len(text) - len("Agent mail 3f9a2c\n0bc9f3d7 bob → all\n| ") - len(TEXT) == client_frame("Stop")


@nightly
def test_our_part_of_a_wake_is_six_tokens(client: Client) -> None:
    """All else is the client's notice, of which ``status`` counts each character; the mail comes in the usual frame."""
    with Terminal(client) as terminal:
        session = idle(client, terminal)
        for word in ("MAIL_ONE", "MAIL_TWO"):
            terminal.mark()
            client.post.send("bob", session, word)
            terminal.wait(lambda word=word: client.model.asked(word))
            idle(client, terminal)
    body = [body for body in client.model.requests if body.get("tools")][-1]
    wake = [text for text in texts(body) if doorbell.LINE in text][-1]
    assert len(f"{doorbell.LINE}\n") / 4 <= 6
    assert abs(len(wake) / 4 - doorbell.TOKENS - CLAUDE_CODE.wake_tokens) <= 1
    assert client.post.ok("status", "--session", session, "--cost")["wakes"]["count"] == 2


def test_the_pages_tell_what_the_section_costs() -> None:
    """The figure of the section is its text's, as it is today."""
    row = f"| the section of `CLAUDE.md`, once a session | {len(SECTION) / 4} |"
    assert all(row in (ROOT / page).read_text() for page in ("docs/claude-code.md", "docs/internals/claude-code.md"))
