"""Tasks: added, claimed by one, reported on, given back, cancelled, and waited for, also in races of many processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.control.leasing import Leasing
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.control_plane import task_reports
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.proofs import of_session
from agent_mailbox.errors import Busy, MailboxError, Refused
from agent_mailbox.mailbox.open_mailbox import OpenMailbox, wall_clock
from agent_mailbox.store.files.edits import Edits
from tests import helpers
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, READS

if TYPE_CHECKING:
    from agent_mailbox.control.task_views import TaskView
    from agent_mailbox.core.control.leases import Lease
    from agent_mailbox.core.control.tasks import Task
    from tests.helpers import Post, Result


@pytest.fixture
def team(post: Post) -> Post:
    """A lead, two workers that it leads, and one with another tag."""
    post.register("lee")
    for worker in ("ann", "ben"):
        post.register(worker, "--role", "worker", "--lead", "lee")
    post.register("cat", "--tags", "project:x")
    return post


def added(post: Post, task_id: str, to: str = "role:worker", *more: str, by: str = "lee") -> dict[str, Any]:
    """Add a task under an id."""
    words = ("task", "add", "--to", to, "--title", f"Do {task_id}", "--task-id", task_id, "--session", by)
    found: dict[str, Any] = post.ok(*words, *more)["task"]
    return found


def does(post: Post, who: str, *words: str) -> dict[str, Any]:
    """Take a step that succeeds."""
    found: dict[str, Any] = post.ok("task", *words, "--session", who)["task"]
    return found


def refused(post: Post, who: str, *words: str) -> str:
    """Take a step that the state refuses; returns its error's code and words, and its hint."""
    result: Result = post.call("task", *words, "--session", who, "--json")
    assert result.rc == 1, result
    error = result.json["error"]
    assert error["hint"]
    return f"{error['code']}: {error['message']}; {error['hint']}"


def test_a_program_is_offered_what_it_may_do_and_told_why_there_is_nothing(team: Post) -> None:
    """It may give a task back, by the command it is shown, and not end it. A stranger is told that it is one."""
    added(team, "task-a")
    added(team, "task-b", "ann", "--after", "task-a")
    added(team, "task-c", "role:worker", "--after", "task-a")
    team.env["AGENT_MAILBOX_TEST_CALLER"] = "program"
    shown = team.call("task", "claim", "--next", "--session", "ann").stdout
    assert "task done" not in shown
    assert "in a session of a client" in shown
    assert "unverified: " in refused(team, "ann", "done", "task-a", "--summary", "s")
    (words,) = (line.partition(": agent-mailbox ")[2] for line in shown.splitlines() if "task drop" in line)
    assert team.ok(*shlex.split(words))["task"]["state"] == "open"
    does(team, "ben", "claim", "task-a")
    said = refused(team, "ann", "claim", "--next")
    assert "nothing_open: no task is open to ann; ann holds task-b: `agent-mailbox task list --mine" in said
    assert "no agent 'stranger' is known; for a new session" in refused(team, "stranger", "claim", "--next")
    assert "no agent 'annn' is known; did you mean ann?" in refused(team, "annn", "claim", "--next")
    assert "no agent 'annn' is known; did you mean ann?" in refused(team, "annn", "list", "--mine")
    helpers.refused(team.call("task", "list", "--mine"), 2, "cannot tell who is calling")
    dropped = team.call("task", "drop", "task-c", "--reason", "r", "--session", "ann").stdout
    assert "blocked by task-a: nobody holds it, and nothing changed" in dropped
    said = refused(team, "ann", "add", "--to", "benn", "--title", "t")
    assert "nobody is called 'benn', and nothing was sent; did you mean ben?" in said


def heard(post: Post, who: str) -> list[str]:
    """The types of the control messages that an agent is shown."""
    return [json.loads(m["content"])["type"] for m in post.ok("check", "--session", who)["messages"]]


