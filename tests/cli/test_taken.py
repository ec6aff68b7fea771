"""Mail is read once its reader took it: pipes into programs that take a part, sockets, files, readers that leave.

The readers are real: ``head``, a shell, a process that closes its end.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE, READS, Post, Result, refused, until
from tests.mcp import asking

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECK = ("check", "--session", "bob")
LONG = "line of text that fills a pipe\n" * 2000


BY_TITLE = {"event": "read", "title": True}


@pytest.fixture
def six(post: Post) -> list[str]:
    """The ids of six messages to bob, each of four lines as ``check`` prints them."""
    post.register("ann")
    post.register("bob")
    return [post.send("ann", "bob", f"body {n}", "--subject", f"s{n}") for n in range(6)]


def into(post: Post, reader: str, *words: str) -> tuple[Result, str]:
    """A check whose output goes through a pipe into the shell's command; how it ended, and what that printed."""
    with post.start(*(words or CHECK), stdin=subprocess.DEVNULL) as child:
        got = subprocess.run(
            ["sh", "-c", reader], stdin=child.stdout, capture_output=True, timeout=PATIENCE, cwd=post.scratch
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        said = child.stderr.read()
        return Result(child.wait(PATIENCE), b"", said), got.stdout.decode()


def waiting(fd: int) -> int:
    """The bytes that wait in a pipe for its reader."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def left_unread(post: Post, *words: str) -> Result:
    """A command whose reader takes no byte and leaves once there are some."""
    read, write = os.pipe()
    with post.start(*words, stdout=write) as child:
        os.close(write)
        assert child.stdin is not None
        child.stdin.close()
        until(lambda: waiting(read) or child.poll() is not None)
        os.close(read)
        assert child.stderr is not None
        said = child.stderr.read()
        return Result(child.wait(PATIENCE), b"", said)


@pytest.mark.parametrize(
    ("reader", "taken"),
    [
        ("head -4", 0),  # within the first message
        ("head -6", 0),  # all of it, but nothing shows that its end was there
        ("head -7", 1),
        ("head -13", 2),
        ("head -c 1", 0),
        ("head -1", 0),
        ("sed 15q", 3),
        ("{ read a; read b; }", 0),
        (":", 0),
    ],
)
def test_a_reader_that_stops_within_mail_leaves_the_rest_unread(
    post: Post, six: list[str], reader: str, taken: int
) -> None:
    """``check`` marks only the messages as read that the program behind its pipe took to the end."""
    done, _ = into(post, reader)
    refused(done, 5, f"{taken} of 6 messages were marked as read" if taken else "nothing was marked as read")
    assert [r["message_id"] for r in post.objects(READS)] == six[:taken]
    assert post.unread("bob") == six[taken:]


def test_a_reader_that_stops_within_a_thread_leaves_the_rest_unread(post: Post) -> None:
    """Messages that share a line are read together, and the others by themselves, though one frame is around them."""
    for name in ("ann", "bob", "cat"):
        post.register(name)
    asked = post.send("bob", "ann, cat", "ready?")
    sent = [
        post.ok("reply", asked, "--from", who, "--body", body)["message"]["id"]
        for who, body in (("ann", "ok"), ("cat", "ok"), ("ann", "but one test is red"), ("cat", "mine is green"))
    ]
    # two lines above, the thread's line, the row of two; what follows that row shows that all of it was taken
    for lines, taken in ((5, 0), (6, 2)):
        done, _ = into(post, f"head -{lines}")
        refused(done, 5, f"{taken} of 4 messages were marked as read" if taken else "nothing was marked as read")
        assert post.unread("bob") == sent[taken:]


@pytest.mark.parametrize("reader", ["cat", "head -99", "tee copy", 'x=$(cat); echo "$x"', "cat | cat", "dd bs=3"])
def test_a_reader_that_takes_everything_has_read_it(post: Post, six: list[str], reader: str) -> None:
    """Whatever it does in pieces; nothing is said on standard error."""
    done, got = into(post, reader)
    assert (done.rc, done.stderr) == (0, "")
    assert all(f"| body {n}" in got for n in range(6))
    assert post.unread("bob") == []
    assert [r["message_id"] for r in post.objects(READS)] == six


def test_half_a_json_document_shows_no_message(post: Post, six: list[str]) -> None:
    """Half of the JSON shows no message; its one line shows all."""
    refused(into(post, "head -c 900", *CHECK, "--json")[0], 5, "nothing was marked as read")
    assert post.unread("bob") == six
    done, got = into(post, "head -1", *CHECK, "--json")
    assert (done.rc, json.loads(got)["count"]) == (0, 6)
    assert post.unread("bob") == []


def test_a_reader_that_takes_no_byte_has_read_nothing(post: Post, six: list[str]) -> None:
    """It leaves, as ``sleep 1`` does: a short mail fits into the pipe, and is there still."""
    for words in (CHECK, ("read", "--session", "bob", "--json"), ("check", "--session", "bob", "--limit", "0")):
        refused(left_unread(post, *words), 5, "nothing was marked as read")
        assert post.objects(READS) == []
        assert post.unread("bob") == six


@pytest.mark.usefixtures("six")
@pytest.mark.parametrize(
    "words",
    [
        ("history", "--all"),
        ("roster", "list", "--json"),
        ("check", "--session", "bob", "--peek"),
        ("search", "body"),
        ("export",),
        ("help", "--all"),
        ("send", "--help"),
    ],
    ids=" ".join,
)
def test_a_reader_may_leave_what_is_only_shown(post: Post, words: tuple[str, ...]) -> None:
    """``head`` has what it wants. The exit code alone tells, as with other programs; nothing was to be marked."""
    read, write = os.pipe()
    os.close(read)
    with post.start(*words, stdin=subprocess.DEVNULL, stdout=write) as child:
        os.close(write)
        assert child.stderr is not None
        assert (child.stderr.read(), child.wait(PATIENCE)) == (b"", 5)


def test_a_reader_that_waits_for_the_end_of_the_command_has_read_nothing_by_then(post: Post, six: list[str]) -> None:
    """The check waits for it, and not for ever; what it reads afterwards is shown again."""
    read, write = os.pipe()
    with post.start(*CHECK, stdout=write) as child:
        os.close(write)
        assert child.wait(PATIENCE) == 4
        assert child.stderr is not None
        assert "nothing was marked as read" in child.stderr.read().decode()
    with open(read, "rb") as file:
        assert b"| body 0" in file.read()
    assert post.unread("bob") == six


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_closed_socket_counts_as_a_closed_pipe(post: Post, six: list[str], takes: bool, blocking: bool) -> None:
    """Node gives its children socket pairs. One end closed with bytes in it: nothing was read."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(blocking)
    with ours, post.start(*CHECK, stdout=theirs.fileno()) as child:
        theirs.close()
        got = b""
        if takes:
            while part := ours.recv(1 << 16):
                got += part
        else:
            ours.recv(1, socket.MSG_PEEK)
            ours.close()
        code = child.wait(PATIENCE)
    assert (code, b"| body 5" in got) == ((0, True) if takes else (5, False))
    assert post.unread("bob") == ([] if takes else six)


def test_mail_that_fills_a_pipe_is_read_in_full_through_one_that_does_not_block(post: Post) -> None:
    """Node, Bun and ssh make standard output non-blocking."""
    post.register("bob")
    post.send("ann", "bob", LONG)
    post.send("ann", "bob", "short")
    read, write = os.pipe()
    os.set_blocking(write, False)
    with post.start(*CHECK, stdout=write) as child, open(read, "rb") as file:
        os.close(write)
        got = file.read().decode()
        assert child.wait(PATIENCE) == 0
    assert got.count("line of text") == 2000
    assert post.unread("bob") == []


def test_what_stands_in_the_pipe_before_is_not_taken_for_mail(post: Post, six: list[str]) -> None:
    """A reader that took another's bytes alone took none of ours."""
    read, write = os.pipe()
    os.write(write, b"x" * 1000)
    with post.start(*CHECK, stdout=write) as child:
        os.close(write)
        until(lambda: waiting(read) > 1000)
        assert os.read(read, 1000) == b"x" * 1000
        os.close(read)
        assert child.wait(PATIENCE) == 5
    assert post.unread("bob") == six


def test_a_file_has_taken_what_was_written(post: Post, six: list[str]) -> None:
    """``check`` into a file marks all that it wrote as read."""
    with (post.scratch / "copy").open("wb") as file:
        assert post.run(*CHECK, stdout=file).rc == 0
    assert "| body 5" in (post.scratch / "copy").read_text()
    assert [r["message_id"] for r in post.objects(READS)] == six


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
def test_a_client_that_leaves_without_a_hook_s_answer_was_shown_nothing(post: Post, six: list[str], event: str) -> None:
    """It is killed between the hook's write and its own read: the next hook shows the mail."""
    post.run("hook", "SessionStart", stdin='{"session_id": "fresh"}')
    read, write = os.pipe()
    with post.start("hook", event, stdout=write) as child:
        os.close(write)
        assert child.stdin is not None
        child.stdin.write(b'{"session_id": "bob"}')
        child.stdin.close()
        until(lambda: waiting(read) or child.poll() is not None)
        os.close(read)
        assert child.wait(PATIENCE) == 0
    assert post.unread("bob") == six


def test_a_hook_killed_behind_its_answer_loses_no_mail(post: Post, six: list[str]) -> None:
    """Its client has the answer, and nothing is recorded: the mail stays unread, and the next hook shows it again."""
    read, write = os.pipe()
    with post.start("hook", "UserPromptSubmit", stdout=write) as child:
        os.close(write)
        assert child.stdin is not None
        child.stdin.write(b'{"session_id": "bob"}')
        child.stdin.close()
        until(lambda: waiting(read) or child.poll() is not None)
        child.kill()
        assert child.wait(PATIENCE) == -signal.SIGKILL
    with open(read, "rb") as answer:
        assert b"body 5" in answer.read()
    assert post.unread("bob") == six
    assert "body 5" in post.run("hook", "UserPromptSubmit", stdin='{"session_id": "bob"}').stdout
    assert post.unread("bob") == []


def test_a_client_that_closes_its_socket_was_shown_no_answer_of_a_hook(post: Post, six: list[str]) -> None:
    """The system drops what was in it: an empty socket alone proves nothing."""
    ours, theirs = socket.socketpair()
    with ours, post.start("hook", "UserPromptSubmit", stdout=theirs.fileno()) as child:
        theirs.close()
        assert child.stdin is not None
        child.stdin.write(b'{"session_id": "bob"}')
        child.stdin.close()
        ours.recv(1, socket.MSG_PEEK)
        ours.close()
        assert child.wait(PATIENCE) == 0
    assert post.unread("bob") == six


@pytest.mark.parametrize("verb", ["show", "thread"])
@pytest.mark.parametrize("reader", ["head -3", ":"])
def test_a_text_of_which_a_part_was_taken_is_still_known_by_title(
    post: Post, six: list[str], verb: str, reader: str
) -> None:
    """``show ID | head`` makes of *seen by title* nothing more."""
    post.append(
        READS, {"message_id": six[0], "reader_session_id": "bob", "timestamp": "2026-01-01T00:00:00Z"} | BY_TITLE
    )
    post.env["CLAUDE_CODE_SESSION_ID"] = "bob"
    done, _ = into(post, reader, verb, six[0])
    assert "Traceback" not in done.stderr
    assert len(post.objects(READS)) == 1
    assert into(post, "cat", verb, six[0])[0].rc == 0
    assert len(post.objects(READS)) == 2


def test_an_answer_of_the_mcp_server_is_shown_once_its_client_took_it(post: Post, six: list[str]) -> None:
    """A client that ends before it reads an answer was shown no mail."""
    pytest.importorskip("mcp")
    server: Sequence[str] = asking.SERVER
    with subprocess.Popen(
        server,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=post.environ({"AGENT_MAILBOX_SESSION": "bob"}),
        cwd=post.cwd,
    ) as child:
        asking.begin(child)
        asking.ask(child, 1, "check")
        assert child.stdout is not None
        assert child.stdin is not None
        fd = child.stdout.fileno()
        until(lambda: waiting(fd))
        child.stdout.close()
        child.stdin.close()
        child.wait(PATIENCE)
    assert post.unread("bob") == six
