"""The task board: each task where its state says, and given from the page once."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.locks import team_lock
from agent_mailbox.store.locks.lock import FileLock

if TYPE_CHECKING:
    from tests.console.conftest import Running


def column(page: str, state: str) -> str:
    return page.partition(f'aria-labelledby="h-{state}"')[2].partition("</section>")[0]


def test_each_task_stands_where_its_worker_has_brought_it(running: Running) -> None:
    """Untrusted words stay words; what it made and what went wrong is told; a filter hides other leads' tasks."""
    post = running.post
    post.register("ada", "--name", "Ada")
    post.register("bo", "--name", "Bo", "--lead", "ada", "--tags", "project:inscription")
    ids = {}
    for title, worker in (("begin <b>", "ada"), ("build", "bo"), ("wait", "bo"), ("end", "bo")):
        told = post.ok("control", "request", "task", worker, "--title", title, "--session", "user")
        ids[title] = str(told["request"]["id"])
    said = ("--session", "bo", "--body", "so far <i>")
    post.ok("control", "report", ids["build"], "--phase", "implementing", *said)
    post.ok("control", "report", ids["wait"], "--phase", "blocked", *said)
    post.ok("control", "report", ids["end"], "--phase", "done", "--artifact", "x.tar", "--error", "slow", *said)
    page = running.ask("/tasks").text
    for title, state in (("begin <b>", "assigned"), ("build", "claimed"), ("wait", "blocked"), ("end", "done")):
        assert ids[title] in column(page, state)
        assert page.count(f'data-key="{ids[title]}"') == 1
    assert "begin &lt;b&gt;" in page
    assert "<b>" not in page
    assert "so far &lt;i&gt;" in column(page, "blocked")
    assert "made <code>x.tar</code>" in column(page, "done")
    assert "went wrong: slow" in column(page, "done")
    for params in ("lead=ada", "tag=project:inscription"):
        page = running.ask(f"/tasks?{params}").text
        assert (ids["begin <b>"] in page, ids["end"] in page) == (False, True)


def test_a_task_whose_agent_died_says_so_by_name(running: Running) -> None:
    """Its id alone would tell nobody whom the task was for, nor that it waits for somebody else."""
    post = running.post
    post.register("4af25640-0000-4000-8000-000000000001", "--name", "Ada")
    post.ok("task", "add", "--to", "Ada", "--title", "Plate 11", "--session", "user")
    post.ok("roster", "retire", "Ada")
    page = column(running.ask("/tasks").text, "open")
    assert "open to Ada (dead)" in page
    assert "4af25640" not in page.partition("</h3>")[2].partition("for you")[0]


def test_a_form_that_is_sent_twice_gives_one_task(running: Running) -> None:
    """The same form sent twice is one task and one message. With another text it is refused, as without a title, or
    before somebody was chosen."""
    running.post.register("ada", "--name", "Ada", "--tags", "project:app")
    assert {running.form("/tasks", "/assign")["to"], running.form("/notes", "/add-note")["to"]} == {""}
    assert running.form("/tasks?to=ada", "/assign")["to"] == "ada"
    fields = {"to": "ada", "subject": "Plate 11", "body": "read it", "message_id": str(uuid.uuid4()), "plan": "1"}
    told = [running.does("/assign", **fields) for _ in range(2)]
    assert [one["said"] for one in told] == ["Ada has the task “Plate 11”."] * 2
    other = running.does("/assign", **{**fields, "subject": "Plate 12"})
    assert (other["kind"], "was sent before, as the task" in other["said"]) == ("problem", True)
    page = running.ask("/tasks").text
    assert column(page, "assigned").count("Plate 11") == 1
    assert "needs a plan" in column(page, "assigned")
    assert len(running.post.ok("check", "--session", "ada")["messages"]) == 1
    for wrong, said in (
        ({"subject": " "}, "no title"),
        ({"to": "nobody"}, "nobody"),
        ({"to": ""}, "for nobody"),
        ({"message_id": "x"}, "message id"),
    ):
        answer = running.does("/assign", **{**fields, "message_id": str(uuid.uuid4()), **wrong})
        assert (answer["kind"], said in answer["said"]) == ("problem", True)


def test_the_board_gives_takes_back_and_cancels(running: Running) -> None:
    """A task for a role is open. The person gives it, takes it back, cancels it. A card says what blocks it."""
    post = running.post
    for who in ("ada", "bo"):
        post.register(who, "--role", "worker")
    first = running.does("/assign", to="role:worker", subject="First", message_id=str(uuid.uuid4()))
    assert first["said"] == "The task “First” is open to role:worker."
    (task,) = (one["id"] for one in post.ok("task", "list")["tasks"])
    running.does("/assign", to="role:worker", subject="Second", after=task, message_id=str(uuid.uuid4()))
    page = running.ask("/tasks").text
    assert task in column(page, "open")
    assert f"blocked by <code>{task}</code> First" in column(page, "blocked")
    assert running.submit("/tasks", "/give", {"task": task}, agent="ada")["said"] == "ada has the task “First”."
    assert task in column(running.ask("/tasks").text, "claimed")
    assert running.submit("/tasks", "/give", {"task": task}, agent="bo")["kind"] == "done"
    assert "open again" in running.does("/take-back", task=task, holder="bo")["said"]
    assert "1 more wait for it" in running.does("/cancel-task", task=task, holder="")["said"]
    assert task in column(running.ask("/tasks").text, "cancelled")
    assert running.does("/give", task=task, agent="ada", holder="")["kind"] == "problem"


