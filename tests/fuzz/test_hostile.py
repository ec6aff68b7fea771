"""Where other people's bytes come in: lines of a log, before a process of little memory, a hook's call, a batch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.config import config
from tests.claude.test_hooks import SAMPLES
from tests.fuzz import strategies as some
from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Post, Result, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


MIB = 1 << 20
ROOM = 192 * MIB
"""Address space of a process: an interpreter with everything imported takes two thirds of it."""
DIGITS = b"9" * 100_000

HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "ten mebibytes": lambda line: line[:-1] + b',"metadata":"' + b"x" * (10 * MIB) + b'"}',
    "ten mebibytes of openings": lambda _: b"[" * (10 * MIB),
    "a hundred thousand levels": lambda line: line[:-1] + b',"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "a hundred thousand lists": lambda line: line[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "the same key again": lambda line: line[:-1] + b',"id":1,"recipient":{},"session_id":[],"message_id":null}',
    "a hundred thousand keys": lambda line: line[:-1] + b"".join(b',"%d":0' % n for n in range(100_000)) + b"}",
    "NaN": lambda line: line[:-1] + b',"metadata":NaN}',
    "Infinity": lambda line: line[:-1] + b',"ttl_hours":-Infinity}',
    "an integer of a hundred thousand digits": lambda line: line[:-1] + b',"ttl_hours":' + DIGITS + b"}",
    "an exponent of a hundred thousand digits": lambda line: line[:-1] + b',"ttl_hours":1e' + DIGITS + b"}",
    "a fraction of a hundred thousand digits": lambda line: line[:-1] + b',"ttl_hours":0.' + DIGITS + b"}",
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "carriage returns": lambda line: line.replace(b",", b",\r") + b"\r",
    "line separators": lambda line: line[:-1] + ',"x":"\u2028\u2029\x85"}'.encode(),
    "half a surrogate pair": lambda line: line[:-1] + b',"metadata":"\\ud800"}',
    "surrogates as bytes": lambda line: line[:-1] + b',"metadata":"\xed\xa0\x80"}',
    "no UTF-8": lambda line: line[:-1] + b',"metadata":"\xff\xfe"}',
    "zeros": lambda _: b"\0" * MIB,
    "control characters": lambda line: line[:-1] + b',"metadata":"\x01\x1b[2J"}',
}
LINES: dict[str, dict[str, Any]] = {
    MESSAGES: record("zed", "bob", "hostile"),
    READS: {"message_id": "m", "reader_session_id": "zed", "timestamp": "2026-03-16T14:30:00Z"},
    ROSTER: {"event": "register", "session_id": "zed", "timestamp": "2026-03-16T14:30:00Z"},
}
COMMANDS = (
    ("check", "--session", "bob", "--peek"),
    ("status", "--session", "bob"),
    ("history", "--session", "bob"),
    ("search", "good"),
    ("roster", "list"),
    ("send", "--from", "ann", "--to", "bob", "--body", "good too"),
    ("check", "--session", "bob"),
)


def cramped(post: Post, *words: str) -> Result:
    """A command in a process that may not have more than ``ROOM``."""
    limited = 'ulimit -v "$1"; shift; exec "$@"'
    program = [sys.executable, "-m", "agent_mailbox", *words, "--json"]
    done = subprocess.run(
        ["/bin/sh", "-c", limited, "sh", str(ROOM // 1024), *program],
        env=post.environ(),
        cwd=post.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def pair(post: Post) -> Post:
    """Ann and bob, who has checked."""
    for name in ("ann", "bob"):
        post.register(name)
    assert post.check("bob") == []
    return post


def fine(result: Result) -> Any:
    """The answer of a command that succeeded without complaint."""
    assert result.rc == 0, result
    assert result.stderr == "", result
    return result.json


limited = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits address space")


@limited
def test_hostile_lines_cost_little_and_hide_nothing(pair: Post) -> None:
    """All of them in each log, good lines between: every command answers, and each good line is delivered, once."""
    for name, spoilt in HOSTILE.items():
        for log, usual in LINES.items():
            pair.append(log, spoilt(json.dumps(usual).encode()) + b"\n")
        pair.append(MESSAGES, record("ann", "bob", f"good after {name}"))
    for command in COMMANDS[:-1]:
        fine(cramped(pair, *command))
    shown = [m["content"] for m in fine(cramped(pair, *COMMANDS[-1], "--limit", "0"))["messages"]]
    wanted = [*(f"good after {name}" for name in HOSTILE), "good too"]
    assert [content for content in shown if content != "hostile"] == wanted
    assert fine(cramped(pair, *COMMANDS[-1]))["messages"] == []
    assert len(pair.doctor()) >= len(HOSTILE)


@limited
def test_a_hole_larger_than_the_memory_hides_nothing(pair: Post) -> None:
    """Two hundred mebibytes of zeros without a newline, as a crash may leave behind: the next line is delivered."""
    pair.send("ann", "bob", "good")
    for log in LINES:
        with pair.file(log).open("ab") as file:
            file.truncate(file.tell() + 200 * MIB)
    for command in ("send --from ann --to bob --body too", "search good", "history --session ann"):
        fine(cramped(pair, *command.split()))
    assert [m["content"] for m in fine(cramped(pair, *COMMANDS[-1]))["messages"]] == ["good", "too"]
    assert fine(cramped(pair, *COMMANDS[-1]))["messages"] == []


EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
DEFECT = re.compile(r"unexpected [A-Z]|Traceback|\b[A-Z]\w+(Error|Exception|Exit|Interrupt)\b")
CONFIG = b"""[ttl]
direct = 24
role = "none"
[tags]
namespaces = ["team"]
[session]
role = "reviewer"
tags = ["domain:scripts"]
[limits]
content_bytes = 65536
[hook]
characters = 8000
[steward]
freeze_after_hours = 1.5
"""
BATCH = b"""{"sender":"ann","recipient":"bob","content":"one","ack":true,"ttl_hours":3}
{"from":"ann","to":["bob","role:x"],"body":"two","id":"00000000-1111-4111-8111-222222222222","metadata":{"a":[1]}}
"""
once = pytest.fixture(scope="module")


@once
def box(tmp_path_factory: pytest.TempPathFactory) -> Post:
    """One mailbox for all examples of a test, with bob in it."""
    post = Post(tmp_path_factory.mktemp("fuzz"))
    post.register("bob", "--role", "x")
    return post


def no_defect(result: Result) -> Result:
    """Whatever was refused was refused in our words."""
    assert DEFECT.search(result.stderr) is None, result
    return result


calls = (
    st.binary(max_size=60)
    | some.documents
    | some.damaged(json.dumps(SAMPLES[event]).encode() for event in EVENTS)
    | some.objects.map(lambda obj: json.dumps({"session_id": "bob", **obj}).encode())
)


@example(event="SessionStart", data=b'{"session_id": "bob", "cwd": "\\u0000"}')
@example(event="SessionStart", data=b'{"session_id": "bob", "cwd": "\\ud800"}')
@given(event=st.sampled_from(EVENTS), data=calls)
def test_a_hook_never_fails_whatever_the_client_says(box: Post, event: str, data: bytes) -> None:
    """Exit code 0, nothing or one JSON document on standard output, our own words on standard error."""
    result = no_defect(box.call("hook", event, stdin=data))
    assert result.rc == 0
    if result.stdout:
        assert isinstance(result.json, dict)
        assert DEFECT.search(str(result.json.get("systemMessage", ""))) is None, result


def toml(value: Any) -> str:
    """A value as TOML spells it, or nearly."""
    return json.dumps(value) if not isinstance(value, float) else repr(value)


tables = st.lists(
    st.tuples(
        st.sampled_from(["ttl", "tags", "session", "limits", "hook", "steward", "x"]),
        st.sampled_from(["direct", "role", "namespaces", "tags", "content_bytes", "characters", "max_live", "x"]),
        st.none() | st.booleans() | st.integers() | st.floats() | some.words | st.lists(some.words, max_size=2),
    ),
    max_size=4,
).map(lambda rows: "\n".join(f"[{section}]\n{key} = {toml(value)}" for section, key, value in rows))


@some.budget(1)
@given(
    data=st.binary(max_size=60)
    | some.damaged([CONFIG])
    | tables.map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_a_configuration_is_taken_or_passed_by(tmp_path: Path, data: bytes) -> None:
    """No bytes stop a command, and what is taken has every setting of its kind."""
    path = tmp_path / "config.toml"
    path.write_bytes(data)
    found = config.load_config(str(tmp_path))
    assert all(hours is None or hours > 0 for hours in found.ttls.values())
    assert all(isinstance(word, str) for word in (*found.namespaces, *found.session_tags))
    for number in (found.max_live, found.max_content, found.long_words, found.hook_tokens):
        assert type(number) is int
        assert number > 0


@some.budget(4)
@given(data=some.damaged([BATCH]) | st.lists(some.documents | st.binary(max_size=20), max_size=3).map(b"\n".join))
def test_a_batch_is_sent_whole_or_refused_whole(box: Post, data: bytes) -> None:
    """The log grows by as many lines as the answer says, none of which the doctor minds."""
    before = len(box.lines(MESSAGES))
    result = no_defect(box.call("send", "--jsonl", "-", "--from", "ann", "--json", stdin=data))
    assert result.rc in (0, 1, 2, 3), result
    sent = result.json["sent"] if result.rc == 0 else 0
    assert len(box.lines(MESSAGES)) == before + sent
    if sent:
        assert not [problem for problem in box.doctor() if problem["file"].endswith(MESSAGES)]
        box.file(MESSAGES).write_bytes(b"")
