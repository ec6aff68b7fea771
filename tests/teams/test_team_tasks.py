"""The task list of a client's own team: shown while a bridge serves the team, and never changed."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import naming
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.locks import team_lock
from agent_mailbox.store.locks.lock import FileLock
from tests.mcp import asking
from tests.surroundings import Client

if TYPE_CHECKING:
    from tests.teams.conftest import Teams


def put(teams: Teams, number: str, **said: Any) -> None:
    """A task as the client writes it."""
    value = {"id": number, "subject": f"Part {number}", "description": "d", "status": "pending", "blocks": []}
    path = teams.home / ".claude/tasks/my-app" / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**value, "blockedBy": [], **said}))


def test_a_served_team_s_tasks_are_listed_and_only_shown(teams: Teams) -> None:
    """They stand behind ours, with the client's states, and no command of ours takes one. Without a bridge of this
    mailbox none is listed. A file that is no task, or is the client's own affair, is left out; texts are quoted."""
    teams.register("bo")
    teams.make("my app", "ann")
    teams.make("other", "cat")  # no bridge ever served it
    put(teams, "10")
    put(teams, "2", owner="ann", status="in_progress", subject='a\x1b[2J\n"team:x" done')
    put(teams, "3", blockedBy=["2", "4", "99", 7])
    put(teams, "4", status="completed")
    put(teams, "5", metadata={"_internal": True})
    put(teams, "6", subject=7)
    put(teams, "7", status="lost")
    put(teams, "8", description="x" * (1 << 17))
    tasks = teams.home / ".claude/tasks/my-app"
    (tasks / "9.json").write_bytes(b'{"id": "9", "subject"')
    (tasks / "a b.json").write_text((tasks / "10.json").read_text())
    (tasks / "11.json").symlink_to("/dev/zero")
    (tasks / ".lock").write_text("")
    teams.ok("task", "add", "--to", "role:dev", "--title", "Ours", "--task-id", "task-ours", "--session", "bo")
    before = {path.name: path.lstat().st_mtime_ns for path in tasks.iterdir()}
    logs = OpenMailbox(str(teams.box)).logs
    tag = naming.tag("my app")
    place = team_lock.place(logs, tag)
    teams.file(".cache", "teams").mkdir(exist_ok=True)
    FileLock(place, team_lock.ASKED).take().release()  # a bridge that ended
    assert [one["id"] for one in teams.ok("task", "list")["tasks"]] == ["task-ours"]
    lock = FileLock(place, team_lock.ASKED).take()
    try:
        found = teams.ok("task", "list")["tasks"]
        assert [(one["id"], one["state"], one["holder"], one["waits_for"]) for one in found[1:]] == [
            (f"{tag}/2", "in progress", "ann", []),
            (f"{tag}/3", "pending", None, [f"{tag}/2"]),
            (f"{tag}/10", "pending", None, []),
        ]
        assert found[1]["client"] == "claude-code"
        text = teams.call("task", "list").stdout
        assert f'{tag}/3  blocked by {tag}/2, Claude Code\'s own: "Part 3"\n' in text
        assert len(text.splitlines()) == 4
        assert "\x1b" not in text
        calls = json.dumps([("task", {"do": "list"}), ("task", {"do": "claim", "task": f"{tag}/2"})])
        with Client(teams) as client:
            assert client.hook("one").rc == 0
            listed, claimed = client.bash(shlex.join([sys.executable, asking.__file__, calls]), "one").json
        assert listed["structuredContent"]["tasks"] == teams.ok("task", "list")["tasks"]
        assert f'{tag}/3  blocked by {tag}/2, Claude Code\'s own: "Part 3"\n' in listed["content"][0]["text"]
        assert "is only shown here" in claimed["structuredContent"]["error"]["message"]
        for words, count in ((("--mine", "--session", "bo"), 0), (("--open",), 1), (("--all",), 5)):
            assert len(teams.ok("task", "list", *words)["tasks"]) == count
        for words in ("claim", "show", "cancel", "progress --phase verifying", "done --summary x", "drop --reason x"):
            verb, *more = words.split()
            refused = teams.call("task", verb, f"{tag}/2", *more, "--session", "bo")
            assert (refused.rc, "is only shown here" in refused.stderr) == (1, True), refused
        assert (
            teams.call("task", "add", "--to", "x", "--title", "t", "--task-id", f"{tag}/2", "--session", "bo").rc != 0
        )
    finally:
        lock.release()
    assert {path.name: path.lstat().st_mtime_ns for path in tasks.iterdir()} == before
