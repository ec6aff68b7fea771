"""What a machine of a space says of the others is what it knows: the real commands, replicators and server."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.commands import engine_output
from agent_mailbox.mcp import tool_commands
from agent_mailbox.space import joining_space
from agent_mailbox.space.copy.known_copy import TURN
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.lock import FileLock
from tests.console.conftest import Running
from tests.helpers import until

from .pair import MACHINES, Pair, is_of
from .test_away import stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from agent_mailbox.mcp.tool_schemas import ToolAnswer
    from tests.helpers import Post


def test_mail_that_nobody_brings_is_not_said_to_be_none(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its replicator a machine's looks and pages say how far its copy is; with it they say nothing of it.

    A client's tool is a look.
    """
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who)
    here = pair.ok("south", "engine", "status")["applied"]
    sent = pair.program.run(
        *("send", "--from", "user", "--to", "all", "--body", "to ben"), "--dir", pair.program.scratch / "north"
    )
    assert "on another machine" not in sent.stdout or "once that takes it in" in sent.stdout
    (fresh,) = (path for path in pair.program.user_state.glob("**/engine/fresh") if is_of(path, "south"))
    os.utime(fresh, (time.time() - 7 * 60,) * 2)
    looks = (("check",), ("check", "--peek"), ("status",), ("wait", "--timeout", "0"))
    for look in looks:
        said = pair.program.run(*look, "--session", "ben", "--dir", pair.program.scratch / "south")
        assert "to ben" not in said.stdout
        (warning,) = said.warnings
        assert f"copy of space {pair.space} is 7 minutes old: the replicator does not run" in warning
        assert f"`agent-mailbox engine serve --dir {pair.program.scratch / 'south'} --install`" in warning
    with monkeypatch.context() as patch:
        for name, value in pair.program.environ({"AGENT_MAILBOX_SESSION": "ben"}).items():
            patch.setenv(name, value)
        answers: list[ToolAnswer] = []
        tool_commands.answer_call(str(pair.program.scratch / "south"), "check", {}, answers.append)
    assert [f"warning: {said}" for said in answers[0].data["warnings"]] == [warning]
    with Running(pair.program, "--dir", str(pair.program.scratch / "south")) as console:
        page = console.enter().ask("/").text
    assert f"copy of space {pair.space} is 7 minutes old: the replicator does not run" in page
    start = {
        "session_id": "cem",
        "hook_event_name": "SessionStart",
        "source": "startup",
        "cwd": str(pair.program.scratch),
    }
    told = pair.program.run("hook", "SessionStart", "--dir", pair.program.scratch / "south", stdin=json.dumps(start))
    assert f"copy of space {pair.space} is a minute old or less: the replicator does not run" in told.stdout, (
        "it registered"
    )
    with pair.serving("south"):
        until(lambda: pair.ok("south", "engine", "status")["applied"] > here)
        for look in reversed(looks):
            said = pair.program.run(*look, "--session", "ben", "--dir", pair.program.scratch / "south")
            assert (said.rc, said.warnings) == (0, [])
    assert "to ben" in said.stdout


