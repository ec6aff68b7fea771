"""What cannot be written: derived files stop no mail, every command says what it could not do, and the doctor tells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from tests.helpers import ROOT, Post

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SHIM = ROOT / "hooks/agent-mailbox-hook"
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
NAMESPACE = ("unshare", "-rm", "sh", "-c", READ_ONLY, "sh")


@pytest.fixture
def marked() -> Iterator[Callable[[str, Path], None]]:
    """Mark a file immutable (``i``) or append-only (``a``), as chattr(1) does; not after the test."""
    marks: list[tuple[str, Path]] = []

    def mark(flag: str, path: Path) -> None:
        done = shutil.which("chattr") and subprocess.run(["chattr", f"+{flag}", path], capture_output=True, check=False)
        if not done or done.returncode:
            pytest.skip("this user or file system marks no file immutable")
        marks.append((flag, path))

    yield mark
    for flag, path in marks:
        subprocess.run(["chattr", f"-{flag}", path], check=True)


def read_only(path: Path) -> Sequence[str]:
    """The words under which a process has that path mounted read-only; skip where there is no such thing."""
    under = (*NAMESPACE, str(path))
    if shutil.which("unshare") is None or subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    return under


@pytest.fixture
def quiet(post: Post) -> Post:
    """Two agents; one has read its mail, and has a quiet stamp."""
    post.register("a")
    post.register("b")
    post.send("b", "a", "before")
    post.check("a")
    assert Mailbox(str(post.box)).logs.trail.counting("a", Mailbox(str(post.box)).now())
    return post


def hooked(post: Post, event: str = "UserPromptSubmit", **how: Any) -> str:
    """What the installed guard answers to a hook of session ``a``."""
    call = json.dumps({"session_id": "a", "cwd": "/", "hook_event_name": event, "prompt": "go"})
    how.setdefault("env", {**post.environ(), "CLAUDE_CODE_SESSION_ID": "a"})
    under = how.pop("under", ())
    done = subprocess.run([*under, "sh", SHIM, event], input=call.encode(), capture_output=True, check=True, **how)
    return done.stdout.decode()


def ruin(post: Post, what: str, mark: Callable[[str, Path], None]) -> Sequence[str]:
    """Make what is derived unwritable; return the words under which that holds."""
    cache = post.file(".cache")
    if what == "a directory is in the place of the stamp":
        (cache / "quiet/a").unlink()
        (cache / "quiet/a/full").mkdir(parents=True)
    elif what == "the stamp is immutable":
        mark("i", cache / "quiet/a")
    elif what == "its directory is immutable":
        mark("i", cache / "quiet")
    elif what == "all is a file":
        shutil.rmtree(cache)
        cache.touch(0o600)
    elif what == "all is read-only":
        return read_only(cache)
    return ()


DERIVED = (
    *("a directory is in the place of the stamp", "the stamp is immutable", "its directory is immutable"),
    *("all is a file", "all is read-only"),
)


@pytest.mark.parametrize("what", DERIVED)
def test_what_is_derived_and_cannot_be_written_stops_no_mail(
    quiet: Post, what: str, marked: Callable[[str, Path], None]
) -> None:
    """Mail is sent, shown and acknowledged; a stamp that cannot be removed hides none from the guard of the hooks."""
    under = ruin(quiet, what, marked)

    def ok(*words: str) -> Any:
        done = quiet.run(*words, "--json", under=under)
        assert (done.rc, done.stderr) == (0, ""), (what, words, done)
        return done.json

    first = ok("send", "--from", "b", "--to", "a", "--ack", "--body", "first")["message"]["id"]
    assert "first" in hooked(quiet, under=under)
    ok("reply", first, "--from", "a", "--body", "done")
    assert ok("wait", "--session", "b", "--timeout", "30")["unread"] == 1
    second = ok("send", "--from", "b", "--to", "a", "--body", "second")["message"]["id"]
    assert [m["id"] for m in ok("check", "--session", "a")["messages"]] == [second]
    assert ok("check", "--session", "a")["messages"] == []
    assert hooked(quiet, under=under) == ""
    ok("ack", first, "--session", "a")
    ok("status", "--session", "a")
    assert len(ok("history", "--all", "--limit", "0")["messages"]) == 4
    assert len(ok("search", "second")["messages"]) == 1
    ok("steward", "run", "--max-live", "0")
    third = ok("send", "--from", "b", "--to", "a", "--body", "third")["message"]["id"]
    assert "third" in hooked(quiet, "PostToolUse", under=under)
    ok("release", third, "--session", "a")
    assert "third" in hooked(quiet, "Stop", under=under)


def test_a_stamp_that_stayed_counts_for_nothing_until_it_can_go(
    quiet: Post, marked: Callable[[str, Path], None]
) -> None:
    """Also after mail to others, whose stamps could go, and after a look of another session."""
    ruin(quiet, DERIVED[0], marked)
    quiet.send("b", "a", "hidden?")
    quiet.send("a", "b", "another")
    quiet.check("b")
    desk = Mailbox(str(quiet.box))
    assert not desk.logs.trail.counting("a", desk.now())
    assert "hidden?" in hooked(quiet)
    shutil.rmtree(quiet.file(".cache/quiet/a"))
    quiet.check("a")
    assert desk.logs.trail.counting("a", desk.now())
    quiet.send("b", "a", "seen")
    assert not os.path.exists(quiet.file(".cache/quiet/a"))
