"""Claims of tasks by many processes at once, and a claimer that is killed: one holder each, none lost."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.control.leasing import Leasing
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.proofs import of_session
from agent_mailbox.errors import MailboxError, Refused
from agent_mailbox.mailbox.open_mailbox import OpenMailbox, wall_clock
from agent_mailbox.store.files.edits import Edits
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from agent_mailbox.control.task_views import TaskView
    from agent_mailbox.core.control.leases import Lease
    from agent_mailbox.core.control.tasks import Task
    from tests.helpers import Post

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