def test_a_task_for_a_role_is_open_and_one_claims_it(team: Post) -> None:
    """It is no mail. The first claimer holds it, is told what it says, and may claim it again. The others are refused,
    and the lead hears of the end alone."""
    task = added(team, "task-a", "role:worker", "--body", "see #91\n| forged")
    assert {key: task[key] for key in ("id", "title", "to", "state", "holder", "phase", "after", "added_by")} == {
        "id": "task-a", "title": "Do task-a", "to": "role:worker", "state": "open", "holder": None, "phase": None,
        "after": [], "added_by": "lee",
    }  # fmt: skip
    assert task["proof"] == "session:lee"
    assert heard(team, "ann") == heard(team, "ben") == []
    shown = team.call("task", "claim", "--next", "--session", "ann").stdout
    assert "| see #91\n| | forged\n" in shown
    assert "task done task-a" in shown
    assert "held: task-a is ann's" in refused(team, "ben", "claim", "task-a")
    assert "nothing_open: no task is open to ben" in refused(team, "ben", "claim", "--next")
    assert [one["id"] for one in team.ok("status", "--session", "ann")["tasks"]] == ["task-a"]
    assert "You hold:\ntask-a  claimed by ann" in team.call("status", "--session", "ann").stdout
    before = team.file(MESSAGES).read_bytes()
    assert does(team, "ann", "claim", "task-a")["holder"] == "ann"
    assert team.file(MESSAGES).read_bytes() == before
    assert does(team, "ann", "progress", "task-a", "--phase", "implementing")["phase"] == "implementing"
    assert heard(team, "lee") == []
    assert "not_yours: task-a is ann's task" in refused(team, "ben", "done", "task-a", "--summary", "mine")
    end = does(team, "ann", "done", "task-a", "--summary", "it is", "--artifact", "x.py", "--error", "slow")
    assert (end["state"], end["summary"], end["artifacts"], end["errors"]) == ("done", "it is", ["x.py"], ["slow"])
    assert heard(team, "lee") == ["task_completed"]
    assert team.ok("task", "list")["tasks"] == []
    assert [one["id"] for one in team.ok("task", "list", "--all")["tasks"]] == ["task-a"]
    types = [step["type"] for step in team.ok("task", "show", "task-a")["task"]["history"]]
    assert types == ["task_assignment", "task_claim", "task_progress", "task_completed"]


def test_a_task_that_is_added_again_is_sent_to_nobody_again(team: Post) -> None:
    """A retry with the same words is the same task, whatever its adder is called by now. Other words under its id are
    refused, a request's as well, and no line is written."""
    first = added(team, "task-a", "ben", "--body", "see #91")
    assert heard(team, "ben") == ["task_assignment"]
    team.ok("roster", "update", "--session-id", "lee", "--name", "Lee")
    ask = ("control", "request", "plan", "--session", "ann", "--request-id")
    asked = team.ok(*ask, "plan-1", "--body", "p")["request"]
    before = team.file(MESSAGES).read_bytes()
    assert added(team, "task-a", "ben", "--body", "see #91") == first
    assert team.ok(*ask, "plan-1", "--body", "p")["request"] == asked
    others = ("ben", "--title", "Do task-a"), ("role:worker", "--title", "Do task-a", "--body", "see #91")
    for to, *words in others:
        again = ("add", "--task-id", "task-a", "--to", to, *words)
        assert "another task has this id; leave the id out for a new one; `agent-" in refused(team, "lee", *again)
    for known in ("plan-1", "task-a"):
        assert f"{known}: another " in team.call(*ask, known, "--body", "q").stderr
    assert team.file(MESSAGES).read_bytes() == before


def test_what_is_over_is_not_begun_again_by_a_retry(team: Post) -> None:
    """A job that adds a task under one id each night finds it done, in the archive as well; so it is with a request."""
    add = ("task", "add", "--to", "ann", "--title", "t", "--task-id", "task-a", "--session", "lee")
    ask = ("control", "request", "plan", "--body", "p", "--session", "ann", "--request-id", "plan-1")
    for words in (add, ask):
        team.ok(*words)
    does(team, "ann", "claim", "task-a")
    does(team, "ann", "done", "task-a", "--summary", "s")
    team.ok("control", "approve", "plan-1", "--session", "lee")
    for who in ("ann", "lee"):
        heard(team, who)
    team.ok("steward", "run", "--max-live", "0")
    assert team.objects(MESSAGES) == []
    assert team.ok(*add)["task"]["state"] == "done"
    assert team.ok(*ask)["request"]["state"] == "approved"
    assert "another task has this id" in refused(team, "lee", *add[1:5], "other", *add[6:-2])
    assert team.objects(MESSAGES) == []


