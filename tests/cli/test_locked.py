"""A process that is stopped keeps a lock: who waits is told by whom, a time-out is kept, and mail goes on if it can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.space import space as spaces
from agent_mailbox.store.locks.lock import FileLock
from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, READS, ROSTER, Post, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOLD = """
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
"""
ENDLESS = """
import sys
from agent_mailbox.mailbox import open_mailbox
open_mailbox.WAIT = 1e5
from agent_mailbox.launch import main
sys.exit(main())
"""
"""The program with a patience for locks that outlasts every test."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system tells no holder of a lock")


@pytest.fixture
def stopped() -> Iterator[Callable[[Path], int]]:
    """Have a process lock a file and be stopped; its number."""
    children: list[subprocess.Popen[bytes]] = []

    def hold(path: Path) -> int:
        child = subprocess.Popen([sys.executable, "-c", HOLD, path])
        children.append(child)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        return child.pid

    yield hold
    for child in children:
        child.kill()
        child.wait()


@pytest.fixture
def pair(post: Post) -> Post:
    """Two agents, one led by the other, with mail for one of them."""
    post.register("b")
    post.register("a", "--lead", "b")
    post.send("b", "a", "the text")
    return post


def prompted(post: Post) -> tuple[int, str]:
    """The exit code and the answer of a hook of session ``a``."""
    call = json.dumps({"session_id": "a", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": "go"})
    done = post.run("hook", "UserPromptSubmit", stdin=call)
    return done.rc, done.stdout


@pytest.mark.parametrize("name", [READS, f"{HEARTBEATS}/a"])
def test_a_hook_whose_mail_waits_for_a_lock_tells_the_person_who_keeps_it(
    pair: Post, name: str, stopped: Callable[[Path], int]
) -> None:
    """One line with the process and the command that lets it go on; the model gets nothing, and the mail stays."""
    pid = stopped(pair.file(name))
    rc, said = prompted(pair)
    assert (rc, list(json.loads(said))) == (0, ["systemMessage"])
    assert f"{name} is locked by pid {pid} ({sys.executable} -c" in said
    assert "mail waits" in said
    assert f"`kill -CONT {pid}`" in said
    assert len(pair.unread("a")) == 1


def entry(post: Post) -> Path:
    """The user's own record of the messages log."""
    return next((post.user_state / "boxes").iterdir()) / "agent-mailbox"


@pytest.mark.parametrize("name", [MESSAGES, ROSTER, "the user's record"])
def test_a_lock_that_mail_does_not_need_holds_up_no_hook(pair: Post, name: str, stopped: Callable[[Path], int]) -> None:
    """The text is shown and recorded; what is derived is written another time."""
    stopped(entry(pair) if name == "the user's record" else pair.file(name))
    assert "the text" in prompted(pair)[1]
    assert pair.unread("a") == []


def test_a_send_beside_a_stopped_process_in_the_user_s_record_is_sent(
    pair: Post, stopped: Callable[[Path], int]
) -> None:
    """It is durable, and only its note waits; it had waited for ever."""
    stopped(entry(pair))
    done = pair.run("send", "--from", "a", "--to", "b", "--body", "sent", "--json")
    assert (done.rc, done.stderr) == (0, "")
    assert pair.unread("b") == [done.json["message"]["id"]]


def test_a_time_out_is_kept_beside_a_locked_log(pair: Post, stopped: Callable[[Path], int]) -> None:
    """``wait`` answers what it saw; what had to write says which process keeps the log."""
    asked = pair.ok("control", "request", "plan", "--session", "a", "--body", "a plan")["request"]["id"]
    pair.check("b")
    for name in (READS, ROSTER, MESSAGES):
        pid = stopped(pair.file(name))
        waited = pair.python(ENDLESS, "wait", "--session", "b", "--timeout", "0.2", "--json")
        assert (waited.rc, waited.json, waited.stderr) == (1, {"unread": 0}, ""), name
    decided = pair.python(ENDLESS, "control", "wait", asked, "--session", "a", "--timeout", "0.2")
    refused(decided, 4, f"pid {pid}")
    words = ("control", "request", "plan", "--session", "a", "--body", "late", "--timeout", "0.2")
    refused(pair.python(ENDLESS, *words), 4, f"pid {pid}")


def test_the_doctor_names_who_keeps_a_lock(pair: Post, stopped: Callable[[Path], int]) -> None:
    """The doctor names the process that holds a lock, for each lock of the mailbox and for the user's record."""
    pair.check("a")
    pair.ok("steward", "run")
    held = [*map(pair.file, (MESSAGES, READS, ROSTER, f"{HEARTBEATS}/a", f"{ARCHIVE}/.lock")), entry(pair)]
    pids = {str(path): stopped(path) for path in held}
    told = {p["file"]: p["what"] for p in pair.run("doctor", "--json").json["problems"]}
    assert told.keys() == pids.keys()
    for path, pid in pids.items():
        assert f"locked by pid {pid} (" in told[path]
        assert f"`kill -CONT {pid}`" in told[path]


def test_a_shared_mailbox_without_a_replicator_is_a_problem(pair: Post) -> None:
    """The plain doctor tells it with the command that serves, and is content while one runs."""
    desk = OpenMailbox(str(pair.box))
    spaces.save_space(desk.logs, spaces.Space(url="nats://127.0.0.1:1", space="team", machine="north"))
    (problem,) = pair.doctor()
    assert "replicator does not run" in problem["what"]
    assert f"`agent-mailbox engine serve --install --dir {pair.box}`" in problem["what"]
    with FileLock(spaces.record_of(desk.logs).path(spaces.PLACE, spaces.SERVING)):
        assert pair.doctor() == []