def test_a_replicator_that_reaches_nobody_is_told_of_too(
    dark: tuple[Pair, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, and the engine is silent: after a minute the copy is called old, and `doctor` says so. A command that
    asks the engine says whom it waits for."""
    monkeypatch.setattr(joining_space, "LOOKING", 0.3)
    monkeypatch.setattr(engine_output, "SILENT", 0)
    pair, pid = dark
    looks = ("check", "--session", "ben", "--dir", pair.program.scratch / "south")
    with pair.serving("south") as replicator, stopped(pid):
        assert replicator.stderr is not None
        logged = replicator.stderr.readline()
        assert b"engine is out of reach" in logged
        assert re.match(rb"\d{4}-\d\d-\d\dT[\d:.]+Z ", logged), "a log says when"
        looked = pair.program.call("engine", "status", "--dir", pair.program.scratch / "south")
        assert (f"asking {pair.url} …" in looked.stderr, "no answer in time" in looked.stdout) == (True, True)
        assert pair.program.run(*looks).warnings == []
        (fresh,) = (path for path in pair.program.user_state.glob("**/engine/fresh") if is_of(path, "south"))
        os.utime(fresh, (time.time() - 3 * 60,) * 2)
        (warning,) = pair.program.run(*looks).warnings
        assert "is 3 minutes old: engine is out of reach; start its server" in warning
        assert "is 3 minutes old: engine is out of reach" in pair.program.run("doctor", *looks[3:]).stdout


def test_a_machine_that_never_spoke_is_told_of_while_the_engine_is_away(
    dark: tuple[Pair, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joined, and no replicator of it ever ran. The others remember it, until they leave the space."""
    monkeypatch.setattr(joining_space, "LOOKING", 0.3)
    pair, pid = dark
    place = pair.program.scratch / "north"
    assert "south      not heard of yet" in pair.program.call("engine", "status", "--dir", place).stdout
    with stopped(pid):
        looked = pair.program.call("engine", "status", "--dir", place).stdout
        assert "south      not heard of yet" in looked
        assert "no answer in time" in looked
    record = pair.record("north")
    (record / "joined").unlink()
    with pair.serving("north"):
        until((record / "joined").exists)
    pair.ok("north", "engine", "leave")
    assert not (record / "joined").exists()
    assert not (record / "elsewhere").exists()


def test_a_command_that_waits_for_a_lock_says_who_has_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process of the machine has its turn: `forget`, `purge` and `leave` name it, and go on behind it."""
    for machine in MACHINES:
        pair.join(machine)
    turn = FileLock(str(pair.record("south") / TURN))

    class Clock(threading.Thread):
        """The second is over once the command waits; the lock is free then."""

        def __init__(self, _: float, say: Callable[[], None]) -> None:
            super().__init__()
            self.say = say

        def run(self) -> None:
            until(lambda: system.waiting)
            self.say()
            turn.release()

        cancel = threading.Thread.join

    monkeypatch.setattr(threading, "Timer", Clock)
    for words in (("forget", "north"), ("purge", "--dry-run"), ("leave",)):
        with turn:
            said = pair.program.call("engine", *words, "--dir", pair.program.scratch / "south")
        assert (said.rc, f"the mailbox is locked by pid {os.getpid()} (" in said.stderr) == (0, True), said


def test_a_session_without_a_sign_of_life_lives_elsewhere_only_in_a_shared_mailbox(pair: Pair, post: Post) -> None:
    """A mailbox of one machine has no other. The person lives on every one."""
    pair.join("north")
    pair.ok("north", "roster", "register", "--session-id", "ann")
    asked = ("ann", "never-seen", "user")
    assert Mailbox(str(pair.program.scratch / "north")).elsewhere(asked) == ["never-seen"]
    post.register("ann")
    assert Mailbox(str(post.box)).elsewhere(asked) == []


def test_a_machine_first_tells_how_far_its_copy_is(pair: Pair) -> None:
    """The first word of a replicator that comes up is of the records that are here, not of none."""
    for machine in MACHINES:
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", f"of-{machine}")
    with pair.serving("north"):
        with pair.serving("south"):
            until(lambda: pair.ok("north", "engine", "status")["machines"][0]["heard"])
        assert pair.program.run("doctor", "--dir", pair.program.scratch / "north").rc == 0, "its socket is no obstacle"
        (other,) = pair.ok("north", "engine", "status")["machines"]
    assert other["behind"] == 0


def test_what_waits_for_the_persons_word_names_the_command_that_says_it(pair: Pair) -> None:
    """The command that `engine status` and `engine doctor` name for another machine's lines works when pasted."""
    south = pair.program.scratch / "south"
    for machine in MACHINES:
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", f"of-{machine}")
    pair.send("north", "--from", "of-north", "--to", "all", "--body", "hello")
    with pair.serving("south"):
        until(lambda: pair.ok("south", "engine", "status")["unheard"])
        (note,) = [one for one in pair.ok("south", "engine", "doctor")["notes"] if " of north" in one]
        said = pair.program.run("engine", "status", "--dir", south).stdout
    assert f"waits      {note}\n" in said
    what, _, command = note.partition(": agent-mailbox ")
    assert "until you say for whom it speaks" in what
    assert pair.program.run(*command.split()).rc == 0
    assert pair.ok("south", "engine", "status")["unheard"] == []
