"""Watching an agent: told once, by whom it happens to, at no cost to the others."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.claude.shim import ME, SHELLS, Shim
from tests.helpers import MESSAGES, ROSTER, record, refused, stamp

ADA = "ada"


class Desk:
    """A session that a shim guards, and Ada, who watches it."""

    def __init__(self, shim: Shim) -> None:
        self.shim, self.post = shim, shim.post
        self.post.register(ADA, "--name", "Ada")

    def watch(self, *words: object) -> dict[str, Any]:
        """Ada watches; her watch."""
        return dict(self.post.ok("watch", ME, *words, "--session", ADA)["watches"][0])

    def told(self, who: str = ADA) -> list[str]:
        """The reports that wait for a watcher."""
        shown = self.post.call("check", "--session", who)
        assert shown.rc == 0, shown
        return [line for line in shown.stdout.splitlines() if "watch_report" in line]

    def watched(self) -> list[str]:
        """The ids of Ada's watches."""
        return [one["id"] for one in self.post.ok("watch", "list", "--session", ADA)["watches"]]


@pytest.fixture
def desk(shim: Shim) -> Desk:
    """Two sessions."""
    return Desk(shim)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_turn_s_end_is_told_once_and_costs_a_start_only_until_then(desk: Desk, shell: str) -> None:
    """A watch reports the end of a turn once. A Stop without a watch starts no Python."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    assert desk.shim.hook("Stop", *words).raw == b""
    assert desk.shim.starts() == 0
    made = desk.watch("--idle")
    assert desk.shim.hook("UserPromptSubmit", *words).raw == b""
    desk.shim.starts()
    assert desk.told() == []
    assert desk.shim.hook("Stop", *words).raw == b""
    assert desk.shim.starts() == 1
    (told,) = desk.told()
    assert made["id"] in told
    assert "is idle" in told
    assert desk.watched() == []
    desk.shim.hook("UserPromptSubmit", *words)
    desk.shim.starts()
    desk.shim.hook("Stop", *words)
    desk.shim.hook("Stop", *words)
    assert desk.shim.starts() <= 1
    assert desk.told() == []


def test_mail_that_keeps_it_going_is_no_idleness(desk: Desk) -> None:
    """Its turn goes on with the mail; the end of that turn is told."""
    desk.watch("--idle")
    desk.post.send(ADA, ME, "MORE")
    assert "MORE" in desk.shim.hook("Stop").stdout
    assert desk.told() == []
    assert desk.shim.hook("Stop").raw == b""
    assert len(desk.told()) == 1


@pytest.mark.parametrize("until", ["--idle", "--dead"])
def test_an_agent_s_end_is_told_whoever_records_it(desk: Desk, until: str) -> None:
    """A watch reports an agent's end and its reason, whether the agent's own hook or another's command records it."""
    desk.watch(until)
    desk.shim.hook("SessionEnd")
    (told,) = desk.told()
    assert "has ended; session ended" in told
    desk.post.register("cat", "--name", "Cat")
    desk.post.ok("watch", "Cat", until, "--session", ADA)
    desk.post.ok("roster", "update", "--session-id", "cat", "--add-tags", "project:x")
    assert desk.told() == []
    desk.post.ok("roster", "retire", "--session-id", "cat")
    assert "Cat has ended; retired" in desk.told()[0]


def test_a_task_s_report_is_told_when_it_is_done(desk: Desk) -> None:
    """A watch reports that a task is done, but not its progress. It is refused for another agent's task."""
    post = desk.post
    post.register("cat", "--name", "Cat")
    task = post.ok("control", "request", "task", ME, "--title", "T", "--session", "cat")["request"]["id"]
    made = desk.watch("--task", task)
    assert post.call("watch", "Cat", "--task", task, "--session", ADA).rc == 1
    post.ok("control", "report", task, "--phase", "verifying", "--session", ME)
    assert desk.told() == []
    post.ok("control", "report", task, "--phase", "done", "--session", ME)
    (told,) = desk.told()
    assert made["id"] in told
    assert f"finished task {task}" in told
    assert post.call("watch", ME, "--task", task, "--session", ADA).rc == 1


def test_each_of_several_watchers_is_told(desk: Desk) -> None:
    """One report comes to each, whatever happened and whoever tells of it. Who watches for something else hears of the
    agent's end alone."""
    post, watchers = desk.post, (ADA, "bea", "dan")
    for who in ("bea", "cat", "dan"):
        post.register(who)

    def watched(agent: str, *words: str) -> None:
        for who in watchers:
            post.ok("watch", agent, *words, "--session", who)

    def counts() -> list[int]:
        return [len(desk.told(who)) for who in watchers]

    watched(ME, "--idle")
    desk.shim.hook("Stop")
    assert counts() == [1, 1, 1]
    task = post.ok("task", "add", "--to", "cat", "--title", "T", "--session", ADA)["task"]["id"]
    watched("cat", "--task", task)
    post.ok("watch", "cat", "--idle", "--session", "dan")
    post.ok("task", "done", task, "--summary", "s", "--session", "cat")
    assert [sum("finished" in one for one in desk.told(who)) for who in watchers] == [1, 1, 1]
    watched("cat", "--dead")
    post.ok("roster", "retire", "cat")
    assert counts() == [1, 1, 2]
    watched(ME, "--dead")
    post.append(ROSTER, {"event": "freeze", "session_id": ME, "timestamp": stamp()})
    post.ok("steward", "run")
    assert counts() == [1, 1, 1]