def test_a_task_waits_for_others(team: Post) -> None:
    """It is blocked until they are done; none waits for itself, or for one that is cancelled or not there. One that
    was cancelled later is named so wherever somebody meets what waits for it."""
    added(team, "task-a")
    assert added(team, "task-b", "ben", "--after", "task-a")["state"] == "blocked"
    assert added(team, "task-c", "project:x", "--after", "task-b")["waits_for"] == ["task-b"]
    for who, step in (("ben", ("claim", "task-b")), ("ben", ("done", "task-b", "--summary", "s"))):
        assert "blocked: task-b waits for task-a" in refused(team, who, *step)
    added(team, "task-h", "ann", "--after", "task-b")
    assert does(team, "ann", "drop", "task-h", "--reason", "r")["state"] == "blocked"
    assert does(team, "lee", "cancel", "task-h")["state"] == "cancelled"
    assert "cancelled" in refused(team, "ann", "drop", "task-h", "--reason", "r")
    again = ("add", "--to", "ann", "--title", "t", "--task-id", "task-e", "--after")
    assert "would wait for itself" in refused(team, "lee", *again, "task-e")
    assert "no task 'task-zz'" in refused(team, "lee", *again, "task-zz")
    does(team, "ann", "claim", "--next")
    does(team, "ann", "done", "task-a", "--summary", "s")
    does(team, "ben", "done", "task-b", "--summary", "s")
    assert does(team, "cat", "claim", "--next")["id"] == "task-c"
    does(team, "lee", "cancel", "task-c")
    assert "cancelled" in refused(team, "lee", *again, "task-c")
    assert added(team, "task-f", "ann", "--after", "task-a")["after"] == []
    added(team, "task-g", "ann", "--after", "task-f")
    assert "task-g waits for it, and stays blocked" in team.call("task", "cancel", "task-f", "--session", "lee").stderr
    assert "task-g  blocked by task-f (cancelled)" in team.call("task", "list", "--session", "ann").stdout
    assert "lee has to cancel it, and to add it again" in refused(team, "ann", "claim", "task-g")
    shown = team.call("task", "show", "task-g", "--session", "lee").stdout
    assert "it never opens, for it waits for task-f: agent-mailbox task cancel task-g" in shown
    assert does(team, "lee", "show", "task-g")["waits_for_cancelled"] == ["task-f"]


def test_whose_task_never_opens_is_told_once(team: Post) -> None:
    """Another agent cancelled what it waits for. That one is told by the answer alone."""
    added(team, "task-a")
    added(team, "task-b", "role:worker", "--after", "task-a", by="cat")
    added(team, "task-c", "role:worker", "--after", "task-a")
    heard(team, "lee")
    for _ in range(2):
        does(team, "lee", "cancel", "task-a")
    told = [one["content"] for one in team.ok("check", "--session", "cat")["messages"]]
    assert len(told) == 1
    assert "task-b (Do task-b) waits for task-a, which is cancelled: it never opens" in told[0]
    assert team.ok("check", "--session", "lee")["messages"] == []


