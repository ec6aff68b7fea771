"""``statusline``, ``tail`` and ``top``: what a person sees while agents work."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from fcntl import ioctl
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.commands.status_line import StatusLine
from agent_mailbox.store.files import watch
from tests.claude.shim import SHELLS, Shim
from tests.claude.test_hooks import ME
from tests.faults.conftest import strace as strace
from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Post, delete, refused, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

EVIL = "evil \x1b[31mred\x1b[0m\nsecond line \u202e"


@pytest.fixture
def pair(post: Post) -> Post:
    """Ann and Bob, who have nothing to read."""
    for who in ("ann", "bob"):
        post.register(who, "--name", who.title())
    return post


# -- the status line --------------------------------------------------------------------------------------------------


def test_a_line_has_unread_mail_what_waits_for_the_person_and_the_task(pair: Post) -> None:
    """The session is the one named, or the one of the client's JSON. Nothing is marked as read."""
    assert pair.call("statusline", "--session", "bob").stdout == "✉ 0\n"
    pair.send("ann", "bob", EVIL)
    pair.send("ann", "bob", "two")
    pair.ok("roster", "update", "--session-id", "bob", "--lead", "user")
    pair.ok("control", "request", "permission", "--tool", "Bash", "--session", "bob")
    assert pair.call("statusline", "--session", "bob").stdout == "✉ 2 · 1 waits for you\n"
    task = pair.ok("task", "add", "--to", "bob", "--title", "x", "--session", "ann")["task"]["id"]
    pair.ok("task", "claim", task, "--session", "bob")
    pair.ok("task", "progress", task, "--phase", "implementing", "--session", "bob")
    told = pair.call("statusline", stdin=json.dumps({"session_id": "bob"}))
    assert told.stdout == f"✉ 2 · 1 waits for you · {task} implementing\n"
    found = pair.ok("statusline", "--session", "bob")
    assert (found["unread"], found["waiting"], found["task"]) == (2, 1, {"id": task, "phase": "implementing"})
    assert found["line"] == told.stdout.strip()
    assert len(pair.unread("bob")) == 2
    evil = StatusLine("bob", 0, 0, task, EVIL, 0).text
    assert evil.isprintable()


def test_a_pipe_that_nobody_writes_into_holds_up_nothing(pair: Post) -> None:
    """A script leaves its own standard input open: then the variable names the session, as elsewhere."""
    with pair.start("statusline", stdin=subprocess.PIPE, env={"AGENT_MAILBOX_SESSION": "bob"}) as child:
        assert child.stdout is not None
        assert child.stdout.read().decode() == "✉ 0\n"
        assert child.wait(PATIENCE) == 0


def test_without_a_mailbox_or_a_session_it_says_what_is_missing(pair: Post) -> None:
    """The exit code and the error are those of every command."""
    refused(pair.call("--dir", pair.scratch / "none", "statusline", "--session", "bob"), 1, "mailbox")
    refused(pair.call("statusline", env={"AGENT_MAILBOX_TEST_CALLER": None}), 2, "session")


def ask_line(shim: Shim, *shell: str) -> str:
    """What the shim prints into the client's status line."""
    return shim.hook("StatusLine", *shell).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shim_prints_the_line_again_without_python(post: Post, shell: str) -> None:
    """Each log that is written makes it look again, and so does time; what is no line of ours is never printed."""
    shim, command = Shim(post), [shell, *(["sh"] if shell == "busybox" else [])]
    shim.hook("SessionStart")
    shim.starts()

    def look() -> tuple[str, int]:
        return ask_line(shim, *command), shim.starts()

    def age() -> None:  # a write in the same second as the look is looked at once more
        for name in (MESSAGES, READS, ROSTER, "config.toml"):
            if post.file(name).exists():
                os.utime(post.file(name), (1, 1))

    for told in ("✉ 0\n", "✉ 1\n"):
        assert look() == (told, 1)
        age()
        assert look() == (told, 0)
        post.send("x", ME)
    age()
    post.check(ME, "--limit", "1")
    kept = post.file(".cache", "lines", ME)
    for name in (READS, ROSTER, "config.toml"):
        post.file(name).touch()
        assert look() == ("✉ 1\n", 1), name
        age()
    made, ends, _ = kept.read_text().split(" ", 2)
    for said in (
        *(f"{ends} {ends} ✉ 7\n", f"{made} {made} ✉ 7\n", f"{made} {ends} \x1b[2J\n", f"{made} {ends}x ✉ 7\n"),
        *("", "\n", f"{made}\n"),
    ):
        was = kept.stat().st_mtime_ns
        kept.write_text(said)
        os.utime(kept, ns=(was, was))
        assert look() == ("✉ 1\n", 1), said
    kept.unlink()
    os.mkfifo(kept)
    assert look()[0] == "✉ 1\n"


