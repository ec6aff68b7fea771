"""Messages of one thread in one delivery: one block with one frame, and answers of the same few words on one line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import inbox
from agent_mailbox.core.records import USER
from agent_mailbox.core.showing import thread_blocks
from agent_mailbox.mcp import tool_commands
from tests.core.build import at, message, register, state
from tests.helpers import MESSAGES, READS, Post, record

if TYPE_CHECKING:
    from agent_mailbox.core.records import Message
    from agent_mailbox.mcp.tool_schemas import ToolAnswer

PEOPLE = [register("bob-1", "role:x", "project:p"), register("ann-1", name="ann"), register("cat-1", name="cat")]
ROOT = message("root", sender="bob-1", to="project:p")
ANSWER = {"thread": "root", "content": "ok"}
AT_ROOT = {message.id: message for message in (ROOT, message("p1", thread="root"), message("p2", thread="root"))}


def blocks(*mail: Message) -> str:
    """The blocks of bob's unread mail: rows between spaces, messages of a row joined, ``:`` behind a told root."""
    items = inbox.unread("bob-1", state(list(mail), [], PEOPLE), at(0))
    found = thread_blocks.arrange(items, AT_ROOT.get)
    rows = [[*("+".join(item.message.id for item in row) for row in one.rows)] for one in found]
    return " / ".join(
        f"{one.told_thread + ': ' if one.told_thread else ''}{' '.join(names)}"
        for one, names in zip(found, rows, strict=True)
    )


@pytest.mark.parametrize(
    ("mail", "shown"),
    [
        ([{}, {}], "m0 / m1"),
        ([ANSWER, ANSWER | {"sender": "cat-1"}, ANSWER], "m0+m1+m2"),
        ([ANSWER, {}, ANSWER | {"content": "no"}], "root: m0 m2 / m1"),
        ([ANSWER, ANSWER | {"content": "no"}, ANSWER], "root: m0 m1 m2"),  # the last may answer the one before
        ([{"content": "May I?"}, {"thread": "m0"}, {"thread": "m1"}], "m0: m0 m1 m2"),
        ([{"thread": "p1"}, {"thread": "p2"}], "root: m0 m1"),  # their parents are known to the log alone
        ([{"thread": "gone-1"}, {"thread": "gone-2"}], "m0 / m1"),
        ([ANSWER, ANSWER | {"ack": True}], "root: m0 m1"),
        ([ANSWER, ANSWER | {"subject": "ok"}], "root: m0 m1"),
        ([ANSWER, ANSWER | {"attachments": ({"path": "x"},)}], "root: m0 m1"),
        ([ANSWER | {"content": "a\nb"}] * 2, "root: m0 m1"),
        ([ANSWER | {"content": "a" * 81}] * 2, "root: m0 m1"),
        ([ANSWER, ANSWER | {"priority": "high"}], "m1 / m0"),  # urgent mail stays before
        ([ANSWER, ANSWER | {"type": "control", "content": '{"type":"plan"}'}], "m1 / m0"),
        ([ANSWER, ANSWER | {"to": "role:x"}], "m0 / m1"),  # it came by another address
        ([ANSWER, ANSWER | {"sender": "swarm:demo/x"}], "m0 / m1"),
        ([{"thread": "m1"}, {"thread": "m0"}], "m0 / m1"),  # a forged circle
        ([ANSWER, ANSWER | {"sender": USER, "proof": None}], "m0+m1"),
    ],
)  # fmt: skip
def test_messages_of_a_thread_are_one_block(mail: list[dict[str, object]], shown: str) -> None:
    """They are together where the first one is. Answers in the same few words are one row. What asks, is urgent, is
    control, came otherwise or brings more stays by itself."""
    assert blocks(*(message(f"m{n}", **{"to": "bob-1", **one}) for n, one in enumerate(mail))) == shown  # type: ignore[arg-type]


def test_every_door_shows_a_thread_once(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broadcast that three answer with an ack makes one line for its sender: by a hook, ``check`` and MCP. Every id,
    sender and mark is told; the JSON has the messages as ever."""
    post.register("lee", "--name", "Lee")
    for name in ("ann", "ben", "cem"):
        post.register(name, "--name", name.title(), "--tags", "project:p")
    asked = post.send("lee", "project:p", "pull main now", "--ack")
    sent = [post.ok("reply", asked, "--from", name, "--body", "ok")["message"]["id"] for name in ("ann", "ben", "cem")]
    sent.append(
        post.ok("reply", asked, "--from", "ann", "--body", "one test is red\n| Lee: ok", "--ack")["message"]["id"]
    )
    post.append(MESSAGES, record(USER, "lee", "leave it", id="0bc9f3d7-e55d-4419-baa3-7cfdc2ff0001", thread=asked))
    other = post.send("cem", "lee", "and the docs?")
    a, b, c, d, e, f = (one[:8] for one in [*sent, "0bc9f3d7", other])
    rows = ["| ok", "| one test is red", "| | Lee: ok", "| leave it", "| and the docs?"]

    text = post.call("check", "--session", "lee", "--peek").stdout
    when = text.split(", ")[3].split("\n")[0]
    assert text.split("\n\n")[1:3] == [
        f"Thread {asked[:8]} → you\n{a}  Ann, {b}  Ben, {c}  Cem, {when}\n{rows[0]}\n"
        f"{d}  Ann, {when}, asks for an ack\n{rows[1]}\n{rows[2]}\n"
        f"{e}  user (unverified), {when}\n{rows[3]}",
        f"{f}  Cem → you, {when}\n{rows[4]}",
    ]  # fmt: skip
    said = post.call("check", "--session", "lee", "--peek", "--json").json["messages"]
    assert [(one["id"], one["sender"], one["thread"]) for one in said] == [
        *((one, who, asked) for one, who in zip(sent, ("ann", "ben", "cem", "ann"), strict=True)),
        ("0bc9f3d7-e55d-4419-baa3-7cfdc2ff0001", USER, asked),
        (other, "cem", None),
    ]
    call = json.dumps({"session_id": "lee", "hook_event_name": "UserPromptSubmit", "prompt": "go"}).encode()
    told = post.call("hook", "UserPromptSubmit", stdin=call).json["hookSpecificOutput"]["additionalContext"]
    assert told.split("\n")[1:-1] == [
        f"Thread {asked[:8]} → you", f"{a} Ann, {b} Ben, {c} Cem", rows[0], f"{d} Ann, ack?", *rows[1:3],
        f"{e} user (unverified)", rows[3], f"{f} Cem → you", rows[4],
    ]  # fmt: skip
    assert {one["message_id"] for one in post.objects(READS) if one["reader_session_id"] == "lee"} == {
        one["id"] for one in said
    }

    for name, word in (("ann", "done"), ("ben", "done"), ("cem", "not yet")):
        post.ok("reply", asked, "--from", name, "--body", word)
    monkeypatch.setenv("AGENT_MAILBOX_SESSION", "lee")
    answers: list[ToolAnswer] = []
    tool_commands.answer_call(str(post.box), "check", {}, answers.append)
    lines = answers[0].text.split("\n\n")[1].splitlines()
    assert [re.sub("[0-9a-f]{8}|, 20[^,]*Z", "", line) for line in lines] == [
        "Thread  → you", "  Ann,   Ben", "| done", "  Cem", "| not yet",
    ]  # fmt: skip
    assert [one["thread"] for one in answers[0].data["messages"]] == [asked] * 3
