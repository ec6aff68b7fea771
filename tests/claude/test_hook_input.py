"""What a client writes to a hook: late, in pieces, with a byte order mark, by a pipe that it never closes."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.claude.shim import FILE, ME, SHELLS, Shim, why
from tests.helpers import FRAME, Post, Result
from tests.pieces import run_in_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

WAYS = ("in pieces", "never ended", "never ended, a line", "never ended, non-blocking")


def call_of(event: str, **more: object) -> bytes:
    """A client's JSON, compact."""
    return json.dumps({"session_id": ME, "hook_event_name": event, **more}, separators=(",", ":")).encode()


def by_way(way: str, words: Sequence[str], data: bytes, post: Post, env: dict[str, str | None]) -> Result:
    """What a command answers to the JSON that comes so."""
    how = {"env": post.environ(env), "cwd": post.cwd}
    if way == "in pieces":
        return run_in_pieces(words, data[:20], data[20:], **how)
    line = data + b"\n" * ("line" in way)
    return run_in_pieces(words, line, ends=False, blocks="non-blocking" not in way, **how)


@pytest.mark.parametrize("way", WAYS)
def test_mail_is_shown_as_soon_as_the_json_is_whole(post: Post, way: str) -> None:
    """Whether or not the client ever ends it."""
    post.register(ME)
    post.send("x", ME)
    words = [sys.executable, "-m", "agent_mailbox", "hook", "UserPromptSubmit"]
    found = by_way(way, words, call_of("UserPromptSubmit", prompt="}"), post, {})
    assert (found.rc, found.stderr) == (0, ""), found
    assert FRAME in found.stdout


def test_what_never_becomes_whole_is_given_up(post: Post) -> None:
    """Half a JSON, then silence: an answer that says so."""
    words = [sys.executable, "-m", "agent_mailbox", "hook", "UserPromptSubmit"]
    half = call_of("UserPromptSubmit", a={})[:-1]
    found = run_in_pieces(words, half, env=post.environ(), cwd=post.cwd, ends=False)
    assert (found.rc, "hook input: not JSON" in found.stdout) == (0, True), found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "sh"])
def test_the_guard_takes_no_piece_for_the_whole(shim: Shim, shell: str, way: str) -> None:
    """The shim reads input that comes in pieces to its end, in any shell, before it decides or shows mail."""
    words = [shutil.which(shell) or shell, *(["sh"] if shell == "busybox" else [])]
    file = str(shim.checkout / "hooks/agent-mailbox-hook")
    write = call_of("PreToolUse", tool_name="Write", tool_input={"file_path": "/tmp/new.txt", "content": "}"})
    assert by_way(way, [*words, file, "Files"], write, shim.post, shim.env).raw == b""
    bash = call_of("PreToolUse", tool_name="Bash", tool_input={"command": "echo }; " + FILE})
    assert why(by_way(way, [*words, file, "PreToolUse"], bash, shim.post, shim.env))
    shim.post.send("x", ME)
    env = {**shim.env, "CLAUDE_CODE_SESSION_ID": None}
    found = by_way(way, [*words, file, "UserPromptSubmit", "codex"], call_of("UserPromptSubmit"), shim.post, env)
    assert (found.stderr, FRAME in found.stdout) == ("", True), found


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "sh"])
def test_a_piece_of_an_id_is_no_other_session(shim: Shim, shell: str) -> None:
    """Though that one has nothing new: the mail of the session that calls is shown."""
    words = [shutil.which(shell) or shell, *(["sh"] if shell == "busybox" else [])]
    other = ME[:20]
    env = {**shim.env, "CLAUDE_CODE_SESSION_ID": None}
    start = [*words, str(shim.checkout / "hooks/agent-mailbox-hook")]
    told = json.dumps({"session_id": other, "turn_id": "t"}, separators=(",", ":")).encode()
    where = {"env": shim.post.environ(env), "cwd": shim.post.cwd}
    for event in ("SessionStart", "UserPromptSubmit", "UserPromptSubmit"):
        run_in_pieces([*start, event, "codex"], told, **where)
    shim.post.send("x", ME)
    call = call_of("UserPromptSubmit")
    cut = call.index(other.encode()) + len(other)
    found = run_in_pieces([*start, "UserPromptSubmit", "codex"], call[:cut], call[cut:], **where)
    assert FRAME in found.stdout, found