def test_a_task_is_cancelled_though_nobody_can_be_told_of_those_that_wait(
    team: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so, and names them; whoever shows one of them is told, too."""
    added(team, "task-a")
    added(team, "task-b", "role:worker", "--after", "task-a", by="cat")

    def fail(*_: object) -> None:
        raise Busy("the mailbox is locked", "try again")

    monkeypatch.setattr(task_reports, "append_notice", fail)
    desk = Tasking(OpenMailbox(str(team.box)))
    view, waiting = desk.cancel_task("lee", "task-a")
    assert (view.state, waiting) == ("cancelled", ["task-b"])
    assert "never opens" in team.call("task", "show", "task-b", "--session", "cat").stdout


def test_who_added_a_task_may_claim_it(team: Post) -> None:
    """A hint names the command for it. Nobody else may who is not meant."""
    added(team, "task-a", by="cat")
    assert "not_yours" in refused(team, "lee", "claim", "task-a")
    assert does(team, "cat", "claim", "task-a")["holder"] == "cat"
    added(team, "task-b", by="cat")
    assert does(team, "cat", "claim", "task-b", "--for", "cat")["holder"] == "cat"


def test_who_adds_a_task_hears_at_once_that_it_may_wait_for_ever(team: Post) -> None:
    """The command warns of a tag that nobody has. It refuses a time that is past, and the list shows one to come."""
    words = ("task", "add", "--title", "t", "--session", "lee", "--to")
    done = team.call(*words, "project:noone", "--ack-by", "24h")
    assert (done.rc, "nobody who may claim it is there yet: it waits for project:noone" in done.stderr) == (0, True)
    assert "a task is for one agent" in team.call(*words, "ann,ben").stderr
    assert team.ok(*words, "ann,role:worker")["task"]["state"] == "open"
    assert ", wanted by 20" in team.call("task", "list").stdout
    assert team.call(*words, "project:x").stderr == ""
    late = team.call(*words, "project:x", "--ack-by", "2020-01-01")
    assert (late.rc, "--ack-by is past" in late.stderr) == (2, True)


def test_a_task_for_an_agent_that_died_is_shown_so(team: Post) -> None:
    """The list says that its agent is dead. Its adder gives it to another."""
    added(team, "task-a", "ann")
    team.ok("roster", "retire", "ann")
    assert "task-a  open to ann (dead): " in team.call("task", "list", "--session", "ben").stdout
    assert "not_yours" in refused(team, "ben", "claim", "task-a")
    assert does(team, "lee", "claim", "task-a", "--for", "ben")["holder"] == "ben"


def test_a_task_that_is_given_back_is_open_again(team: Post) -> None:
    """Its lead hears once that it is blocked, and once that it is given back. Its holder's end opens it, too."""
    added(team, "task-a")
    does(team, "ann", "claim", "task-a")
    for text in ("no database", "still none"):
        does(team, "ann", "progress", "task-a", "--phase", "blocked", "--message", text)
    assert does(team, "ann", "drop", "task-a", "--reason", "ill")["state"] == "open"
    assert heard(team, "lee") == ["task_progress", "task_dropped"]
    assert team.ok("task", "drop", "task-a", "--session", "ann", "--reason", "ill")["already"] is True
    assert heard(team, "lee") == []
    assert "not_yours: task-a is open: nobody holds it" in refused(team, "ann", "done", "task-a", "--summary", "s")
    does(team, "ben", "claim", "task-a")
    team.ok("roster", "retire", "ben")
    assert [(one["state"], one["holder"]) for one in team.ok("task", "list")["tasks"]] == [("open", None)]
    assert does(team, "ann", "claim", "--next")["holder"] == "ann"
    team.ok("roster", "register", "--session-id", "ben")
    assert "not_yours: task-a is ann's task" in refused(team, "ben", "done", "task-a", "--summary", "s")


def test_a_holder_that_ended_reports_on_its_task_no_more(team: Post) -> None:
    """The dead are refused each step. Who came back claims the task again, and reports then."""
    steps = (
        ("claim", "task-a"), ("claim", "--next"), ("progress", "task-a", "--phase", "verifying"),
        ("done", "task-a", "--summary", "s"), ("done", "task-a", "--summary", "s", "--error", "e"),
        ("drop", "task-a", "--reason", "r"),
    )  # fmt: skip
    added(team, "task-a")
    does(team, "ann", "claim", "task-a")
    team.ok("roster", "retire", "ann")
    before = team.file(MESSAGES).read_bytes()
    for step in steps:
        assert "dead: ann is dead" in refused(team, "ann", *step)
    assert "dead: ann is dead" in refused(team, "lee", "claim", "task-a", "--for", "ann")
    assert "ann is dead" in team.call("handover", "--to", "ben", "--session", "ann").stderr
    team.ok("roster", "register", "--session-id", "ann")
    for step in steps[2:5]:
        assert "not_yours: task-a is open: nobody holds it" in refused(team, "ann", *step)
    assert does(team, "ann", "drop", "task-a", "--reason", "r")["state"] == "open"
    assert team.file(MESSAGES).read_bytes() == before
    assert does(team, "ann", "claim", "task-a")["holder"] == "ann"
    assert does(team, "ann", "done", "task-a", "--summary", "s")["state"] == "done"


def test_who_may_give_take_back_and_cancel_a_task(team: Post) -> None:
    """Its adder, the holder's lead and the person; nobody claims what is not for it."""
    added(team, "task-a")
    assert "not_yours: task-a is for role:worker, not for cat" in refused(team, "cat", "claim", "task-a")
    assert "not_lead: cat may not give" in refused(team, "cat", "claim", "task-a", "--for", "ann")
    assert does(team, "lee", "claim", "task-a", "--for", "ann")["holder"] == "ann"
    assert heard(team, "ann") == ["task_claim"]
    assert does(team, "user", "claim", "task-a", "--for", "cat")["holder"] == "cat"
    assert heard(team, "ann") == heard(team, "cat") == ["task_claim"], "who lost it would go on with it"
    for step in (("drop", "task-a", "--reason", "r"), ("cancel", "task-a")):
        assert "not_yours: task-a is" in refused(team, "ben", *step)
    assert does(team, "lee", "drop", "task-a", "--reason", "r")["state"] == "open"
    does(team, "lee", "claim", "task-a", "--for", "ann")
    assert does(team, "user", "cancel", "task-a")["state"] == "cancelled"
    assert heard(team, "ann") == ["task_claim", "task_cancelled"], "who holds it would go on with it"
    assert "decided: task-a is cancelled" in refused(team, "ann", "claim", "task-a")
    team.register("lee-2", "--lead", "lee")
    added(team, "task-b", "lee-2")
    does(team, "lee-2", "claim", "task-b")
    before = team.file(READS).read_bytes()
    does(team, "lee", "cancel", "task-b")
    assert team.file(READS).read_bytes() == before, "it is no mail to itself"


def test_a_task_s_lease_ends_by_whatever_step_its_holder_loses_the_task(team: Post) -> None:
    """The step may be the adder's or the person's, who may end no lease. A lease that only names a task stays.
    So does the one for another task with the same file."""
    subprocess.run(["git", "init", "-q", str(team.cwd)], check=True)
    (team.cwd / "a.py").write_text("x")
    added(team, "task-z", "ben", by="cat")
    team.ok("lease", "take", "b.py", "--note", "task-z", "--session", "ann")
    steps = (
        "cat drop --reason r", "cat cancel", "user cancel", "ann drop --reason r", "ann done --summary s",
        "cat claim --for ben", "lee drop --reason r",
    )  # fmt: skip
    for number, step in enumerate(steps):
        task, (who, *words) = f"task-{number}", step.split()
        added(team, task, "role:worker", "--body", "see a.py", by="cat")
        assert team.ok("task", "claim", task, "--session", "ann")["leased"] == ["a.py"], step
        assert team.call("lease", "check", "a.py", "--session", "ben").rc == 1, step
        does(team, who, words[0], task, *words[1:])
        assert team.call("lease", "check", "a.py", "--session", "ben").rc == 0, step
        assert [one["note"] for one in team.ok("lease", "list")["leases"]] == ["task-z"], step
    assert team.ok("task", "claim", "task-0", "--session", "ann")["leased"] == ["a.py"]
    added(team, "task-y", "ann", "--body", "a.py, too")
    does(team, "ann", "claim", "task-y")
    does(team, "ann", "done", "task-y", "--summary", "s")
    assert [one["note"] for one in team.ok("lease", "list")["leases"]] == ["task-z", "task-0"]
    team.ok("handover", "--to", "ben", "--session", "ann")
    assert [one["note"] for one in team.ok("lease", "list")["leases"]] == ["task-z"]


def test_the_lead_of_its_holder_cancels_a_task_that_another_added(team: Post) -> None:
    """The adder does it, too, and no peer. While nobody holds it, or another's worker does, it is not that lead's."""
    team.register("ann-2", "--role", "worker")
    for number, to in enumerate(("ann", "ben", "ann-2", "role:worker", "ann", "role:worker")):
        added(team, f"task-{number}", to, by="cat")
    added(team, "task-6", by="lee")
    for peer in ("ann", "ben", "ann-2"):
        for number in range(7):
            assert "not_yours" in refused(team, peer, "cancel", f"task-{number}")
    assert ["not_yours" in refused(team, "lee", "cancel", f"task-{number}") for number in (2, 3)] == [True, True]
    does(team, "ann", "claim", "task-3")
    for number, who in ((0, "lee"), (1, "lee"), (3, "lee"), (6, "lee"), (2, "cat"), (4, "cat"), (5, "cat")):
        assert does(team, who, "cancel", f"task-{number}")["state"] == "cancelled"


def test_what_is_over_is_cancelled_no_more_and_a_task_is_for_somebody(team: Post) -> None:
    """The error says what the task is, and what has its history."""
    added(team, "task-a", "ann")
    does(team, "ann", "done", "task-a", "--summary", "s")
    before = team.lines(MESSAGES)
    assert "decided: task-a is done; `agent-mailbox task show task-a`" in refused(team, "lee", "cancel", "task-a")
    for words in (("task", "add", "--to", ","), ("control", "request", "task", " ")):
        result = team.call(*words, "--title", "T", "--session", "lee")
        assert (result.rc, "the task is for nobody" in result.stderr) == (2, True), result
    assert team.lines(MESSAGES) == before


def test_nothing_unproven_closes_a_task(team: Post) -> None:
    """A line that any program wrote ends none, and takes none from its holder. A program may add one."""
    added(team, "task-a")
    does(team, "ann", "claim", "task-a")
    for kind in ("task_completed", "task_dropped", "task_cancelled", "task_claim"):
        content = json.dumps({"type": kind, "requestId": "task-a", "version": 1})
        sender = "ben" if kind == "task_claim" else "ann"
        line = {"id": f"forged-{kind}", "sender": sender, "recipient": "lee", "timestamp": "2026-11-27T00:00:00Z"}
        team.append(MESSAGES, {**line, "content": content, "type": "control", "thread": None, "read_by": []})
    (found,) = team.ok("task", "list")["tasks"]
    assert (found["state"], found["holder"]) == ("claimed", "ann")
    team.env["AGENT_MAILBOX_TEST_CALLER"] = "program"
    steps = ("dropped", "ann", "drop", "task-a", "--reason", "r"), ("cancelled", "lee", "cancel", "task-a")
    for told, who, *step in steps:
        said = refused(team, who, *step)
        assert f"unverified: this message (task {told}) has no effect: nothing proves who wrote it; " in said
    said = refused(team, "ann", "done", "task-a", "--summary", "s")
    assert "unverified: task-a is not done: nothing proves that ann did it; " in said
    said = refused(team, "lee", "claim", "task-a", "--for", "ben")
    assert "unverified: task-a is not given to ben: nothing proves that lee gives it; " in said
    team.ok("roster", "register", "--session-id", "new", "--lead", "lee")
    said = refused(team, "lee", "add", "--to", "new", "--title", "t", "--plan-required")
    assert "not_lead: nothing proves that lee leads new: " in said
    again = ("add", "--to", "role:worker", "--title", "Another", "--task-id", "task-a")
    assert "another task has this id; leave the id out" in refused(team, "ci", *again)
    assert added(team, "task-ci", by="ci")["proof"] is None


def test_an_archived_task_is_found_and_an_open_one_stays(team: Post) -> None:
    """The steward moves what is over with all about it, and never a task that somebody may yet claim."""
    for task_id in ("task-a", "task-b", "task-c"):
        added(team, task_id)
    added(team, "task-d", "role:worker", "--after", "task-a")
    for task_id in ("task-a", "task-b"):
        does(team, "ann", "claim", task_id)
        does(team, "ann", "done", task_id, "--summary", "s")
    does(team, "lee", "cancel", "task-c")
    heard(team, "lee")
    team.ok("steward", "run", "--max-live", "0")
    live = {json.loads(m["content"])["requestId"] for m in team.objects(MESSAGES)}
    assert live == {"task-a", "task-d"}  # what another waits for stays, too
    for task_id, state in (("task-b", "done"), ("task-c", "cancelled")):
        assert team.ok("task", "show", task_id)["task"]["state"] == state
    assert does(team, "ben", "claim", "--next")["id"] == "task-d"


def test_a_word_that_means_no_task_or_several_is_told_so(team: Post) -> None:
    """The error names tasks as tasks, and says that a beginning was too short."""
    for one in ("task-a", "task-b"):
        added(team, one)
    assert "'task-' could be 2 tasks" in refused(team, "ann", "show", "task-")
    for kind, step in (("task", "show"), ("note", "drop"), ("lease", "release")):
        told = team.call(kind, step, "t", "--session", "ann").stderr
        assert f"no {kind} 't': a beginning needs 4 characters" in told


def test_a_request_is_no_task_and_an_archived_one_says_what_became_of_it(team: Post) -> None:
    """The word of a task may be any, that of another error, too."""
    team.register("dan")
    for who in ("ann", "dan"):
        asked = ("control", "request", "permission", "--tool", "Bash", "--request-id", f"perm-{who}", "--session", who)
        team.ok(*asked)
    assert "perm-ann is not a task; `agent-mailbox pending --session ann --all`" in refused(
        team, "ann", "show", "perm-ann"
    )
    team.ok("roster", "retire", "dan")
    team.check("user")
    team.ok("steward", "run", "--max-live", "0")
    assert "perm-dan was archived undecided: dan is gone" in refused(team, "ann", "show", "perm-dan")
    assert "no task 'undecided'; " in refused(team, "ann", "show", "undecided")


def test_of_two_tasks_whose_ids_differ_in_case_alone_each_is_found(team: Post) -> None:
    """Any program may add such a task. It hides no other one, and stops nobody who claims the next."""
    for task_id in ("task-a", "Task-A"):
        added(team, task_id)
    assert does(team, "ann", "claim", "--next")["id"] == "task-a"
    assert does(team, "ben", "claim", "Task-A")["holder"] == "ben"
    assert does(team, "ann", "progress", "task-a", "--phase", "verifying")["phase"] == "verifying"
    assert "'TASK-A' could be 2 tasks" in refused(team, "ann", "show", "TASK-A")


def test_a_task_that_is_given_to_another_has_no_phase_of_before(team: Post) -> None:
    """Ann is blocked, and the lead gives her task to Ben: it hears of Ben's block, too."""
    added(team, "task-a")
    does(team, "ann", "claim", "task-a")
    does(team, "ann", "progress", "task-a", "--phase", "blocked", "--message", "no database")
    assert heard(team, "lee") == ["task_progress"]
    assert does(team, "lee", "claim", "task-a", "--for", "ben")["phase"] is None
    does(team, "ben", "progress", "task-a", "--phase", "blocked", "--message", "no key")
    assert heard(team, "lee") == ["task_progress"]


# -- claims by many processes at once, and a claimer that is killed ---------------------------------------------------


CLAIMERS, RACES = 8, int(os.environ.get("AGENT_MAILBOX_TASK_RACES", "8"))


def claim_all(post: Post, who: str, tasks: list[str], begin: int, done: int) -> None:
    """A child: claim every task once the others are there, and tell which were ours."""
    code = 1
    try:
        os.read(begin, 1)
        desk = ControlDesk(OpenMailbox(str(post.box), prove=of_session, wait=60))
        mine = []
        for task in tasks:
            try:
                mine.append(desk.claim_task(who, task).task.id)
            except MailboxError as error:
                if error.code != "held":
                    raise
        os.write(done, (json.dumps(mine) + "\n").encode())
        code = 0
    finally:
        os._exit(code)


def test_of_many_claimers_each_task_has_one(post: Post) -> None:
    """Eight processes claim each of the tasks: together they hold each once, and the log has one claim of it."""
    people = [f"w{n}" for n in range(CLAIMERS)]
    for who in people:
        post.register(who, "--role", "worker")
    lead = ControlDesk(OpenMailbox(str(post.box), prove=of_session))
    wanted = (m.TaskAssignment(title="T", request_id=f"task-{n:03}") for n in range(RACES))
    tasks = [lead.add_task("w0", ("role:worker",), one).task.id for one in wanted]
    (begin, start), (out, done) = os.pipe(), os.pipe()
    children = []
    for who in people:
        child = os.fork()
        if child == 0:
            claim_all(post, who, tasks, begin, done)
        children.append(child)
    os.write(start, b"!" * CLAIMERS)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * CLAIMERS
    os.close(done)
    told = [json.loads(line) for line in os.read(out, 1 << 16).decode().splitlines()]
    assert sorted(task for mine in told for task in mine) == tasks
    written = [json.loads(line["content"]) for line in post.objects(MESSAGES)]
    assert sorted(one["requestId"] for one in written if one["type"] == "task_claim") == tasks
    for fd in (begin, start, out):
        os.close(fd)


def test_a_claimer_that_is_killed_before_it_was_shown_its_task_holds_it(post: Post) -> None:
    """It is shown the task by its next claim, and no other session gets it meanwhile."""
    for who in ("ann", "ben"):
        post.register(who, "--role", "worker")
    words = ("task", "add", "--to", "role:worker", "--title", "T", "--body", "the text", "--task-id", "task-a")
    post.ok(*words, "--session", "ann")
    child = os.fork()
    if child == 0:
        try:
            ControlDesk(OpenMailbox(str(post.box), prove=of_session)).claim_task("ann", "task-a")
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)  # a failure must not go on with the other tests
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert post.call("task", "claim", "--next", "--session", "ben").rc == 1
    for _ in range(2):
        assert "the text" in post.call("task", "claim", "task-a", "--session", "ann").stdout


