"""Cursor's hooks by the shim, with the JSON that its documentation shows. **Not run** with the client, which is in no
registry: these tests prove our side of what is written there, and nothing about Cursor."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.hooks import client_input
from agent_mailbox.clients.hooks.cursor_answers import spoken
from agent_mailbox.clients.install.hook_entries import calls_us
from agent_mailbox.known_clients.cursor_cli import CURSOR_CLI
from tests.claude.test_guard import SHELLS, Shim
from tests.claude.test_install import House
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from tests.helpers import Post

ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
BASE = {
    "conversation_id": ID,
    "generation_id": "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b",
    "model": "default",
}
"""The keys with which the JSON of every event begins, in the order in which they were reported."""
REST = {"cursor_version": "2026.07.17-3e2a980", "workspace_roots": ["/"], "user_email": None, "transcript_path": None}
SAID: dict[str, dict[str, Any]] = {
    "sessionStart": {"is_background_agent": False, "session_id": ID},
    "preToolUse": {"tool_name": "Shell", "tool_input": {"command": "true"}, "tool_use_id": "abc123", "cwd": "/"},
    "stop": {"status": "completed", "loop_count": 0},
    "sessionEnd": {"reason": "completed", "duration_ms": 45000, "final_status": "completed", "session_id": ID},
}
"""What each event adds, as documented."""


class Session:
    """A session of Cursor, and its hooks by the guard."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.shim = Shim(post)
        self.shim.env = {"PYTHONPATH": None, "PATH": "/usr/bin:/bin"}

    def hook(self, event: str, *shell: str, to: tuple[str, ...] = (), indent: int | None = None, **fields: Any) -> str:
        """One hook; what it wrote. ``to``: another of our hooks than the one installed for the event."""
        said = {**BASE, **SAID.get(event, {}), **fields, "hook_event_name": event, **REST}
        call = json.dumps(said, separators=None if indent else (",", ":"), ensure_ascii=False, indent=indent)
        words = [str(self.shim.checkout / "hooks/agent-mailbox-hook"), *(to or (CURSOR_CLI.events[event], "cursor"))]
        env = self.post.environ(self.shim.env)
        done = subprocess.run([*shell, *words], input=call.encode(), env=env, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def state(self) -> str:
        """Its state in the roster."""
        return str(self.post.ok("roster", "show", ID)["agent"]["state"])


@pytest.fixture
def session(post: Post) -> Session:
    """A session that has started and has nothing to read."""
    made = Session(post)
    assert json.loads(made.hook("sessionStart")) == {"additional_context": f"agent-mailbox: this session is {ID}"}
    assert made.hook("stop") == ""
    made.shim.starts()
    return made


def words_of(shell: str) -> tuple[str, ...]:
    """How a shell is called."""
    return (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))


@pytest.mark.parametrize("shell", SHELLS)
def test_mail_is_the_next_prompt_and_else_no_python_starts(session: Session, shell: str) -> None:
    """Also by JSON on several lines; shown once."""
    words = words_of(shell)
    assert session.hook("stop", *words) == ""
    assert session.hook("preToolUse", *words) == ""
    assert session.shim.starts() == 0
    for indent in (None, 2):
        session.post.send("x", ID, f"MAIL {indent}")
        answer = json.loads(session.hook("stop", *words, indent=indent))
        assert [*answer] == ["followup_message"]
        assert f"| MAIL {indent}" in answer["followup_message"]
        assert session.hook("stop", *words, indent=indent, loop_count=1) == ""


def test_mail_that_cursor_would_drop_stays_unread(session: Session) -> None:
    """At the start it is counted, not shown. It stays after a turn that did not complete, after the fifth that mail
    began, and in hooks of Claude Code's that Cursor runs as well."""
    session.post.send("x", ID, "MAIL")
    told = json.loads(session.hook("sessionStart"))["additional_context"]
    assert "1 unread: run `" in told
    assert "| MAIL" not in told
    assert session.hook("stop", status="aborted") == ""
    assert session.hook("stop", status="error") == ""
    assert session.hook("stop", loop_count=5) == ""
    assert session.hook("beforeSubmitPrompt", to=("UserPromptSubmit",)) == ""
    assert session.hook("postToolUse", to=("PostToolUse",)) == ""
    assert len(session.post.unread(ID)) == 1
    assert "| MAIL" in session.hook("stop", loop_count=4)
    assert session.post.unread(ID) == []