def test_nobody_watches_itself_and_an_agent_whose_id_begins_with_ours_is_another(desk: Desk) -> None:
    """Two ids may begin with each other, and one like the person's word."""
    for who in ("cat-1", "cat-10", "user-2"):
        desk.post.register(who)
    assert desk.post.ok("watch", "user-2", "--idle", "--session", "cat-1")["watches"]
    assert desk.post.ok("watch", "cat-10", "--dead", "--session", "cat-1")["watches"]
    for who in ("cat-1", "cat-10"):
        refused(desk.post.call("watch", who, "--dead", "--session", who), 1, "cannot watch itself")


@pytest.mark.parametrize("end", ["freeze", "retire"])
def test_the_steward_tells_what_a_killed_process_could_not(desk: Desk, end: str) -> None:
    """The roster says that the agent ended, and nobody was told. Its word is proven, and is shown so."""
    desk.watch("--dead")
    desk.post.append(ROSTER, {"event": end, "session_id": ME, "timestamp": stamp()})
    assert desk.told() == []
    desk.post.ok("steward", "run")
    shown = desk.post.call("check", "--session", ADA).stdout
    assert "has ended" in shown
    assert "unverified" not in shown
    desk.post.ok("steward", "run")
    assert desk.told() == []


def test_a_note_of_a_watch_that_was_lost_is_written_again(desk: Desk) -> None:
    """Without it the agent's own hook tells nobody; the steward looks into the log."""
    desk.watch("--idle")
    (note,) = desk.post.user_state.glob("watched/*/*")
    before = note.read_bytes()
    note.unlink()
    desk.post.ok("steward", "run")
    assert note.read_bytes() == before
    desk.shim.hook("Stop")
    assert len(desk.told()) == 1


def test_without_its_derived_files_a_watch_counts_all_the_same(desk: Desk) -> None:
    """Deleting ``.cache`` costs time."""
    desk.watch("--idle")
    shutil.rmtree(desk.post.box / ".cache")
    desk.shim.hook("UserPromptSubmit")
    desk.shim.hook("Stop")
    assert len(desk.told()) == 1


def test_a_line_that_proves_nothing_ends_no_watch(desk: Desk) -> None:
    """It is shown as refused, and the real report comes."""
    made = desk.watch("--idle")
    text = json.dumps({"type": "watch_report", "requestId": made["id"], "agent": ME, "event": "idle"})
    desk.post.append(MESSAGES, record(ME, ADA, text, type="control"))
    desk.told()
    assert desk.watched() == [made["id"]]
    desk.shim.hook("Stop")
    assert len(desk.told()) == 1


def test_a_watch_that_is_set_again_tells_once(desk: Desk) -> None:
    """The later one takes the place of the same one before it. One for another event stays."""
    desk.watch("--idle")
    other = desk.watch("--idle", "--dead")
    again = desk.watch("--idle", "--for", "2h")
    assert desk.watched() == [other["id"], again["id"]]
    desk.post.ok("watch", "cancel", other["id"], "--session", ADA)
    desk.shim.hook("Stop")
    assert len(desk.told()) == 1


def test_the_person_is_watched_only_for_a_task(desk: Desk) -> None:
    """Nothing would ever tell that the person is idle, or ended."""
    for event in ("--idle", "--dead"):
        refused(desk.post.call("watch", "user", event, "--session", ADA), 1, "watch a task of theirs")
    task = desk.post.ok("task", "add", "--to", "user", "--title", "x", "--session", ADA)["task"]["id"]
    assert desk.post.ok("watch", "user", "--task", task, "--session", ADA)["watches"]


def test_a_watch_is_cancelled_by_its_id_and_one_without_sense_is_refused(desk: Desk) -> None:
    """A watch can be cancelled by the beginning of its id, also twice. One of oneself, of an ended agent or for no
    reason is refused."""
    post, made = desk.post, desk.watch("--idle", "--for", "30m")
    for word in (made["id"][:9], made["id"]):
        assert post.ok("watch", "cancel", word, "--session", ADA)["watches"][0]["over"]
    assert desk.watched() == []
    assert post.call("watch", ADA, "--idle", "--session", ADA).rc == 1
    assert post.call("watch", ME, "--session", ADA).rc == 2
    assert post.call("watch", ME, "--idle", "--for", "8d", "--session", ADA).rc == 2
    assert post.call("watch", "nobody", "--idle", "--session", ADA).rc == 1
    post.ok("roster", "freeze", "--session-id", ME)
    assert post.call("watch", ME, "--idle", "--session", ADA).rc == 1