@pytest.mark.usefixtures("strace")
def test_a_line_that_nothing_changed_costs_one_small_file(post: Post) -> None:
    """The shim reads the kept line, runs `date`, and nothing else: no Python, and none of the client's JSON."""
    shim = Shim(post)
    shim.hook("SessionStart")
    assert ask_line(shim) == "✉ 0\n"
    for name in (MESSAGES, READS, ROSTER):
        os.utime(post.file(name), (1, 1))
    calls = post.scratch / "calls"
    assert ask_line(shim, "strace", "-f", "-e", "trace=execve,openat,read", "-o", str(calls)) == "✉ 0\n"
    done = calls.read_text()
    ran = [os.path.basename(path) for path in re.findall(r'execve\("([^"]+)".* = 0', done)]
    opened = [path for path in re.findall(r'openat\(\w+, "([^"]+)", O_RDONLY.* = \d', done) if path.startswith("/tmp")]
    assert ran == ["agent-mailbox-hook", "date"]
    assert [os.path.basename(os.path.dirname(path)) for path in opened] == ["hooks", "lines"]
    assert 'read(0, "{' not in done


def test_an_expired_message_leaves_the_line_in_time(pair: Post) -> None:
    """A kept line counts no longer than until its first message expires."""
    pair.send("ann", "bob", "short", "--ttl-hours", "1")
    from agent_mailbox.commands.status_line import LONGEST, look_up
    from agent_mailbox.mailbox.open_mailbox import OpenMailbox

    desk = OpenMailbox(str(pair.box))
    assert look_up(desk, "bob").until - desk.now() <= LONGEST
    late = OpenMailbox(str(pair.box), clock=lambda: desk.now() + 3_590_000)
    assert 0 < look_up(late, "bob").until - late.now() <= 10_000


# -- tail -------------------------------------------------------------------------------------------------------------