class Overtaken(Tasking):
    """The lead cancels the task between the look of its holder and that one's step."""

    def _refuse_step(self, view: TaskView, *, even_blocked: bool = False) -> None:
        super()._refuse_step(view, even_blocked=even_blocked)
        Tasking(self.box).cancel_task("lee", view.task.id)


def test_a_step_that_comes_behind_the_cancelling_is_told_so(post: Post) -> None:
    """A holder is told *done* of a task that is done alone: not of one that was cancelled first."""
    for who in ("lee", "ann"):
        post.register(who, "--role", "worker")
    box = OpenMailbox(str(post.box), prove=of_session)
    ours, late = Tasking(box), Overtaken(box)
    steps = {
        "task-a": lambda: late.report("ann", "task-a", "done", "made"),
        "task-b": lambda: late.report("ann", "task-b", "verifying", ""),
        "task-c": lambda: late.drop_task("ann", "task-c", "ill"),
    }
    for task, step in steps.items():
        ours.add_task("lee", ("ann",), m.TaskAssignment(title="T", request_id=task))
        ours.claim_task("ann", task)
        with pytest.raises(Refused, match=f"this came too late for {task}: the task is cancelled"):
            step()
        assert ours.views.task(task).state == "cancelled"


class GivenAway(Tasking):
    """Somebody gives Ann's task to Bea between the look of who acts on it and the act."""

    def _may_give(self, me: str, task: Task, holder: str) -> bool:
        if task.answerer == "ann":
            Tasking(self.box).claim_task("lee", task.id, "bea")
        return super()._may_give(me, task, holder)

    def _living(self, holder: str) -> str:
        Tasking(self.box).claim_task("lee", "task-give", "bea")
        return super()._living(holder)


