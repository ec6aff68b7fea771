"""Lines no writer of ours would write, as real log content before a real process of little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Post, Result, record

if TYPE_CHECKING:
    from collections.abc import Callable

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
