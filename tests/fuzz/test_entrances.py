"""Where other people's bytes come in: a client's hook call, the configuration, a batch."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.config import config
from tests.claude.test_hooks import SAMPLES
from tests.fuzz import strategies as some
from tests.helpers import MESSAGES, Post, Result

if TYPE_CHECKING:
    from pathlib import Path

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