def follow(post: Post, *more: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """``tail`` as a process."""
    return post.start("tail", *more, forked=True)


def lines_of(child: subprocess.Popen[bytes]) -> Iterator[str]:
    """Its lines, as they come."""
    assert child.stdout is not None
    for line in child.stdout:
        yield line.decode()


def test_mail_is_printed_as_it_comes_and_the_newest_before_it(pair: Post) -> None:
    """Each is one line, harmless to a terminal, or a document. A reader that leaves ends it without a word."""
    pair.send("ann", "bob", "oldest")
    pair.send("ann", "bob", "old")
    pair.check("bob")
    with follow(pair, "--all", "-n", "1") as child, follow(pair, "--session", "bob", "--json", "--lines", "1") as other:
        told, documents = lines_of(child), lines_of(other)
        assert next(told).rstrip().endswith("old")
        shown = json.loads(next(documents))
        assert (shown["content"], shown["read_by"]) == ("old", ["bob"])
        sent = pair.send("ann", "ann2", "not for bob"), pair.send("ann", "bob", EVIL)
        assert sent[0][:8] in next(told)
        line = next(told)
        assert line.startswith(f"{sent[1][:8]}  ")
        assert "Ann → Bob" in line
        assert "\x1b" not in line
        assert "\u202e" not in line
        assert json.loads(next(documents))["content"] == EVIL
        for one in (child, other):
            assert one.stdout is not None
            assert one.stderr is not None
            one.stdout.close()
            assert (one.wait(PATIENCE), one.stderr.read()) == (0, b"")
    assert len(pair.unread("bob")) == 1


def test_the_steward_s_new_log_is_followed(pair: Post) -> None:
    """Mail that comes while the log is replaced is shown once. Mail that stays in it is not shown again."""
    from agent_mailbox.mailbox.followed_mail import FollowedMail
    from agent_mailbox.mailbox.open_mailbox import OpenMailbox

    kept = pair.send("ann", "bob", "kept")
    gone = pair.send("ann", "bob", "gone")
    box = OpenMailbox(str(pair.box))
    with FollowedMail(box.logs) as followed:
        assert [*followed.read_news()] == []
        late = pair.send("ann", "bob", "late")
        whole = box.logs.messages.path
        with open(whole, "rb") as file:
            rest = [line for line in file if gone.encode() not in line]
        with open(f"{whole}.new", "wb") as file:
            file.writelines(rest)
        os.rename(f"{whole}.new", whole)
        after = pair.send("ann", "bob", "after")
        assert [m.id for m in followed.read_news()] == [late, after]
        assert [m.id for m in followed.read_news()] == []
        assert kept not in (late, after)
    os.rename(whole, f"{whole}.away")
    with FollowedMail(box.logs) as followed:
        assert [*followed.read_news()] == []
        os.rename(f"{whole}.away", whole)
        assert [m.id for m in followed.read_news()] == [kept, late, after], "a log that comes is news"


@pytest.mark.parametrize("is_moved", [True, False])
def test_tail_ends_as_its_mailbox_goes(pair: Post, is_moved: bool) -> None:
    """It says so, however it went."""
    pair.send("ann", "bob", "one")
    with follow(pair, "--all", "-n", "1") as child:
        assert child.stdout is not None
        assert b"one" in child.stdout.readline()
        if is_moved:
            pair.box.rename(pair.scratch / "away")
        else:
            delete(pair.box)
        _, said = child.communicate(timeout=PATIENCE)
    assert (child.returncode, f"no mailbox at {pair.box}" in said.decode()) == (1, True)


def test_tail_goes_on_with_a_mailbox_that_takes_the_place_of_its_own(pair: Post) -> None:
    """One that is restored between two looks leaves no moment without a mailbox. Its mail is shown as before."""
    other = pair.scratch / "other"
    assert pair.call("init", other).rc == 0
    pair.ok("roster", "register", "--session-id", "bob", "--dir", other)
    pair.send("ann", "bob", "one")
    with follow(pair, "--all", "-n", "1") as child:
        assert child.stdout is not None
        assert b"one" in child.stdout.readline()
        # RENAME_EXCHANGE (renameat2(2)); -100 is AT_FDCWD
        libc = ctypes.CDLL(None)
        assert libc.renameat2(-100, os.fsencode(pair.box), -100, os.fsencode(other), 2) == 0
        pair.send("ann", "bob", "two")
        assert b"two" in child.stdout.readline()
        child.kill()


def test_a_watch_stays_with_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory above is moved, which nobody is told of, and one is made in its place: a look finds that, and what
    comes in the new one is heard of."""
    monkeypatch.setattr(watch, "SELDOM", 0.001)
    (place := tmp_path / "project" / "data").mkdir(parents=True)
    with watch.Watch([str(place)]) as changes:
        place.parent.rename(tmp_path / "moved")
        assert changes.wait(None)
        place.mkdir(parents=True)
        assert changes.wait(None)
        monkeypatch.undo()
        (place / "log").touch()
        assert changes.wait(None)


def test_tail_refuses_what_history_refuses(pair: Post) -> None:
    """It refuses an address that is none, and a caller without a session."""
    refused(pair.call("tail", "--all", "--with", "nobody-there"), 1, "nobody-there")
    refused(pair.call("tail", env={"AGENT_MAILBOX_TEST_CALLER": None}), 2, "session")


# -- top --------------------------------------------------------------------------------------------------------------


def test_the_fleet_is_printed_once_where_nobody_can_press_a_key(pair: Post) -> None:
    """Each agent that is not dead has a row, and ``--limit`` says how many more there are."""
    pair.send("ann", "bob", EVIL)
    pair.send("ann", "user", "for you")
    pair.ok("roster", "register", "--session-id", "old")
    pair.ok("roster", "retire", "old")
    told = pair.call("top")
    head, names, *rows = told.stdout.splitlines()
    assert f"  2 agents, 1 unread for you  {pair.box}" in head
    assert names.split()[:3] == ["agent", "state", "unread"]
    assert sorted(row.split()[:3] for row in rows) == [["Ann", "alive", "-"], ["Bob", "alive", "1"]]
    last = pair.call("top", "--once", "--limit", "1", "--dir", pair.box).stdout.splitlines()[-1]
    assert last == f"and 1 more: agent-mailbox roster list --dir {pair.box}"
    found = pair.ok("top", "--limit", "1")
    assert (len(found["agents"]), found["more"], found["unread"], found["waiting"]) == (1, 1, 1, 0)
    assert len(pair.unread("bob")) == 1


def at_terminal(post: Post, columns: int = 60, rows: int = 6) -> tuple[subprocess.Popen[bytes], int, list[Any]]:
    """``top`` at a terminal of that size, the other end of it, and its modes before."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    ends: dict[str, Any] = {"stdin": slave, "stdout": slave}
    before = termios.tcgetattr(slave)
    child = post.start("top", "--interval", "0.1", **ends)
    os.close(slave)
    return child, master, before


def read_until(master: int, wanted: bytes) -> bytes:
    """What the terminal got until it showed something."""
    got = b""
    while wanted not in got:
        got += os.read(master, 65536)
    return got


@pytest.mark.parametrize("end", ["q", "interrupt", "closed", "terminated"])
def test_top_is_live_until_somebody_ends_it(pair: Post, end: str) -> None:
    """It fits the terminal, shows what changes, and leaves the terminal as it was, also while it is stopped."""
    for number in range(9):
        pair.register(f"agent-{number}", "--tags", "project:a-long-name-of-a-project-for-this")
    child, master, before = at_terminal(pair)
    with child:
        first = read_until(master, b"q ends")
        picture = first.decode().partition("\x1b[H")[2].partition("\x1b[J")[0]
        shown = picture.replace("\x1b[K", "").split("\r\n")
        assert len(shown) <= 6
        assert max(map(len, shown)) <= 60
        pair.send("ann", "user", "news")
        read_until(master, b"1 unread")
        child.send_signal(signal.SIGTSTP)
        got = bytearray(read_until(master, b"\x1b[?1049l"))

        def goes_on() -> bool:
            if b"\x1b[?1049h" in got.partition(b"\x1b[?1049l")[2]:  # at once, where nobody could let it go on
                return True
            child.send_signal(signal.SIGCONT)  # it may come before the stop
            got.extend(os.read(master, 65536) if select.select([master], [], [], 0.05)[0] else b"")
            return False

        until(goes_on)
        if end == "q":
            os.write(master, b"q")
        elif end != "closed":
            child.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGTERM)
        else:
            os.close(master)
        if end != "closed":
            read_until(master, b"\x1b[?1049l")
            after = termios.tcgetattr(master)
            assert after[3] & termios.ICANON
            assert before[6] == after[6]
            os.close(master)
        until(lambda: child.poll() is not None)
        assert child.stderr is not None
        ended = 128 + signal.SIGTERM if end == "terminated" else 0
        assert (child.returncode, child.stderr.read()) == (ended, b"")