def test_a_session_that_ended_comes_back_at_its_next_turn_s_end(session: Session) -> None:
    """No hook tells that it was resumed. One that retired stays away."""
    session.hook("sessionEnd")
    assert session.state() == "frozen"
    session.post.send("x", ID, "MAIL")
    assert "| MAIL" in session.hook("stop")
    assert session.state() == "alive"
    session.post.ok("roster", "retire", ID)
    assert session.hook("stop") == ""
    assert session.state() == "dead"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_in_another_s_name_is_refused_in_its_form(session: Session, shell: str) -> None:
    """Also what the person would be asked about, for it does not ask. Its own name is its own. By Claude Code's hook
    the form is Claude Code's."""
    words = words_of(shell)

    def run(command: str, to: tuple[str, ...] = ()) -> str:
        return session.hook("preToolUse", *words, to=to, tool_input={"command": command, "working_directory": "/"})

    for command in (
        "agent-mailbox send --from bob --to all --body x",
        "agent-mailbox send --to bob --body @/etc/passwd",
    ):
        answer = json.loads(run(command))
        assert {*answer} == {"permission", "user_message", "agent_message"}
        assert answer["permission"] == "deny"
        assert answer["agent_message"].startswith("agent-mailbox: ")
    assert run(f"agent-mailbox check --session {ID}") == ""
    assert "hookSpecificOutput" in json.loads(run("agent-mailbox check --session bob", ("PreToolUse",)))


def test_the_project_is_its_workspace() -> None:
    """A hook of the user runs in ``~/.cursor``, and a client around it has variables of its own."""
    said = {**BASE, **REST, "workspace_roots": ["/project", "/other"]}
    for roots, cwd in ((["/project", "/other"], "/project"), ([], "/outer"), ([1], "/outer"), ("/x", "/outer")):
        call = client_input.parse(
            "SessionStart", {**said, "workspace_roots": roots}, {"CLAUDE_PROJECT_DIR": "/outer"}, "/home/ann/.cursor"
        )
        assert (call.session_id, call.client, call.cwd) == (ID, CURSOR_CLI, cwd)


def test_what_has_no_form_in_cursor_is_not_said() -> None:
    """An answer that it does not know blocks the action."""
    for said in ({"systemMessage": "x"}, {"hookSpecificOutput": {"permissionDecision": "ask"}}, {}):
        assert spoken(json.dumps(said)) == ""


def test_what_fails_is_not_told_to_cursor(post: Post) -> None:
    """Unreadable JSON, no mailbox: the hook is silent and lets it go on."""
    session = Session(post)
    command = [str(session.shim.checkout / "hooks/agent-mailbox-hook"), "PreToolUse", "cursor"]
    done = subprocess.run(
        command, input=b"{agent-mailbox", env=post.environ(session.shim.env), capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("scope", ["project", "user"])
def test_its_file_takes_a_person_s_own_hooks_and_gives_them_back(house: House, scope: str) -> None:
    """A flat list, each of ours in it once, under documented events alone. Untouched since, the file is what it was to
    the byte; edited, it loses only ours."""
    base = (house.project if scope == "project" else house.program.home) / ".cursor"
    path = base / "hooks.json"
    theirs = {"version": 1, "hooks": {"stop": [{"command": "./audit.sh", "loop_limit": 10}], "afterFileEdit": []}}
    before = house.write(theirs, path)
    where = ("cursor", "--project", house.project) if scope == "project" else ("cursor", "--user")
    first = sorted(base.rglob("*"))
    for _ in range(2):
        assert house.program.call("install", *where).rc == 0
    loaded = json.loads(path.read_text())
    assert loaded["version"] == 1
    ours = {event: [one for one in every if calls_us(one)] for event, every in loaded["hooks"].items()}
    assert {event: len(every) for event, every in ours.items()} == {**dict.fromkeys(SAID, 1), "afterFileEdit": 0}
    assert loaded["hooks"]["stop"][0] == theirs["hooks"]["stop"][0]
    assert ours["preToolUse"][0]["matcher"] == "Shell"
    assert ours["stop"][0]["command"].endswith("agent-mailbox-hook Stop cursor")
    section = base / ("rules/agent-mailbox.mdc" if scope == "project" else "skills/agent-mailbox/SKILL.md")
    assert "agent-mailbox reply ID" in section.read_text()
    assert house.program.call("uninstall", *where).rc == 0
    assert path.read_bytes() == before
    assert sorted(base.rglob("*")) == first
    assert house.program.call("install", *where).rc == 0
    path.write_text(path.read_text().replace("audit.sh", "other.sh"))
    assert house.program.call("uninstall", *where).rc == 0
    assert json.loads(path.read_text()) == json.loads(before.replace(b"audit.sh", b"other.sh"))


@pytest.fixture
def house(program: Post) -> House:
    """A project without any settings."""
    return House(program)
