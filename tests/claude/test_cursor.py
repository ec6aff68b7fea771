"""Cursor, into which earlier versions installed hooks: they do nothing, and they can still be removed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import places
from agent_mailbox.clients.install import installation
from agent_mailbox.known_clients.cursor_cli import CURSOR_CLI, OLD_FILES
from agent_mailbox.known_clients.known_client import BEFORE_TOOL, Wanted
from tests.claude.test_guard import Shim
from tests.claude.test_install import House
from tests.helpers import PATIENCE, Post

if TYPE_CHECKING:
    from pathlib import Path

ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
OLD_HOOKS = {"sessionStart": "SessionStart", "preToolUse": BEFORE_TOOL, "stop": "Stop", "sessionEnd": "SessionEnd"}
"""The hooks that an earlier version installed: Cursor's event, and ours."""


def call_hook(shim: Shim, *words: str, **fields: Any) -> str:
    """Return what a hook of ours writes when Cursor runs it."""
    said = {"conversation_id": ID, "session_id": ID, **fields, "cursor_version": "2026.07.17-3e2a980"}
    command = [str(shim.checkout / "hooks/agent-mailbox-hook"), *words]
    env = shim.post.environ({"PYTHONPATH": None, "PATH": "/usr/bin:/bin"})
    call = json.dumps(said, separators=(",", ":")).encode()
    done = subprocess.run(command, input=call, env=env, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def test_hooks_that_cursor_runs_show_no_mail(post: Post) -> None:
    """Neither an earlier version's own hook nor one of Claude Code's shows it: Cursor may drop what they say."""
    post.ok("roster", "register", "--session-id", ID)
    post.send("x", ID, "MAIL")
    shim = Shim(post)
    for event in ("SessionStart", "Stop"):
        assert call_hook(shim, event, "cursor") == ""
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        assert call_hook(shim, event) == ""
    assert len(post.unread(ID)) == 1


def install_old(house: House, target: places.Target) -> None:
    """Install what an earlier version did: hooks in the settings file, beside the person's, and files of ours."""
    made = CURSOR_CLI.replace(
        hooks=lambda: [Wanted(on, event) for on, event in OLD_HOOKS.items()],
        files=lambda _: dict.fromkeys(OLD_FILES[:3], "a text of ours\n"),
    )
    environ = house.program.environ()
    plan = installation.plan_installation(target.replace(client=made), environ, "agent-mailbox")
    assert installation.carry_out(plan, environ)


def tree(base: Path) -> dict[str, bytes]:
    """Return the files below a directory."""
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("how", ["by name", "all", "edited"])
def test_what_an_earlier_version_installed_is_removed(house: House, scope: str, how: str) -> None:
    """A person's own hooks stay: an unedited file is what it was to the byte, an edited one loses only ours."""
    base = (house.project if scope == "project" else house.program.home) / ".cursor"
    before = house.write({"version": 1, "hooks": {"stop": [{"command": "./audit.sh"}]}}, base / "hooks.json")
    target = (
        places.project_target(CURSOR_CLI, str(house.project))
        if scope == "project"
        else places.user_target(CURSOR_CLI, house.program.environ())
    )
    install_old(house, target)
    assert len(tree(base)) == 4
    if how == "edited":
        path = base / "hooks.json"
        path.write_text(path.read_text().replace("audit.sh", "other.sh"))
        before = before.replace(b"audit.sh", b"other.sh")
    words = ["--all"] if how == "all" else ["cursor", *(["--user"] if scope == "user" else [])]
    assert house.program.call("uninstall", *words, cwd=house.project).rc == 0
    assert {name: json.loads(text) for name, text in tree(base).items()} == {"hooks.json": json.loads(before)}
    if how != "edited":
        assert tree(base) == {"hooks.json": before}


def test_the_doctor_names_the_hooks_that_do_nothing(house: House) -> None:
    """The note has the command that removes them."""
    house.program.call("init", str(house.project / "data"))
    install_old(house, places.project_target(CURSOR_CLI, str(house.project)))
    told = house.program.call("doctor", "--dir", str(house.project / "data"), cwd=house.project).stdout
    assert "our hooks of Cursor CLI do nothing: remove them with `agent-mailbox uninstall cursor" in told


def test_nothing_is_installed_into_cursor(house: House) -> None:
    """The command says so, with the way that is left; help and list do not name it."""
    before = house.tree()
    result = house.program.call("install", "cursor", "--project", str(house.project))
    assert result.rc == 1
    assert result.stderr.startswith("error: nothing is installed into Cursor CLI: ")
    assert "`agent-mailbox mcp`" in result.stderr
    for word in ("--list", "--help"):
        assert "ursor" not in house.program.call("install", word, cwd=house.project).stdout
    assert house.tree() == before


@pytest.fixture
def house(program: Post) -> House:
    """A project without any settings."""
    return House(program)
