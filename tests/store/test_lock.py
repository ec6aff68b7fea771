"""The one lock: real processes against each other, dead and stopped holders, and portalocker on the same file."""

from __future__ import annotations

import _thread
import fcntl
import os
import signal
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import portalocker
import pytest

from agent_mailbox import Busy, Draft, Mailbox
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import StorageFailed
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.existing_lock import DirectoryLock
from agent_mailbox.store.locks.holder import holder_at
from agent_mailbox.store.locks.lock import FileLock, is_held
from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Post, Program

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

OURS = """
import sys
from agent_mailbox.store.locks.lock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
THEIRS = """
import sys, portalocker
with portalocker.Lock(sys.argv[1], "a", timeout=0, flags=portalocker.LOCK_EX | portalocker.LOCK_NB):
    print("held", flush=True)
    sys.stdin.read()
"""
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who holds a lock")


@contextmanager
def holder(program: Program, path: Path, code: str = OURS) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock until it is told to end, or is killed."""
    with program.start(path, python=("-c", code)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        try:
            yield child
        finally:
            child.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file to lock."""
    return tmp_path / "log"


def is_locked(path: Path, kind: type[FileLock] = FileLock) -> bool:
    """Can the lock not be had at once?"""
    try:
        with kind(str(path), wait=0):
            return False
    except Busy:
        return True


@pytest.mark.parametrize("code", [OURS, THEIRS], ids=["flock", "portalocker"])
def test_a_held_lock_makes_others_busy_until_its_holder_dies(program: Program, path: Path, code: str) -> None:
    """Whichever way it was taken; the kernel frees it with the process, killed or not."""
    with holder(program, path, code) as child:
        assert is_locked(path)
        with pytest.raises(portalocker.LockException):
            portalocker.Lock(str(path), "a", timeout=0, flags=portalocker.LOCK_EX | portalocker.LOCK_NB).acquire()
        child.kill()
        child.wait(PATIENCE)
        assert not is_locked(path)


def test_who_only_asks_for_the_holder_is_none(program: Program, path: Path) -> None:
    """Two that ask at the same instant each hold a reader's lock then. A file that is not there has no holder."""
    assert not is_held(str(path))
    path.touch()
    with path.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not is_held(str(path))
    with holder(program, path):
        assert is_held(str(path))
    assert not is_held(str(path))


def test_portalocker_in_another_process_waits_for_ours(program: Program, path: Path) -> None:
    """The maintenance runs' lock and ours are one and the same."""
    with FileLock(str(path)):
        refused = program.python(THEIRS, path)
        assert refused.rc != 0
        assert "held" not in refused.stdout
        assert "LockException" in refused.stderr or "AlreadyLocked" in refused.stderr
    allowed = program.python(THEIRS, path, stdin=b"")
    assert (allowed.rc, allowed.stdout) == (0, "held\n"), allowed


@linux
def test_busy_names_its_holder_even_a_stopped_one(program: Program, path: Path) -> None:
    """A stopped process holds on; whoever waits is told its pid and command, so that it can be dealt with."""
    with holder(program, path) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        told = rf"log is locked by pid {child.pid} \(.*python.*, since 2\S+Z, stopped: `kill -CONT {child.pid}`"
        with (
            pytest.raises(Busy, match=told) as caught,
            FileLock(str(path), 0),
        ):
            pass
        assert caught.value.exit_code == 4
        os.kill(child.pid, signal.SIGCONT)


def test_a_lock_stands_at_whatever_descriptor_it_is(path: Path) -> None:
    """A program that was started with its standard input closed opens its first file there."""
    lock, kept = FileLock(str(path)).take(), os.dup(0)
    opened, lock.fd = lock.fd, os.dup2(lock.fd, 0)
    try:
        assert lock.stands()
    finally:
        os.close(opened)
        lock.release()
        os.dup2(kept, 0)
        os.close(kept)


FORKED = """
import os, sys
from agent_mailbox.store.locks.lock import FileLock
lock = FileLock(sys.argv[1]).take()
ours, theirs = os.pipe()
if os.fork() == 0:
    assert lock.fd == -1
    os.close(ours)
    print("held", flush=True)
    os.close(1)
    sys.stdin.read()
    os._exit(0)
os.close(theirs)
os.read(ours, 1)  # until the child is gone
"""


def test_a_forked_child_holds_no_lock(program: Program, path: Path) -> None:
    """Neither while its parent holds it, nor when that was killed and the child lives on."""
    with holder(program, path, FORKED) as parent:
        assert is_locked(path)
        parent.kill()
        parent.wait(PATIENCE)
        assert not is_locked(path)


def test_a_lock_is_given_back_whoever_has_its_descriptor_too(path: Path) -> None:
    """A process that was started without our knowledge may have inherited it."""
    with FileLock(str(path)) as lock:
        other = os.dup(lock.fd)
    try:
        assert not is_locked(path)
    finally:
        os.close(other)


def test_the_same_file_by_another_way_is_the_same_lock(tmp_path: Path) -> None:
    """A mailbox reached through a link to its directory has no locks of its own."""
    (tmp_path / "box").mkdir()
    (tmp_path / "link").symlink_to("box")
    with FileLock(str(tmp_path / "box/log")):
        assert is_locked(tmp_path / "link/log")
    with DirectoryLock(str(tmp_path / "box")):
        assert is_locked(tmp_path / "link", DirectoryLock)


def test_a_lock_of_what_is_gone_is_an_error_and_has_no_holder(tmp_path: Path) -> None:
    """The directory to be locked may have been removed by then."""
    gone = str(tmp_path / "box")
    with pytest.raises(StorageFailed, match=f"cannot open {gone}: No such file"):
        DirectoryLock(gone).take()
    assert holder_at(gone) == ""


@pytest.mark.parametrize(
    ("name", "act"),
    [
        (MESSAGES, lambda box: box.send(Draft(sender="a", to=("all",), content="x"))),
        (READS, lambda box: box.ack(next(iter(box.state().messages)), "a")),
        (READS, lambda box: box.deliver("b", lambda items: items)),
        (ROSTER, lambda box: box.register(Registration(session_id="new"), "new")),
        ("agent-heartbeats/b", lambda box: box.deliver("b", lambda items: items)),
    ],
    ids=["send", "ack", "check", "register", "the session's own delivery"],
)
def test_whoever_cannot_get_a_lock_changes_nothing(post: Post, name: str, act: Callable[[Mailbox], object]) -> None:
    """Busy after the wait, and the logs are as before."""
    mailbox = Mailbox(str(post.box), wait=0.02)
    for agent in ("a", "b"):
        post.register(agent)
    mailbox.send(Draft(sender="b", to=("a",), content="x", ack=True))
    mailbox.deliver("a", lambda items: items)
    mailbox.send(Draft(sender="a", to=("b",), content="waits"))
    before = [post.lines(log) for log in (MESSAGES, READS, ROSTER)]
    with holder(post, post.file(name)), pytest.raises(Busy):
        act(mailbox)
    assert [post.lines(log) for log in (MESSAGES, READS, ROSTER)] == before


def test_reading_needs_no_lock(post: Post) -> None:
    """History, status, peek and the roster answer while all logs are locked."""
    post.register("b")
    sent = post.send("a", "b")
    with ExitStack() as held:
        for name in (MESSAGES, READS, ROSTER):
            held.enter_context(holder(post, post.file(name)))
        assert post.unread("b") == [sent]
        assert post.ok("status", "--session", "b")["unread"] == 1
        assert [m["id"] for m in post.ok("history", "--all")["messages"]] == [sent]
        assert post.ok("roster", "show", "b")["agent"]["state"] == "alive"
        assert post.ok("show", sent)["message"]["id"] == sent


QUEUED = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on: it is tried here
from agent_mailbox import Busy
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.lock import FileLock
holder = FileLock(sys.argv[1]).take()
for _ in range(12):
    try:
        FileLock(sys.argv[1], 0.02).take()
    except Busy:
        print(len(system.waiting) <= 9, flush=True)
if os.fork() == 0:
    print(len(system.waiting), flush=True)
    os._exit(0)
os.wait()
holder.release()
FileLock(sys.argv[1], 10).take().release()
while system.waiting:
    os.sched_yield()
with FileLock(sys.argv[1], 0):
    print("free", flush=True)
"""


def test_a_lock_that_comes_too_late_is_given_back(program: Program, path: Path) -> None:
    """Threads that waited in vain are few, hold nothing, and leave no descriptor to a forked process."""
    done = program.python(QUEUED, path)
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.stdout.split() == [*["True"] * 12, "0", "free"]


WAITING = """
import sys
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.lock import FileLock
system.sleep = None
print("waiting", flush=True)
with FileLock(sys.argv[1], float("inf")):
    print("held", flush=True)
"""


@pytest.mark.parametrize("dies", [False, True], ids=["release", "kill"])
def test_a_waiter_is_woken_by_the_kernel(program: Program, path: Path, dies: bool) -> None:
    """The kernel wakes those that wait, one after another, as the holder releases the lock or dies: their time-out is
    no matter. A waiter that is killed is in nobody's way."""
    with holder(program, path) as first, ExitStack() as started:
        waiters = [started.enter_context(program.start(path, python=("-c", WAITING))) for _ in range(3)]
        for one in waiters:
            assert one.stdout is not None
            assert one.stdout.readline() == b"waiting\n"
        waiters.pop(1).kill()
        if dies:
            first.kill()
        elif first.stdin is not None:
            first.stdin.close()
            first.stdin = None
        for one in waiters:
            assert one.communicate(timeout=PATIENCE) == (b"held\n", b"")
            assert one.returncode == 0


def test_whoever_finds_too_many_waiting_threads_starts_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes turns instead, and leaves no descriptor behind."""
    crowd = {-n for n in range(1, system._MOST_WAITING + 2)}
    monkeypatch.setattr(system, "waiting", {*crowd})
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: pytest.fail("a thread was started"))
    before = os.listdir("/dev/fd")
    holder = FileLock(str(path)).take()
    with pytest.raises(Busy):
        FileLock(str(path), 0.01).take()
    holder.release()
    FileLock(str(path), 10).take().release()
    assert system.waiting == crowd
    assert os.listdir("/dev/fd") == before
