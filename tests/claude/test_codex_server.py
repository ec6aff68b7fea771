"""Codex's background server: what its files tell of a session (as they were seen with 0.169.0), and the queue."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from agent_mailbox.clients import codex_server, doorbell
from agent_mailbox.clients.client import BUSY, IDLE
from agent_mailbox.clients.codex_server import HELD, ServerSession
from agent_mailbox.commands.doorbell_command import ring_for_mail
from agent_mailbox.errors import MailboxError
from agent_mailbox.store.user_state import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers import Post

ME = "01a20cc6-0eb9-7911-b151-af69bc95e55c"


def event(kind: str, **more: object) -> str:
    """A line of a session's file about its turn."""
    return json.dumps({"type": "event_msg", "payload": {"type": kind, **more}}, separators=(",", ":")) + "\n"


def item(text: str, kind: str = "message") -> str:
    """A line of a session's file with words in it."""
    return json.dumps({"type": "response_item", "payload": {"type": kind, "text": text}}) + "\n"


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    """A session's file in Codex's own directory, beside the files of its locks."""
    path = tmp_path / f"codex/sessions/2026/11/24/rollout-2026-11-24T08-59-18-{ME}.jsonl"
    path.parent.mkdir(parents=True)
    (tmp_path / "codex/thread-writer-locks").mkdir()
    return path


OTHER = ME.replace("01a2", "01a3")


@pytest.fixture
def lock(rollout: Path) -> Iterator[IO[str]]:
    """The file that the process which has the session loaded keeps open: this one."""
    with open(rollout.parents[4] / "thread-writer-locks" / f"{ME}.lock", "w") as file:
        yield file


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([event("task_started")], BUSY[0]),
        ([event("task_started"), item("x"), event("task_complete"), event("token_count")], IDLE[0]),
        ([event("task_complete"), event("task_started"), event("turn_aborted")], HELD),
        ([event("turn_aborted"), event("task_started"), event("task_complete")], IDLE[0]),
        ([event("task_started"), item(event("task_complete")), event("agent_message", text="task_complete")], BUSY[0]),
        ([event("task_started"), item("event_msg", "task_complete")], BUSY[0]),
        ([event("task_complete"), event("task_started"), item("x" * 300_000)], BUSY[0]),
        ([event("task_complete")[:-3]], BUSY[0]),
        ([], BUSY[0]),
    ],
)
def test_the_last_turn_s_end_tells_what_a_session_does(rollout: Path, lines: list[str], status: str) -> None:
    """The last event of a turn tells whether a session is idle. An unclear file, or the same words in a message, do not
    make it idle."""
    rollout.write_text("".join(lines))
    assert codex_server.turn_status(str(rollout)) == status


def test_without_its_file_nothing_is_known_of_a_session(rollout: Path) -> None:
    """Neither what it does, nor whether it is loaded."""
    assert codex_server.turn_status(str(rollout)) is None
    assert codex_server.is_loaded(str(rollout), ME, os.getpid()) is None


@pytest.mark.usefixtures("lock")
def test_the_server_that_keeps_the_session_s_file_open_has_it_loaded(rollout: Path) -> None:
    """Only the process that keeps a session's file open counts as the server that has the session loaded."""
    assert codex_server.is_loaded(str(rollout), ME, os.getpid()) is True
    assert codex_server.is_loaded(str(rollout), ME, os.getppid()) is False


def test_an_unloaded_session_is_not_there_and_nothing_is_queued_to_it(
    rollout: Path, lock: IO[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is on the disk: a line for a session that nobody has loaded would wait there for days."""
    queued = rollout.parent / "queued"
    program = rollout.parent / "codex"
    program.write_text(f'#!/bin/sh\necho "$@" >>\'{queued}\'; echo "Error: no rollout found" >&2; exit $CODE\n')
    program.chmod(0o755)
    monkeypatch.setattr(processes, "executable", lambda _: str(program))
    monkeypatch.setenv("CODE", "0")
    with ServerSession(os.getpid(), {}, ME, str(rollout)) as session:
        assert session.is_alive()
        assert session.wake_with("LINE") == ""
        assert queued.read_text() == f"queue --thread {ME} --message LINE\n"
        monkeypatch.setenv("CODE", "1")
        assert session.wake_with("LINE") == "codex queue: Error: no rollout found"
        lock.close()
        assert not session.is_alive()
        assert "loaded" in session.wake_with("LINE")
    assert len(queued.read_text().splitlines()) == 2


@pytest.mark.usefixtures("lock")
@pytest.mark.parametrize("code", [0, 1])
def test_a_ring_that_begins_no_turn_is_repeated(
    rollout: Path, post: Post, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Codex may take a line and begin no turn, or refuse it: the doorbell waits on, and rings again for mail that is
    still unread. It ends with the mailbox."""
    rollout.write_text(event("task_complete"))
    program, queued = rollout.parent / "codex", rollout.parent / "queued"
    gone = f"mv '{post.box}' '{post.box}.gone'"
    program.write_text(f"#!/bin/sh\necho >>'{queued}'; [ $(wc -l <'{queued}') -lt 3 ] || exec {gone}; exit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(processes, "executable", lambda _: str(program))
    monkeypatch.setattr(doorbell, "PAUSE", 0.01)
    post.configure("[wake]\ngap_seconds = 0\n")
    post.ok("roster", "register", "--session-id", ME)
    post.send("bob", ME)
    session = ServerSession(os.getpid(), {}, ME, str(rollout))
    with session, pytest.raises(MailboxError, match="doorbell: No such file"):
        ring_for_mail(str(post.box), ME, session, lambda _: None)
    assert queued.read_text() == "\n" * 3
    assert not post.box.exists(), "it was moved, and nothing is made in its place"


@pytest.mark.usefixtures("lock")
def test_more_loaded_sessions_than_terminals_tell_that_one_was_left(rollout: Path, tmp_path: Path) -> None:
    """A terminal has one connection to the server's socket, whose name may be a link. It makes a file for each session
    that it opens; a subagent's session has none, and counts for nothing. Without these files nothing is known."""
    home, place = rollout.parents[4], tmp_path / "socket"
    opened, control = home / "tui-thread-reference-capabilities", home / "app-server-control/app-server-control.sock"
    control.parent.mkdir()
    control.symlink_to(place)

    def may_be_left() -> bool:
        return codex_server.may_be_left(str(rollout), os.getpid())

    with ExitStack() as there, socket.socket(socket.AF_UNIX) as server:
        assert not may_be_left()
        opened.mkdir()
        (opened / ME).touch()
        assert may_be_left()
        server.bind(str(place))
        server.listen()
        terminal = there.enter_context(socket.socket(socket.AF_UNIX))
        terminal.connect(str(place))
        there.enter_context(server.accept()[0])
        assert not may_be_left()
        there.enter_context(open(home / f"thread-writer-locks/{OTHER}.lock", "w"))
        assert not may_be_left()
        (opened / OTHER).touch()
        assert may_be_left()
