"""A program that is asked may do anything in place of answering: each is told, in a limited time and memory."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.files import programs
from agent_mailbox.store.user_state import processes
from tests.helpers import PATIENCE, each, until

if TYPE_CHECKING:
    from pathlib import Path


@each(
    "script, code, out, said",
    [
        ("printf half", 0, b"half", ""),
        ("printf '\\377\\n'", 0, b"\xff\n", ""),
        ("true", 0, b"", ""),
        ("exit 3", 3, b"", "exit code 3"),
        ("echo told; echo first >&2; printf ' \\377 last\\n' >&2; exit 1", 1, b"told\n", "\ufffd last"),
        ("echo told; exit 1", 1, b"told\n", "told"),
        ("kill -9 $$", -9, b"", "killed by signal 9"),
        ("exec >&- 2>&-; exit 4", 4, b"", "exit code 4"),
        ("read line; echo $line", 0, b"given\n", ""),
        ("sleep 1000 & echo $! >sleeper; echo told", 0, b"told\n", ""),
    ],
)
def test_a_program_s_end_and_its_last_words_are_told(
    tmp_path: Path, script: str, code: int, out: bytes, said: str
) -> None:
    """That it left its output open to a child of its own holds nobody up."""
    try:
        answer = programs.ask(["sh", "-c", script], PATIENCE, given=b"given\n", directory=str(tmp_path))
    finally:
        with contextlib.suppress(OSError):
            os.kill(int((tmp_path / "sleeper").read_text()), signal.SIGKILL)
    assert (answer.code, answer.out, answer.complaint()) == (code, out, said)


def test_a_program_that_is_silent_for_a_while_is_heard_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at its output that finds nothing ends nothing, as long as the program goes on."""
    monkeypatch.setattr(programs, "_LOOK", 0)  # the first looks come before it can have written
    assert programs.ask(["sh", "-c", "printf late"], PATIENCE).out == b"late"


@each(
    "script, seconds, said",
    [
        ("sleep 1000", 0.0, "no end within 0 s"),
        ("exec >&- 2>&-; exec sleep 1000", 0.0, "no end within 0 s"),
        ("trap '' TERM; sleep 1000; true", 0.0, "no end within 0 s"),
        ("exec yes", PATIENCE, "more than 0 MiB of output"),
        ("exec yes >&2", PATIENCE, "more than 0 MiB of output"),
        ("exec cat /dev/zero", PATIENCE, "more than 0 MiB of output"),
    ],
)
def test_a_program_that_does_not_end_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, seconds: float, said: str
) -> None:
    """It hangs, or prints without end: nothing of it is left."""
    place = tmp_path / "pid"
    words = ["sh", "-c", f"echo $$ >{place}.new; mv {place}.new {place}; {script}"]
    monkeypatch.setattr(programs, "MOST", 1 << 17)
    with pytest.raises(programs.NoAnswer) as error:
        programs.ask(words, seconds)
    assert error.value.strerror == said
    if place.exists():
        pid = int(place.read_text())
        until(lambda: (found := processes.read(pid)) is None or found.is_over)
        place.unlink()


def test_a_program_that_cannot_be_started_is_no_exception_for_who_wants_its_work_done(tmp_path: Path) -> None:
    """It is missing, no program, or not for this user: each is one line."""
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    assert programs.why_failed([str(tmp_path / "none")], PATIENCE) == f"there is no {tmp_path}/none here"
    assert programs.why_failed([str(tmp_path / "text")], PATIENCE) == "Exec format error"
    assert programs.why_failed([sys.executable, "-c", ""], PATIENCE) == ""