class Outrun(Tasking):
    """The lead gives the task to Bea right behind the claim of another."""

    def decide_claims(self, act: Any) -> None:
        super().decide_claims(act)
        Tasking(self.box).claim_task("lee", "task-a", "bea")


def test_who_lost_a_task_before_it_heard_that_it_had_it_is_told_who_has_it(post: Post) -> None:
    """A claim that no longer counts is not said to be one."""
    for who in ("lee", "ann", "bea"):
        post.register(who)
    box = OpenMailbox(str(post.box), prove=of_session)
    Tasking(box).add_task("lee", ("all",), m.TaskAssignment(title="T", request_id="task-a"))
    with pytest.raises(Refused, match="bea"):
        Outrun(box).claim_task("ann", "task-a")


def test_an_act_on_a_task_as_it_was_seen_is_refused_if_another_got_it_since(post: Post) -> None:
    """The holder whom one saw is compared under the lock: what happened a moment ago counts, too."""
    for who in ("lee", "ann", "bea", "cy"):
        post.register(who)
    box = OpenMailbox(str(post.box), prove=of_session)
    ours, late = Tasking(box), GivenAway(box)
    acts = {
        "task-give": lambda: late.claim_task("lee", "task-give", "cy", seen="ann"),
        "task-drop": lambda: late.drop_task("lee", "task-drop", "back", seen="ann"),
        "task-cancel": lambda: late.cancel_task("lee", "task-cancel", seen="ann"),
    }
    for task, act in acts.items():
        ours.add_task("lee", ("ann",), m.TaskAssignment(title="T", request_id=task))
        with pytest.raises(Refused, match="the task “T” has changed: bea holds it now"):
            act()
        assert ours.views.task(task).holder == "bea"


