"""What an editor writes at a file's beginning, and numbers and keys that a program could change in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.space.nats.connection import NatsConnection
from agent_mailbox.swarm.local import secret_in
from tests.helpers import FRAME, MESSAGES, READS, ROSTER, Post, begin_again, record, refused

if TYPE_CHECKING:
    from collections.abc import Callable

BOM = b"\xef\xbb\xbf"
DIGITS = (
    "12345678901234567890123",
    "-9223372036854775809",
    "3.14159265358979323846264338",
    "1e-400",
    "18446744073709551616",
)
"""Numbers that neither a float nor 64 bits hold."""


def test_a_byte_order_mark_is_no_part_of_a_text_that_is_sent(post: Post) -> None:
    """Commands drop a byte order mark before a body, a batch and a tool's input."""
    post.register("bob")
    post.register("ann", "--lead", "user")
    file = post.cwd / "text"
    for data, words in ((b"hi", ("--body", f"@{file}")), (b'{"recipient":"bob","content":"hi"}', ("--jsonl", file))):
        file.write_bytes(BOM + data)
        to = () if "--jsonl" in words else ("--to", "bob")
        assert post.call("send", "--from", "ann", *to, *words).rc == 0
        assert post.objects(MESSAGES)[-1]["content"] == "hi"
    assert post.call("send", "--from", "ann", "--to", "bob", "--body", "-", stdin=BOM + b"in").rc == 0
    assert post.objects(MESSAGES)[-1]["content"] == "in"
    asked = ("control", "request", "permission", "--session", "ann", "--tool", "Bash", "--input", "-")
    assert post.call(*asked, stdin=BOM + b'{"command":"ls"}').rc == 0


@pytest.mark.parametrize("log", [MESSAGES, READS, ROSTER])
def test_a_byte_order_mark_hides_no_line(post: Post, log: str) -> None:
    """Commands read the first line of a log after a byte order mark like any other line."""
    post.register("bob")
    shown = post.send("ann", "bob", "first")
    post.check("bob")
    if log == MESSAGES:
        post.file(log).write_bytes(b"")
        mail = record(recipient="bob", content="marked")
        shown = mail["id"]
        post.append(log, BOM + json.dumps(mail).encode() + b"\n", record(recipient="bob", content="plain"))
    else:
        post.file(log).write_bytes(BOM + post.file(log).read_bytes())
    begin_again(post.box, post.environ())
    if log == MESSAGES:
        assert len(post.check("bob")) == 2
        assert [m["id"] for m in post.ok("search", "marked")["messages"]] == [shown]
    assert post.unread("bob") == []
    assert post.ok("show", shown)["message"]["read_by"] == ["bob"]
    assert [p for p in post.doctor() if "not a record" in p["what"] or "torn" in p["what"]] == []
    assert post.call("export").stdout.count(shown) == 1


@pytest.mark.parametrize("own", [False, True], ids=["mailbox", "person"])
def test_a_byte_order_mark_ends_no_configuration(post: Post, own: bool) -> None:
    """A setting in a file with a byte order mark counts, and nobody is warned."""
    file = post.user_state / "config.toml" if own else post.file("config.toml")
    post.register("bob")
    file.write_bytes(BOM + (b"[notify]\ncontent = true\n" if own else b"[limits]\ncontent_bytes = 5\n"))
    file.chmod(0o600)
    assert [p for p in post.doctor() if "TOML" in p["what"]] == []
    if not own:
        refused(post.call("send", "--from", "ann", "--to", "bob", "--body", "longer"), 3, "5 bytes")


def test_a_byte_order_mark_before_a_hook_s_json_is_passed(post: Post) -> None:
    """The mail is shown."""
    post.register("bob")
    post.send("ann", "bob")
    assert FRAME in post.call("hook", "UserPromptSubmit", stdin=BOM + b'{"session_id":"bob"}').stdout


def by_batch(post: Post, line: str) -> None:
    """Have a batch send it."""
    assert post.call("send", "--from", "ann", "--jsonl", "-", stdin=line).rc == 0


def by_another(post: Post, line: str) -> None:
    """Have a foreign program write it."""
    text = json.dumps(record(recipient="bob"), separators=(",", ":"))
    more = line[line.index('"n"') :]
    post.append(MESSAGES, f"{text[:-1]},{more}\n".encode())


@pytest.mark.parametrize("write", [by_batch, by_another])
@pytest.mark.parametrize("number", DIGITS)
def test_a_number_keeps_its_digits(post: Post, number: str, write: Callable[[Post, str], Any]) -> None:
    """The log, the JSON output and the export keep all digits of a number in an unknown key."""
    post.register("bob")
    write(post, f'{{"recipient":"bob","content":"x","n":{number},"metadata":{{"m":[{number}]}}}}')
    assert f'"n":{number}' in post.file(MESSAGES).read_text()
    for words in (("check", "--session", "bob", "--json"), ("history", "--all", "--json"), ("export",)):
        said = post.call(*words)
        assert (said.rc, said.stdout.count(number)) == (0, 2), said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"recipient":"bob","content":"a","content":"b"}', "'content' occurs twice"),
        ('{"recipient":"bob","content":"a","metadata":{"k":1,"k":2}}', "'k' occurs twice"),
        ('{"recipient":"bob","content":"a","n":1e400}', "out of range"),
        ('{"recipient":"bob","content":"a","n":NaN}', "NaN is not JSON"),
        ('{"recipient":"bob","content":"a","n":-Infinity}', "not JSON"),
        ('{"recipient":"bob","content":"a\\ud800"}', "half of a surrogate pair"),
        ('{"recipient":"bob","content":"a","n":' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_line(post: Post, line: str, said: str) -> None:
    """Nothing of the batch is sent, and nothing is changed in silence."""
    post.register("bob")
    given = '{"recipient":"bob","content":"fine"}\n' + line
    refused(post.call("send", "--from", "ann", "--jsonl", "-", stdin=given), 3, "line 2", said, "nothing was sent")
    assert post.objects(MESSAGES) == []
    tool = line.replace('"recipient":"bob",', "")
    asked = ("control", "request", "permission", "--session", "ann", "--tool", "Bash", "--input", "-")
    refused(post.call(*asked, stdin=tool), 3 if "surrogate" in said else 2)
    assert post.objects(MESSAGES) == []


def test_a_tool_s_input_keeps_its_digits(post: Post) -> None:
    """A permission request shows the lead all digits of a number in the tool's input."""
    post.register("ann", "--lead", "user")
    asked = (
        "control",
        "request",
        "permission",
        "--session",
        "ann",
        "--tool",
        "mcp__x",
        "--input",
        '{"id":' + DIGITS[0] + "}",
    )
    assert post.call(*asked).rc == 0
    assert f'"id":{DIGITS[0]}' in post.call("control", "pending", "--session", "user", "--json").stdout.replace(" ", "")


def test_a_byte_order_mark_is_no_part_of_a_secret(post: Post) -> None:
    """The program drops a byte order mark before an engine's credential and before a wake token."""
    file = post.cwd / "secret"
    file.write_bytes(BOM + b"token\n")
    file.chmod(0o600)
    assert NatsConnection("nats://127.0.0.1:1", str(file), None)._login_fields() == {"auth_token": "token"}
    assert secret_in(str(file), "wake_secret_file") == "token"