def test_no_form_of_an_old_page_changes_a_task_that_has_another_holder_by_now(running: Running) -> None:
    """The person decided about the holder that they saw. They are told who holds it now, and nothing is done."""
    post = running.post
    for who in ("ada", "bo", "cy"):
        post.register(who, "--name", who.title(), "--role", "worker")
    running.does("/assign", to="ada", subject="Plate 9", message_id=str(uuid.uuid4()))
    (task,) = (one["id"] for one in post.ok("task", "list")["tasks"])
    old = running.form("/tasks", "/give", {"task": task}, agent="cy")
    post.ok("task", "claim", task, "--for", "bo", "--session", "user")
    for path in ("/give", "/take-back", "/cancel-task"):
        told = running.does(path, **old)
        assert (told["status"], "Bo holds it now" in told["said"]) == (409, True), told
        assert "an earlier version" in running.does(path, task=task, agent="cy")["said"]
    assert "nobody is named" in running.does("/give", task=task, holder="bo")["said"]
    assert running.post.ok("task", "show", task)["task"]["holder"] == "bo"
    assert running.submit("/tasks", "/give", {"task": task}, agent="cy")["said"] == "Cy has the task “Plate 9”."


def test_a_refused_form_of_a_task_is_open_again_with_its_choice(running: Running) -> None:
    """Without script, whom one chose for a task is still chosen after the refusal."""
    post = running.post
    for who in ("ada", "bo"):
        post.register(who, "--name", who.title())
    running.does("/assign", to="ada", subject="Plate 9", message_id=str(uuid.uuid4()))
    (task,) = (one["id"] for one in post.ok("task", "list")["tasks"])
    fields = running.form("/tasks", "/give", {"task": task}, agent="bo") | {"holder": "bo"}
    running.ask("/give", fields)
    assert running.form("/tasks", "/give", {"task": task})["agent"] == "bo"


def test_the_board_shows_a_served_team_s_tasks(running: Running) -> None:
    """They stand behind ours while a bridge serves their team, marked as the client's. No form of ours changes one."""
    tag = "team:my-app"
    for number, said in (("1", {"status": "in_progress", "owner": "<b>ann"}), ("2", {"blockedBy": ["1"]}), ("3", {})):
        path = running.post.home / ".claude/tasks/my-app" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"subject": f"Part {number}", "status": "pending", **said}))
    config = running.post.home / ".claude/teams/my-app/config.json"
    config.parent.mkdir(parents=True)
    config.write_text("{}")
    assert "Part 1" not in running.ask("/tasks").text
    place = team_lock.place(OpenMailbox(str(running.post.box)).logs, tag)
    Path(place).parent.mkdir(exist_ok=True)
    lock = FileLock(place, team_lock.ASKED).take()
    try:
        page = running.ask("/tasks").text
        assert "<p>&lt;b&gt;ann <span" in column(page, "claimed")
        assert f"blocked by <code>{tag}/1</code> Part 1" in column(page, "blocked")
        assert "Claude Code's own" in column(page, "open")
        assert "Give, take back" not in page
        assert "Part 3" in running.ask(f"/tasks?tag={tag}").text
        assert running.does("/cancel-task", task=f"{tag}/1")["kind"] == "problem"
    finally:
        lock.release()


def test_notes_have_a_page(running: Running) -> None:
    """The person adds, replaces and drops notes; a form that is sent twice adds one. Another's words stay words."""
    post = running.post
    post.register("ada", "--tags", "project:app")
    note = post.ok("note", "add", "--title", "Use <b>redis", "--body", "<i>now", "--session", "ada")["note"]["id"]
    page = running.ask("/notes").text
    assert "Use &lt;b&gt;redis" in page
    assert "<pre>&lt;i&gt;now</pre>" in page
    form = running.form("/notes", "/add-note", to="project:app", subject="Use valkey", note=note)
    told = [running.does("/add-note", **form)["said"] for _ in range(2)]
    assert (told[0] == told[1], "on the board" in told[0]) == (True, True)
    page = running.ask("/notes?on=project:app").text
    assert (note in page, "Use valkey" in page) == (False, True)
    (mine,) = (one["id"] for one in post.ok("note", "list")["notes"])
    assert "off the board" in running.does("/drop-note", note=mine)["said"]
    assert "No notes." in running.ask("/notes").text


def test_a_note_reverses_no_line_of_its_page(running: Running) -> None:
    """The text of a note has its unseen characters as escapes, as a message has."""
    running.post.register("ada", "--name", "Ada", "--tags", "project:app")
    running.does("/add-note", to="project:app", subject="Ports", body="use \u202e8080\x1b[31m\nand 8081")
    page = running.ask("/notes").text
    assert "use \\u202e8080\\x1b[31m\nand 8081" in page
    assert "\u202e" not in page


def test_the_board_grows_with_its_tasks_and_not_with_the_agents_of_each(running: Running) -> None:
    """The agents whom one may give a task are on the page once."""
    for who in ("ada", "bo"):
        running.post.register(f"session-{who}", "--name", who.title())
    for title in ("First", "Second", "Third"):
        running.does("/assign", to="Ada", subject=title, message_id=str(uuid.uuid4()))
    page = running.ask("/tasks").text
    assert page.count('<option value="Bo">session-bo</option>') == 1
    assert page.count('list="workers"') == 3
    assert page.count('value="Bo"') == 1