def test_of_two_leases_of_one_instant_the_first_in_the_log_counts(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben leases between Ann's look and her lease, in the same millisecond: he has it."""
    project = post.cwd / "p"
    (project / ".git").mkdir(parents=True)
    now = wall_clock()
    box = OpenMailbox(str(post.box), clock=lambda: now, prove=of_session)
    for who in ("ann", "ben"):
        post.register(who)
    ann, ben, look = Leasing(box), Leasing(box), Leasing._refuse_held

    def looks(self: Leasing, *given: Any, **named: Any) -> None:
        look(self, *given, **named)
        if self is ann and not named:
            ben.lease("ben", ["a.py"], str(project), 30)

    monkeypatch.setattr(Leasing, "_refuse_held", looks)
    with pytest.raises(Refused):
        ann.lease("ann", ["a.py"], str(project), 30)
    assert [one.owner for one in ben.leases()] == ["ben"]


def test_who_was_first_keeps_its_lease_though_another_took_one_before_its_second_look(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben looked before Ann leased, and leases before she looks again. He has yet to find hers."""
    project = post.cwd / "p"
    (project / ".git").mkdir(parents=True)
    box = OpenMailbox(str(post.box), prove=of_session)
    for who in ("ann", "ben"):
        post.register(who)
    ann, ben, look = Leasing(box), Leasing(box), Leasing._refuse_held

    def looks(self: Leasing, *given: Any, **named: Any) -> None:
        if self is ben:
            return
        if named:
            ben.lease("ben", ["a.py"], str(project), 30)
        look(self, *given, **named)

    monkeypatch.setattr(Leasing, "_refuse_held", looks)
    ann.lease("ann", ["a.py"], str(project), 30)
    assert [one.owner for one in ann.leases()] == ["ann", "ben"]


def test_a_lease_that_comes_after_the_look_stays_noted(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben leases between the look that finds no lease and the note of it: hooks go on asking."""
    (post.cwd / "p/.git").mkdir(parents=True)
    box = OpenMailbox(str(post.box), prove=of_session)
    post.register("ben")
    ann, ben, look = Leasing(box), Leasing(box), Leasing.leases

    def looks(self: Leasing) -> list[Lease]:
        found = look(self)
        if self is ann:
            monkeypatch.setattr(Leasing, "leases", look)
            ben.lease("ben", ["a.py"], str(post.cwd / "p"), 30)
        return found

    monkeypatch.setattr(Leasing, "leases", looks)
    assert [one.owner for one in ann.settle_leases()] == ["ben"]
    assert Edits(box.logs).is_leased()


def test_who_writes_a_task_a_note_or_a_handover_may_be_named_as_in_send(post: Post) -> None:
    """``--from`` is there what ``--session`` is."""
    post.register("ada", "--tags", "project:x", "--role", "worker")
    for words in (
        ("task", "add", "--to", "role:worker", "--title", "t"),
        ("note", "add", "--on", "project:x", "--title", "n"),
        ("handover", "--to", "role:worker"),
    ):
        said = {option: post.call(*words, option, "ada") for option in ("--from", "--session")}
        assert said["--from"].rc == said["--session"].rc, words
        assert "no such option" not in said["--from"].stderr
    assert post.objects(MESSAGES)[0]["sender"] == "ada"
