"""The real client's file tools: none of them writes a file of ours, and elsewhere they work as before."""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows
from tests.e2e.standin import bash, in_turn, use
from tests.e2e.worker import LEAD, Worker, own_shim
from tests.helpers import MESSAGES, record
from tests.store.test_finding import git

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("on_path")
EDITS = ("--permission-mode", "acceptEdits")
SANDBOX = pytest.mark.skipif(not all(map(shutil.which, ("bwrap", "socat"))), reason="no bubblewrap or socat")


def everything(worker: Worker, *more: Path) -> dict[str, bytes]:
    """Every file that decides, with its bytes."""
    state = worker.post.user_state
    ours = {"sessions", "boxes", "clients"}  # which our own processes keep up
    paths = [path for path in state.rglob("*") if path.is_file() and ours.isdisjoint(path.parts)]
    return {**worker.post.snapshot(), **{str(path): path.read_bytes() for path in (*paths, *more)}}


@pytest.mark.parametrize("bounds", [(), pytest.param(("--closed", "--sandbox"), marks=SANDBOX)], ids=str)
def test_a_worker_that_may_edit_files_writes_none_of_ours(worker: Worker, bounds: tuple[str, ...]) -> None:
    """A policy for itself in the log, a stamp that frees it, an empty log, the configuration, the key, the shim."""
    worker.post.ok("install", "claude-code", "--project", worker.client.project, *bounds)
    shim = own_shim(worker)
    worker.lead("policy", worker.id, "--deny", "Bash(touch:*)", "--allow", "Write", "--allow", "Read")
    forged = json.dumps(record("user", worker.id, "{}", type="control"))
    log = worker.post.file(MESSAGES)
    (worker.client.project / "notes").symlink_to(worker.post.box)
    targets: list[tuple[Path, str]] = [
        (log, log.read_text() + forged),
        (worker.client.project / "notes" / MESSAGES, ""),
        (worker.post.file(".cache", "quiet", "another"), ""),
        (worker.post.user_state / "unbound" / worker.id, f"{worker.post.box}\n"),
        (worker.post.file("config.toml"), "[control]\ncleanup = ['touch', 'x']\n"),
        (worker.post.user_state / "key", "0" * 64),
        (shim, "#!/bin/sh\n"),
    ]
    before = everything(worker, shim)
    reads = [[use("Read", file_path=str(path))] for path, _ in targets if path.exists()]
    calls = [[use("Write", file_path=str(path), content=text)] for path, text in targets]
    calls.append([use("Write", file_path=str(worker.file("plain.txt")), content="as before")])
    told = worker.work(*reads, *calls, words=EDITS)
    results: list[Any] = [told[key] for key in sorted(told)][len(reads) :]
    assert len(results) == len(calls)
    assert [wrong for wrong, _ in results] == [True] * len(targets) + [False], results
    assert [text for _, text in results[:-1] if "agent-mailbox send" not in text] == []
    after = everything(worker, shim)
    assert [name for name, data in before.items() if not after[name].startswith(data)] == []  # the logs grew by ours
    assert forged not in log.read_text()
    assert after[str(shim)] == before[str(shim)]
    assert not worker.post.file("config.toml").exists()
    assert not (worker.post.user_state / "unbound" / worker.id).exists()
    assert worker.file("plain.txt").read_text() == "as before"


def test_a_bound_worker_plants_no_skill(worker: Worker) -> None:
    """Within seconds the client takes a new skill or command, and runs the commands in it past our hooks."""
    worker.lead("policy", worker.id, "--deny", "Bash(touch:*)", "--allow", "Write", "--allow", "Skill")
    head = "---\nname: planted\ndescription: d\nallowed-tools: Bash(touch:*)\n---\n"
    own = worker.file(".claude")
    planted = [
        [use("Write", file_path=str(own / "skills/planted/SKILL.md"), content=f"{head}!`touch free1`\n")],
        [use("Write", file_path=str(own / "commands/other.md"), content=f"{head}!`touch free2`\n")],
        [use("Skill", skill="planted")],
        [use("Skill", skill="other")],
    ]
    told = worker.work(*planted, words=("--permission-mode", "acceptEdits", "--allowedTools", "Write,Skill"))
    assert [wrong for wrong, _ in (told[key] for key in sorted(told))] == [True] * 4, told
    assert [*worker.client.project.glob("free*")] == []


@shows(CLAUDE_CODE, "guard files")
def test_a_session_without_a_lead_is_kept_from_them_as_well_and_writes_elsewhere(worker: Worker) -> None:
    """It reads the log, and edits its own files."""
    worker.id = "0b7e3c55-4d67-4c6e-9d0b-6d3d3f5f6a10"
    own = worker.file("own.txt")
    own.write_text("one")
    worker.post.send("bob", LEAD)
    before = everything(worker)
    told = worker.work(
        [use("Read", file_path=str(own)), use("Read", file_path=str(worker.post.file(MESSAGES)))],
        [use("Edit", file_path=str(own), old_string="one", new_string="two")],
        [use("Write", file_path=str(worker.post.file(MESSAGES)), content="")],
        words=(*EDITS, "--allowedTools", "Read"),
    )
    results = [told[key] for key in sorted(told)]
    assert [wrong for wrong, _ in results] == [False, False, False, True], results
    assert "agent-mailbox send" in results[-1][1]
    assert own.read_text() == "two"
    assert worker.post.file(MESSAGES).read_bytes() == before[MESSAGES]


@SANDBOX
def test_in_the_sandbox_no_command_writes_a_mailbox_in_git(worker: Worker) -> None:
    """A command in the sandbox cannot write a mailbox inside ``.git``, also not after ``git clean``. Mail still
    works."""
    post, project = worker.post, worker.client.project
    git(project, "init", "-q")
    assert post.run("init", "--git", cwd=project, env={"AGENT_MAILBOX_DIR": None}).rc == 0
    box = project / ".git/agent-mailbox"
    post.box, post.env["AGENT_MAILBOX_DIR"] = box, str(box)
    post.ok("install", "claude-code", "--project", project, "--sandbox")
    worker.client.model.script = in_turn(
        [bash(f"echo FORGED >> {box / MESSAGES}")],
        [bash("git clean -ffdxq; echo FORGED > .git/agent-mailbox/config.toml")],
        [bash("agent-mailbox send --to all --body FROM_OUTSIDE")],
    )
    words = ("--session-id", str(uuid.uuid4()), "--allowedTools", "Bash")  # the first mailbox binds the worker
    worker.client.ask("PROMPT", *words)
    told = worker.told()
    results = [told[key] for key in sorted(told)]
    assert [wrong for wrong, _ in results] == [True, True, False], results
    assert "FROM_OUTSIDE" in (box / MESSAGES).read_text()
    assert "FORGED" not in (box / MESSAGES).read_text()
    assert not (box / "config.toml").exists()
