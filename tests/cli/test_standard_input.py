"""Standard input that comes in pieces and late: a command waits for its end, whoever made the pipe non-blocking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.files import standard_input
from tests.helpers import MESSAGES, PATIENCE, Child, Post, Result, until
from tests.mcp import asking
from tests.pieces import run_in_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

BOM = b"\xef\xbb\xbf"


def in_pieces(post: Post, words: Sequence[object], *pieces: bytes) -> Result:
    """One command whose input comes so."""
    command = [sys.executable, "-m", "agent_mailbox", *map(str, words)]
    return run_in_pieces(command, *pieces, env=post.environ(), cwd=post.cwd)


def test_a_text_that_comes_in_pieces_is_sent_whole(post: Post) -> None:
    """``send``, ``reply`` and a batch read standard input that comes in pieces to its end."""
    post.register("bob")
    first, second = b"a" * 30_000, b"b" * 35_000
    assert in_pieces(post, ("send", "--from", "ann", "--to", "bob", "--body", "-"), first, second).rc == 0
    sent = post.objects(MESSAGES)[-1]
    assert sent["content"].encode() == first + second
    assert in_pieces(post, ("reply", sent["id"], "--from", "bob", "--body", "-"), b"", b"yes, ", b"do").rc == 0
    assert post.objects(MESSAGES)[-1]["content"] == "yes, do"
    lines = [json.dumps({"recipient": "bob", "content": text}).encode() + b"\n" for text in ("one", "two")]
    assert in_pieces(post, ("send", "--from", "ann", "--jsonl", "-", "--json"), *lines).json["sent"] == 2
    by_name = ("send", "--from", "ann", "--to", "bob", "--body", "@/dev/stdin")
    assert in_pieces(post, by_name, b"by ", b"name").rc == 0
    assert post.objects(MESSAGES)[-1]["content"] == "by name"


def test_a_request_that_comes_in_pieces_is_asked_whole(post: Post) -> None:
    """A plan's text, and a tool's input: a lead decides on all of it."""
    post.register("ann", "--lead", "user")
    asked = ("control", "request")
    assert in_pieces(post, (*asked, "plan", "--session", "ann", "--body", "-"), b"first, ", b"then").rc == 0
    tool = (*asked, "permission", "--session", "ann", "--tool", "Bash", "--input", "-")
    assert in_pieces(post, tool, b'{"command":', b'"ls"}').rc == 0
    plan, permission = (json.loads(obj["content"]) for obj in post.objects(MESSAGES)[-2:])
    assert (plan["plan"]["content"], permission["tool"]["input"]) == ("first, then", {"command": "ls"})


def test_a_gateway_s_backup_that_comes_in_pieces_is_taken_whole(post: Post) -> None:
    """It is refused as what it is, not as empty."""
    pytest.importorskip("cryptography", reason="needs the extra swarm")
    found = in_pieces(post, ("swarm", "restore", "-", "--home", post.scratch / "gateway"), b"no ", b"backup")
    assert (found.rc, "Traceback" in found.stderr) == (3, False), found


def test_a_server_of_tools_reads_requests_that_come_in_pieces(post: Post) -> None:
    """The MCP server reads each request that comes in two pieces through a non-blocking pipe."""
    pytest.importorskip("mcp", reason="needs the extra mcp")
    post.env |= {"AGENT_MAILBOX_SESSION": "bob"}
    post.register("bob")
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    with Child(asking.SERVER, stdin=ours, stdout=subprocess.PIPE, env=post.environ(), cwd=post.cwd) as server:
        os.close(ours)
        with open(theirs, "wb", buffering=0) as server.stdin:
            asking.begin(server)
            asking.ask(server, 1, "who")
            assert "bob" in json.dumps(asking.answer(server))
        server.wait(PATIENCE)


def test_an_output_that_is_non_blocking_gets_everything(post: Post) -> None:
    """A history longer than its pipe takes at once, to a reader that takes it by and by."""
    for number in range(30):
        post.send("ann", "all", f"{number} " + "x" * 9_000)
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    found = b""
    with post.start("export", stdin=subprocess.DEVNULL, stdout=theirs) as child:
        os.close(theirs)
        with open(ours, "rb", buffering=0) as reader:
            while part := reader.read(5_000):
                found += part
        assert (child.wait(PATIENCE), len(found.splitlines())) == (0, 30)


def test_an_input_that_is_closed_or_tells_nothing_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system does not tell of each device what waits there."""
    with open(os.devnull, "rb") as nothing:
        assert not standard_input.holds_bytes(nothing.fileno())
    reading, writing = os.pipe()
    os.write(writing, b"x")
    assert standard_input.holds_bytes(reading)
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        standard_input.input_descriptor()


def test_where_nothing_comes_a_command_waits_and_takes_no_time(post: Post) -> None:
    """It sleeps until the first byte: no look follows the other."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    with post.start("send", "--from", "ann", "--to", "all", "--body", "-", stdin=ours) as child:
        until(lambda: "poll" in (open(f"/proc/{child.pid}/wchan").read()) or child.poll() is not None)
        os.write(theirs, b"late")
        os.close(theirs)
        assert child.wait(PATIENCE) == 0
    os.close(ours)
    assert post.objects(MESSAGES)[-1]["content"] == "late"
