"""Commands that run unasked, and another project's mailbox: the client asks before one of them reaches it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.clients.permission.own_commands_hook import CommandPlace
from agent_mailbox.permissions import own_questions
from tests.claude.shim import Shim, before_tool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

ASKED = (
    "agent-mailbox history --all --dir {other}",
    "agent-mailbox history --all --dir={other}",
    "agent-mailbox --dir {other} history --all",
    "agent-mailbox history --d'ir' \"{other}\"",
    "agent-mailbox history --di {other}",
    "agent-mailbox check --dir ../other/data",
    "agent-mailbox search secret --dir link",
    "agent-mailbox search secret --dir not-there-yet",
    "agent-mailbox search secret --dir ~/other/data",
    "agent-mailbox search secret --dir $SOMEWHERE",
    "agent-mailbox search secret --dir $(echo {other})",
    "agent-mailbox search secret --dir",
    "agent-mailbox send --to all --body x --dir {other}",
    "agent-mailbox status --home {other}",
    "AGENT_MAILBOX_DIR={other} agent-mailbox history --all",
    "env AGENT_MAILBOX_DIR={other} agent-mailbox history",
    "export AGENT_MAILBOX_DIR={other}; agent-mailbox history",
    "AGENT_MAILBOX_DIR={other}\nexport AGENT_MAILBOX_DIR\nagent-mailbox history",
    "read -r AGENT_MAILBOX_DIR <<< {other}; export AGENT_MAILBOX_DIR; agent-mailbox history",
    "env -u AGENT_MAILBOX_DIR agent-mailbox history",
    "AGENT_SWARM_HOME={other} agent-mailbox check",
    "cd {other} && agent-mailbox history --all",
    "cd ../other; agent-mailbox history --all",
    "cd .. && cd other && agent-mailbox history --all",
    "(cd {other}; agent-mailbox check)",
    "builtin cd -- {other} && agent-mailbox check",
    "pushd {other} >/dev/null; agent-mailbox check; popd",
    "cd link && agent-mailbox check",
    "cd not-there-yet && agent-mailbox check",
    'cd "$SOMEWHERE" && agent-mailbox check',
    "cd - && agent-mailbox check",
    "CDPATH={other} cd src && agent-mailbox check",
    "env -C {other} agent-mailbox check",
    "env --chdir={other} agent-mailbox check",
    "env -C{other} sh -c 'agent-mailbox check'",
    "uv run --directory {other} agent-mailbox check",
    "bash -c 'cd {other} && agent-mailbox check'",
    "eval 'cd {other}'; agent-mailbox check",
    "echo $(cd {other} && agent-mailbox check)",
    "timeout 5 agent-mailbox check --dir {other} &",
    "python3 -m agent_mailbox history --dir {other}",
    "A='--dir {other}'; agent-mailbox history $A",
    "python3 -c \"import subprocess; subprocess.run(['agent-mailbox','history','--dir','{other}'])\"",
    "echo {other} | xargs agent-mailbox history --dir",
)
UNASKED = (
    "agent-mailbox history --all",
    "agent-mailbox history --all --dir {box}",
    "agent-mailbox history --all --dir data",
    "agent-mailbox history --all --dir=./data/",
    "agent-mailbox history --dir $AGENT_MAILBOX_DIR",
    "AGENT_MAILBOX_DIR={box} agent-mailbox history",
    "cd src && agent-mailbox check",
    "cd {box}/.. && agent-mailbox check; cd {other}; make",
    "cd src && agent-mailbox check --dir ../data",
    "bash -c 'cd {other}; make'; agent-mailbox check",
    "agent-mailbox send --to bob --body --dir",
    "agent-mailbox send --to bob --body 'see --dir {other}'",
    "agent-mailbox send --to bob --body - <<'E'\ncd {other}; AGENT_MAILBOX_DIR=x\nE",
    "echo AGENT_MAILBOX_DIR; agent-mailbox check",
    "agent-mailbox roster update --add-tags x:y",
    "agent-mailbox control policy bob --deny Bash",
    "cd {other} && ls # agent-mailbox",
    "cd {empty} && agent-mailbox check",
)


@pytest.fixture
def project(post: Post) -> Path:
    """A project with its mailbox, beside another's; a link in it leads there."""
    for name in ("project", "other"):
        (post.home / name / "src").mkdir(parents=True)
        assert post.call("init", post.home / name / "data").rc == 0
    (post.home / "project/link").symlink_to(post.home / "other/data")
    (post.home / "empty").mkdir()
    return post.home / "project"


def _filled(text: str, project: Path) -> str:
    home = project.parent
    for word, path in (("{other}", "other/data"), ("{box}", "project/data"), ("{empty}", "empty")):
        text = text.replace(word, str(home / path))
    return text


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "unasked"])
def test_the_client_asks_before_another_project_s_mailbox(
    project: Path, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks before a command that may reach another project's mailbox. It does not ask about its own."""
    monkeypatch.setenv("HOME", str(project.parent))
    place = CommandPlace(str(project), lambda: str(project / "data"))
    for text in ASKED if asked else UNASKED:
        said = own_questions.question_about(_filled(text, project), place)
        assert (said is not None) == asked, (text, said)


def test_an_agent_without_a_mailbox_is_asked_about_each(project: Path) -> None:
    """None is its own. A command that names none is not asked about: it says what it finds."""
    place = CommandPlace(str(project.parent), lambda: None)
    assert own_questions.question_about(f"agent-mailbox check --dir {project}/data", place) is not None
    assert own_questions.question_about("agent-mailbox check", place) is None


@pytest.mark.parametrize("filling", ["agent-mailbox x ", "alias 'a b' ", "x "])
def test_a_huge_command_is_asked_about_all_the_same(project: Path, filling: str) -> None:
    """Its words are looked through in time that grows with their number, though each may begin a call."""
    place = CommandPlace(str(project), lambda: str(project / "data"))
    text = f"run {filling * (120_000 // len(filling))} agent-mailbox check --dir {project.parent}/other/data"
    assert own_questions.question_about(text, place) is not None


def test_the_hook_asks_and_names_the_mailbox(project: Path, shim: Shim) -> None:
    """The installed hook has the client ask before a command for another mailbox, and names that mailbox."""
    shim.env["AGENT_MAILBOX_DIR"] = str(project / "data")
    other = project.parent / "other/data"
    command = f"agent-mailbox history --all --dir {os.path.relpath(other, project)}"
    told = before_tool(shim, command, cwd=str(project)).json["hookSpecificOutput"]
    assert told["permissionDecision"] == "ask"
    assert "../other/data" in told["permissionDecisionReason"]
    assert before_tool(shim, f"agent-mailbox history --all --dir {project}/data", cwd=str(project)).raw == b""
