"""The lines of hooks about tasks and notes: told once, where they matter, and to nobody else."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.console.notifier import Notifier
from agent_mailbox.control import task_offers
from agent_mailbox.control_plane import task_reports
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.proofs import STEWARD, of_session
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.files import system
from agent_mailbox.store.files.board import LONG
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log.log import HeldLog
from agent_mailbox.upkeep import steward
from tests.helpers import HEARTBEATS, MESSAGES

if TYPE_CHECKING:
    from tests.helpers import Post

DYING = """
import os, signal, sys
from agent_mailbox.control_plane import task_reports
from agent_mailbox.core.proofs import of_session
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.log.log import HeldLog
from agent_mailbox.store.log.stamps import StampFiles
place = HeldLog if sys.argv[2] == "_write" else StampFiles
setattr(place, sys.argv[2], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
task_reports.tell(OpenMailbox(sys.argv[1], prove=of_session), "lee")
"""
"""Looks for what there is to tell, and is killed at a step of writing it."""
WORKER = ("--role", "worker", "--lead", "lee", "--tags", "project:app")


@pytest.fixture
def team(post: Post) -> Post:
    """A lead and two workers."""
    post.register("lee")
    for worker in ("ann", "ben"):
        post.register(worker, *WORKER)
    return post


def hears(post: Post, who: str, event: str = "UserPromptSubmit", **said: str) -> str:
    """The text that a hook of a session shows its model."""
    call = {"session_id": who, "hook_event_name": event, **said}
    result = post.call("hook", event, stdin=json.dumps(call))
    assert result.rc == 0, result
    return str(result.json["hookSpecificOutput"]["additionalContext"]) if result.stdout else ""


def is_asked(post: Post, who: str) -> bool:
    """Whether the shim asks at the session's next hook: no stamp spares it that."""
    return not post.file(f".cache/quiet/{who}").exists()


def add(post: Post, task_id: str, title: str, to: str = "role:worker") -> None:
    """The lead adds a task."""
    post.ok("task", "add", "--to", to, "--title", title, "--task-id", task_id, "--session", "lee")


def test_open_tasks_are_told_once_as_a_turn_begins(team: Post) -> None:
    """A worker without a task hears of the oldest and how many there are. Mail in between, and a check, lose nothing.
    Who holds one hears nothing, until it holds none. A task that is opened again is news. Who ends one is told of the
    next by the answer, and then by no hook; that task wakes nobody else either."""
    assert hears(team, "ann") == ""
    assert not is_asked(team, "ann")
    add(team, "task-a", 'Fix "the" filter')
    assert is_asked(team, "ann")
    add(team, "task-b", "Second")
    team.check("ann")
    assert hears(team, "ann", "PostToolUse") == ""
    line = "2 tasks open to you; next: task-a \"Fix 'the' filter\": `"
    assert line in hears(team, "ann")
    assert hears(team, "ann") == hears(team, "lee") == ""
    assert line in hears(team, "ben")
    for who, which in (("ben", "task-a"), ("ann", "task-b")):
        team.ok("task", "claim", which, "--session", who)
    add(team, "task-c", "Third")
    assert hears(team, "ben") == ""
    team.ok("task", "drop", "task-a", "--reason", "ill", "--session", "ben")
    assert "2 tasks open to you; next: task-a" in hears(team, "ben")
    team.ok("task", "claim", "task-c", "--session", "ben")
    add(team, "task-d", "Fourth")
    answer = team.call("task", "done", "task-b", "--summary", "s", "--session", "ann").stdout
    assert "2 tasks open to you; next: task-a" in answer
    assert hears(team, "ann") == ""
    desk = OpenMailbox(str(team.box), prove=of_session)
    assert not task_offers.wakes(desk, "ann")
    with open("/dev/full", "wb") as full:  # an answer that nobody saw told nobody
        assert team.run("task", "done", "task-c", "--summary", "s", "--session", "ben", stdout=full).rc == 0
    assert task_offers.wakes(desk, "ben")
    assert not task_offers.wakes(desk, "ben")
    assert "next: task-a" in hears(team, "ben")
    team.ok("task", "claim", "task-a", "--session", "ann")
    assert hears(team, "ben") == ""
    assert not is_asked(team, "ben")
    team.ok("task", "drop", "task-a", "--reason", "ill", "--session", "ann")
    assert is_asked(team, "ben")


def test_who_holds_a_task_no_more_is_told_of_those_that_are_open(team: Post) -> None:
    """Its task may be done, or cancelled by its lead. A check of mail before its next turn loses nothing. Who still
    holds one, or whose id begins alike, is asked nothing. Who may claim what waited for it is told of that."""
    team.register("ann-2", *WORKER)
    for number, who in enumerate(("ann", "ben", "ann-2")):
        add(team, f"task-{number}", "T", who)
    add(team, "task-10", "Geprüft")
    for number, after in ((20, "task-1"), (21, "task-2")):
        words = ("--title", "Danach", "--task-id", f"task-{number}", "--after", after, "--session", "lee")
        team.ok("task", "add", "--to", "role:später", *words)
    team.register("cat", "--role", "später")
    team.check("cat")
    hears(team, "cat")
    assert not is_asked(team, "cat")
    for who in ("ann", "ben", "ann-2"):
        team.check(who)
        hears(team, who)
        assert hears(team, who) == ""
        assert not is_asked(team, who)
    team.ok("task", "cancel", "task-0", "--session", "lee")
    team.check("ann")
    assert [is_asked(team, who) for who in ("ann", "ben", "ann-2")] == [True, False, False]
    assert '1 task open to you; next: task-10 "Geprüft"' in hears(team, "ann")
    with open("/dev/full", "wb") as full:
        assert team.run("task", "done", "task-1", "--summary", "s", "--session", "ben", stdout=full).rc == 0
    team.check("ben")
    team.check("cat")
    assert [is_asked(team, who) for who in ("ben", "cat", "ann-2")] == [True, True, False]
    assert '1 task open to you; next: task-20 "Danach"' in hears(team, "cat")
    assert '1 task open to you; next: task-10 "Geprüft"' in hears(team, "ben")
    assert hears(team, "ann-2") == ""


def test_what_a_session_holds_is_told_where_it_lost_its_context(team: Post) -> None:
    """It hears the phase of its task. A session whose tags have notes hears their titles, within sixty tokens."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.ok("task", "progress", "task-a", "--phase", "verifying", "--session", "ann")
    for source in ("compact", "resume"):
        told = hears(team, "ann", "SessionStart", source=source)
        assert 'task-a (claimed, verifying): "First"' in told
        assert "task done TASK" in told
    notes = [
        team.ok("note", "add", "--title", f"Note {n} | {'x' * 30}", "--session", "ben")["note"]["id"] for n in range(9)
    ]
    team.send("lee", "ben", f"see {notes[2]}")
    told = hears(team, "ben", "SessionStart", source="startup")
    line = next(one for one in told.splitlines() if one.startswith("Notes ("))
    assert len(line) <= 4 * 60 + 20
    assert line.index(notes[2]) < line.index(notes[8])
    assert notes[0] not in line
    assert "more" in line
    assert "Notes (" not in hears(team, "lee", "SessionStart", source="startup")


def test_the_end_or_the_silence_of_a_holder_is_told_once(team: Post) -> None:
    """The lead hears it from whoever looks first, and from nobody a second time."""
    add(team, "task-a", "First")
    add(team, "task-b", "Second")
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.ok("task", "claim", "task-b", "--session", "ben")
    hears(team, "ben")
    team.file("config.toml").write_text("[tasks]\nsilent = 0.0001\n")
    team.ok("roster", "retire", "ann")
    for _ in range(2):
        team.ok("task", "list", "--session", "lee")
        team.ok("steward", "run")
    told = [m["content"] for m in team.objects(MESSAGES) if m.get("type") == "notification"]
    assert len(told) == 2
    assert sum("its holder ended; the task is open again" in one for one in told) == 1
    assert sum("no progress and no turn of its holder" in one for one in told) == 1
    shown = team.call("check", "--session", "lee").stdout
    assert "task-a (First), held by ann: its holder ended" in shown


def test_what_is_told_again_a_month_later_is_another_message(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder of a task ended, and nobody took it. The steward forgets what it told, so the lead is reminded, and
    the doctor finds no id twice."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.ok("roster", "retire", "ann")
    team.ok("steward", "run")
    later = time.time_ns() + LONG * 1_000_000
    monkeypatch.setattr(system, "time_ns", lambda: later)
    for _ in range(2):
        team.ok("steward", "run", "--trust-clock")
    told = [m["id"] for m in team.objects(MESSAGES) if "its holder ended" in m["content"]]
    assert len({*told}) == len(told) == 2
    assert team.call("doctor").rc == 0


def test_the_steward_tells_of_a_holder_whose_end_it_records_itself(team: Post) -> None:
    """The run that retires a holder tells so: its lead does not wait for the next run."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    for days, ended in ((30, 0), (300, 1)):
        at = time.time_ns() // 1_000_000 + days * DAY
        os.utime(team.file(HEARTBEATS, "lee"), (at / 1000, at / 1000))
        steward.run_upkeep(Mailbox(str(team.box), clock=lambda at=at: at, prove=lambda _: STEWARD), trust_clock=True)
        told = [m for m in team.objects(MESSAGES) if "its holder ended" in m["content"]]
        assert len(told) == ended


def test_whoever_looks_first_tells_that_a_holder_is_silent(team: Post) -> None:
    """The lead's hook, the console's thread, the steward and `task list` are alike. Progress ends a silence; the next
    one is told again."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.file("config.toml").write_text("[tasks]\nsilent = 0.000001\n")
    console = Notifier(str(team.box))
    looks = (
        lambda: hears(team, "lee"),
        console._look_once,
        lambda: team.ok("steward", "run"),
        lambda: team.ok("task", "list", "--session", "lee"),
    )
    for number, look in enumerate(looks, 1):
        for _ in range(2):
            look()
        told = [m["content"] for m in team.objects(MESSAGES) if m.get("type") == "notification"]
        assert len(told) == number
        assert "task-a (First), held by ann: no progress and no turn of its holder" in told[-1]
        team.ok("task", "progress", "task-a", "--phase", "verifying", "--session", "ann")


def test_a_turn_and_a_step_are_each_a_sign_of_a_holder(team: Post) -> None:
    """A holder is silent a quarter of an hour after the later of both: its last turn and its last step."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    heart = team.file(HEARTBEATS, "ann")
    begun = heart.stat().st_mtime

    def told(minutes: float, turn: float) -> list[str]:
        os.utime(heart, (begun + turn * 60,) * 2)
        desk = OpenMailbox(str(team.box), clock=lambda: round((begun + minutes * 60) * 1000), prove=of_session)
        task_reports.tell(desk, "lee")
        return [m["content"] for m in team.objects(MESSAGES) if m.get("type") == "notification"]

    assert told(14, turn=-60) == told(24, turn=10) == []
    (said,) = told(26, turn=10)
    assert "no progress and no turn of its holder for 16 minutes" in said


def test_what_could_not_be_told_is_told_by_whoever_looks_next(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a lock that another process keeps, a full disk nor a kill takes the notice away. Nor is it told twice."""
    add(team, "task-a", "First")
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.ok("roster", "retire", "ann")

    def fill_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def look(wait: float = 1.0) -> int:
        task_reports.tell(OpenMailbox(str(team.box), wait=wait, prove=of_session), "lee")
        return len({m["id"] for m in team.objects(MESSAGES) if m.get("type") == "notification"})

    def look_and_die_at(step: str) -> None:
        assert team.python(DYING, team.box, step).rc == -signal.SIGKILL

    with FileLock(str(team.file(MESSAGES))):
        assert look(wait=0.0) == 0
    with monkeypatch.context() as patch:
        patch.setattr(HeldLog, "_write", fill_disk)
        assert look() == 0
    look_and_die_at("_write")
    look_and_die_at("announce")
    assert look() == 1
    told = team.lines(MESSAGES)
    assert look() == 1
    assert team.lines(MESSAGES) == told


def test_a_task_wakes_one_idle_session(team: Post) -> None:
    """One of two doorbells rings, once for each time that the task is opened; for one that holds a task none does."""

    def woken() -> list[str]:
        box = OpenMailbox(str(team.box))
        return [who for who in ("ann", "ben") if box.logs.stamp_files.is_offered(who) and task_offers.wakes(box, who)]

    assert woken() == []
    add(team, "task-a", "First")
    assert woken() == ["ann"]
    assert woken() == []
    team.ok("task", "claim", "task-a", "--session", "ann")
    team.ok("task", "drop", "task-a", "--reason", "ill", "--session", "ann")
    assert woken() == ["ann"]
    team.ok("task", "claim", "task-a", "--session", "ann")
    add(team, "task-b", "Second")
    assert woken() == ["ben"]
    assert hears(team, "ben") != ""
    team.ok("task", "claim", "task-b", "--session", "ben")
    assert woken() == []


def test_marks_of_the_dead_and_the_long_past_are_swept(team: Post) -> None:
    """The steward removes what was kept of tasks and work trees for sessions that are dead, and old marks of what was
    told. What the living were told stays."""
    add(team, "task-a", "First")
    assert "task-a" in hears(team, "ann")
    assert "task-a" in hears(team, "ben")
    (marks,) = (team.user_state / "tasks").iterdir()
    beside = team.user_state / "beside"
    beside.mkdir()
    for place, name in ((beside, "ann"), (beside, "ben"), (beside, "cat"), (marks, ".woken-new"), (marks, ".open-old")):
        (place / name).touch()
    os.utime(marks / ".open-old", (0, 0))
    os.utime(beside / "cat", (0, 0))
    team.ok("roster", "retire", "ann")
    team.ok("steward", "run")
    assert {path.name for path in beside.iterdir()} == {"ben"}
    names = {path.name for path in marks.iterdir()}
    assert {".told-ben", ".woken-new"} <= names
    assert {".told-ann", "ann", ".open-old"}.isdisjoint(names)
