"""What hostile input is made of: bytes, JSON that is nearly ours, and damage to what was whole.

``tests/fuzz`` takes ``pytest tests/fuzz --hypothesis-profile=long`` for a longer look.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from agent_mailbox.core import codec
from tests.core.build import message, read, register

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = [
    *("id", "sender", "recipient", "timestamp", "subject", "content", "thread", "ttl_hours", "read_by", "from", "to"),
    *("body", "type", "ack", "priority", "references", "attachments", "metadata", "message_id", "reader_session_id"),
    *("event", "as", "session_id", "name", "tags", "role", "lead", "continues", "by", "reason", "client", "cwd"),
    *("source", "hook_event_name", "agent_id", "stop_hook_active", "prompt", "transcript_path"),
]
ODD = [
    *(
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-0",
        b"9" * 5000,
        b"0." + b"3" * 5000,
        b"1E+",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xed\xa0\x80",
        b"\0",
        b"\r",
        b"\n",
        b"\xe2\x80\xa8",
        b"\x85",
        b"\x1b[2J",
        b'"\\u0000"',
    ),
    *(
        b"[" * 40,
        b'{"a":' * 40,
        b"]",
        b"}",
        b'"',
        b"\\",
        b",",
        b":",
        b'"id":',
        b"[]",
        b"{}",
        b"null",
        b"true",
        b'"all"',
    ),
    *(b'"role:x"', b'"user"', b'"2026-03-16T12:00:00Z"', b'"9999-12-31T23:59:59-23:59"', b'"../../x"', b'"bob"'),
]
WORDS = [
    "all",
    "user",
    "role:",
    "role:x",
    ":",
    "project:x",
    "bob",
    "ann",
    "x",
    "\u2028",
    "é",
    "𝔞",
    "\ud800",
    " ",
    "/",
    "#",
    "\0",
]
INSTANTS = [
    "2026-03-16T14:30:00.000Z",
    "0001-01-01",
    "9999-12-31T23:59:60+23:59",
    "2024-02-29 00:00",
    "٢٠٢٦-03-16T14:30",
]
LINES = [
    codec.spell_message(message(to=("all", "role:x"), metadata={"a": [1.5, None]}, extra={"k": "\u2028"})),
    codec.spell_message(message("m2", "bob", ack=True, thread="m1", ttl_hours=3, priority="high", subject="é")),
    b'{"from":"zed","to":"bob","body":"older","id":"m3","timestamp":"2026-03-16T14:30:00Z"}\n',
    codec.spell_read(read("m1", "bob", via="role:x")),
    codec.spell_read(read("m1", "bob", event="release")),
    codec.spell_event(register("bob", "role:x", name="rob", lead="ann", continues="ann")),
]

words = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=5).map("".join)
instants = st.builds(
    lambda text, place, lost, put: text[:place] + put + text[place + lost :],
    st.sampled_from(INSTANTS),
    st.integers(0, 30),
    st.integers(0, 3),
    st.sampled_from([*"0123456789-:.,TtZz+ ٣²", ""]) | st.text(max_size=2),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | words
    | instants
    | st.sampled_from(["read", "register", 1 << 70]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=10)
documents = objects.map(lambda obj: json.dumps(obj).encode())
"""JSON objects in our keys (and Python's NaN), lone surrogates escaped."""


def damaged(wholes: Iterable[bytes]) -> st.SearchStrategy[bytes]:
    """One of the wholes with pieces lost, put in, doubled or taken from another."""
    wholes = list(wholes)
    edit = st.tuples(st.integers(0, 400), st.integers(0, 20), st.sampled_from(ODD) | st.binary(max_size=4))
    splice = st.tuples(st.sampled_from(wholes), st.integers(0, 400))

    def spoil(whole: bytes, edits: list[tuple[int, int, bytes]], other: tuple[bytes, int] | None) -> bytes:
        for place, lost, put in edits:
            whole = whole[:place] + put + whole[place + lost :]
        return whole if other is None else whole[: other[1]] + other[0][other[1] // 2 :]

    return st.builds(spoil, st.sampled_from(wholes), st.lists(edit, max_size=4), st.none() | splice)


lines = st.binary(max_size=80) | documents | damaged(LINES)
"""Anything that may stand on a line of a log."""


def budget(cost: int) -> settings:
    """The profile's examples, fewer by how much more than a parsing each of them costs; fixtures may be shared."""
    examples = max(1, settings.default.max_examples // cost)  # type: ignore[union-attr]
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))
