"""The hooks of Claude Code: what each event, as the client really calls it, makes of the mailbox and tells the model.

Under a lead: control comes before chat, and the lead is told when its turn ends.
``SAMPLES`` are the client's own standard input and environment, captured, paths replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox, Registration
from agent_mailbox.clients import texts
from agent_mailbox.clients.client_input import READER_WAIT
from agent_mailbox.clients.hooks import session
from agent_mailbox.core import address, given_names
from agent_mailbox.core.given_names import NAMES
from agent_mailbox.known_clients.known_client import TIMEOUT
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.mailbox.session_brake import SessionBrake
from agent_mailbox.store.user_state.processes import Whereabouts
from tests.claude.shim import Shim
from tests.helpers import (
    HEARTBEATS,
    IMPATIENT,
    MESSAGES,
    PATIENCE,
    READS,
    ROOT,
    ROSTER,
    Post,
    Program,
    Result,
    each,
    record,
    refused,
    stamp,
    until,
    utf16,
    waiting_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox.core.inbox import Item

ME = "b1134fc7-6f1e-4997-83ed-699c6c8ae683"
OTHER = "c2245fc7-6f1e-4997-83ed-699c6c8ae684"
CAP = 10_000
"""UTF-16 units of a hook's text; above it the client shows the model a path and a preview."""
_COMMON = {
    "session_id": ME,
    "transcript_path": f"/home/dev/.claude/projects/-home-dev-proj/{ME}.jsonl",
    "cwd": "/home/dev/proj",
}
_TURN = {**_COMMON, "prompt_id": "76ec6dfc-a608-41c4-987e-90153338f66d", "permission_mode": "default"}
_EFFORT = {"effort": {"level": "medium"}}
SAMPLES: dict[str, dict[str, Any]] = {
    "SessionStart": {**_COMMON, "hook_event_name": "SessionStart", "source": "startup"},
    "UserPromptSubmit": {**_TURN, "hook_event_name": "UserPromptSubmit", "prompt": "PROMPT_ONE please"},
    "PreToolUse": {
        **_TURN,
        **_EFFORT,
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "touch blocked.txt", "description": "blocked"},
        "tool_use_id": "toolu_fake0001",
    },
    "PostToolBatch": {
        **_TURN,
        **_EFFORT,
        "hook_event_name": "PostToolBatch",
        "tool_calls": [
            {"tool_name": "Bash", "tool_input": {"command": "exit 3"}, "tool_use_id": "toolu_fake0003"},
            {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "toolu_fake0004"},
        ],
    },
    "PostToolUse": {
        **_TURN,
        **_EFFORT,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "touch allowed.txt && echo TOOL_OUT", "description": "allowed"},
        "tool_response": {"stdout": "TOOL_OUT", "stderr": "", "interrupted": False, "isImage": False},
        "tool_use_id": "toolu_fake0002",
        "duration_ms": 24,
    },
    "Stop": {
        **_TURN,
        **_EFFORT,
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "DONE_ONCE",
        "background_tasks": [],
        "session_crons": [],
    },
    "PreCompact": {**_TURN, "hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": ""},
    "SessionEnd": {**_TURN, "hook_event_name": "SessionEnd", "reason": "other"},
}
ENVIRONMENT = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
    "CLAUDE_CODE_CHILD_SESSION": "1",
    "CLAUDE_EFFORT": "medium",
    "CLAUDE_PID": "14621",
    "CLAUDE_CODE_SESSION_ID": ME,
    "CLAUDECODE": "1",
}
ANSWERED = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolBatch", "Stop", "PreCompact", "SessionEnd")


class Client:
    """Calls hooks as the client does: its JSON on standard input, its variables in the environment."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.project = post.cwd / "inscription"
        (self.project / ".git").mkdir(parents=True)
        self.env: dict[str, str | None] = {**ENVIRONMENT, "CLAUDE_PROJECT_DIR": str(self.project)}

    def hook(self, event: str, *, how: Any = None, env: dict[str, str | None] | None = None, **fields: Any) -> Result:
        """One hook; ``fields`` replace those of the sample. Whatever it answers, the session goes on."""
        call = {**SAMPLES[event], "cwd": str(self.project), **fields}
        call = {key: value for key, value in call.items() if value is not None}
        who = {"CLAUDE_CODE_SESSION_ID": call.get("session_id", ME)}
        result: Result = (how or self.post.call)(
            "hook", event, stdin=json.dumps(call), env={**self.env, **who, **(env or {})}, cwd=self.project
        )
        assert result.rc == 0, result
        assert "Traceback" not in result.stderr
        return result

    def context(self, event: str, **how: Any) -> str:
        """What a hook that may add context tells the model; empty for no answer."""
        result = self.hook(event, **how)
        if not result.raw:
            return ""
        inner = result.json["hookSpecificOutput"]
        assert set(result.json) - {"systemMessage"} == {"hookSpecificOutput"}
        assert set(inner) == {"hookEventName", "additionalContext"}
        assert inner["hookEventName"] == event
        assert utf16(inner["additionalContext"]) < CAP
        return str(inner["additionalContext"])

    def blocked(self, **how: Any) -> str:
        """The reason with which Stop keeps another client's model going; empty for none."""
        result = self.hook("Stop", env={"CLAUDECODE": None}, **how)
        if not result.raw:
            return ""
        assert result.json["decision"] == "block"
        assert set(result.json) - {"systemMessage"} == {"decision", "reason"}
        assert utf16(result.json["reason"]) < CAP
        return str(result.json["reason"])

    def agent(self, session_id: str = ME) -> dict[str, Any]:
        """What the roster says of the session."""
        return dict(self.post.ok("roster", "show", session_id)["agent"])


@pytest.fixture
def client(post: Post) -> Client:
    """A client in a project directory, and a mailbox."""
    return Client(post)


# -- each event -------------------------------------------------------------------------------------------------------


def test_each_sample_is_taken_and_an_empty_mailbox_says_nothing(client: Client) -> None:
    """Each hook of a session succeeds, and says nothing on an empty mailbox; the first one says who the session is. The
    agent is alive, and frozen after the session's end."""
    for event in ANSWERED:
        result = client.hook(event, how=client.post.run)
        assert (bool(result.stdout), result.stderr) == (event == "SessionStart", ""), event
        wanted = "frozen" if event == "SessionEnd" else "alive"
        assert client.agent()["state"] == wanted
    assert client.post.lines(MESSAGES) == []


RESERVED = ("user", "User", "system", "steward", "person", "all", "you", "agent-mailbox", "_user_", "the.person")


@pytest.mark.parametrize("session_id", RESERVED)
def test_no_event_of_any_client_is_of_a_reserved_session(client: Client, session_id: str) -> None:
    """A program that calls a hook so reads nothing of the person's mail, consumes none, and is not registered."""
    post = client.post
    post.send("ann", "user", "for the person")
    post.send("ann", "all", "for everyone")
    before = post.snapshot()
    clients = (
        {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session_id},
        {"CLAUDECODE": None, "CLAUDE_CODE_SESSION_ID": None, "GEMINI_SESSION_ID": session_id},
        {"CLAUDECODE": None, "CLAUDE_CODE_SESSION_ID": None},
    )
    keys = ("session_id", "conversation_id")
    for event in (*ANSWERED, "Permit", "PermissionRequest", "Files"):
        for env in clients:
            for key in keys:
                call = {key: session_id, "hook_event_name": event, "prompt": "x", "turn_id": "1", "cwd": str(post.cwd)}
                done = post.call("hook", event, stdin=json.dumps(call), env=env)
                assert done.rc == 0
                assert "for the person" not in done.stdout + done.stderr
                assert "additionalContext" not in done.stdout
                assert event not in ANSWERED or "is reserved" in done.stderr
    after = post.snapshot()
    assert after == before
    assert [m["content"] for m in post.ok("check", "--session", "user", "--peek")["messages"]]


def test_no_subagent_s_parent_is_a_reserved_session(client: Client) -> None:
    """Copilot names a subagent's parent, whose mail it would be shown."""
    call = {"session_id": "sub", "parent_agent_id": "user", "hook_event_name": "UserPromptSubmit"}
    client.post.send("ann", "user", "for the person")
    env = {"CLAUDECODE": None, "CLAUDE_CODE_SESSION_ID": None, "COPILOT_AGENT_SESSION_ID": "sub"}
    done = client.post.call("hook", "UserPromptSubmit", stdin=json.dumps(call), env=env)
    assert "for the person" not in done.stdout


@pytest.mark.parametrize("session_id", RESERVED)
def test_a_client_s_variable_makes_nobody_the_person(post: Post, session_id: str) -> None:
    """Each command refuses a caller whose client's variable holds a reserved name, such as ``user``."""
    sent = post.send("ann", "user", "for the person")
    for words in (("check",), ("status",), ("send", "--to", "bob", "--body", "x"), ("ack", sent)):
        done = post.call(*words, env={"CLAUDE_CODE_SESSION_ID": session_id})
        assert (done.rc, "reserved" in done.stderr, "for the person" in done.stdout) == (2, True, False), done
    refused = post.call("check", "--session", "user", env={"CLAUDE_CODE_SESSION_ID": session_id})
    assert refused.rc == 1
    assert post.unread("user") == [sent]


@pytest.mark.parametrize(
    ("event", "spelling"), [("SessionStart", "session-start"), ("UserPromptSubmit", "user_prompt_submit")]
)
def test_an_event_may_be_spelt_either_way(client: Client, event: str, spelling: str) -> None:
    """The client's spelling and the shell's."""
    client.post.send("x", "all")
    call = json.dumps(SAMPLES[event])
    result = client.post.call("hook", spelling, stdin=call, env=client.env)
    assert result.json["hookSpecificOutput"]["hookEventName"] == event


@pytest.mark.parametrize("event", ["Notification", "Nonsense", ""])
def test_an_event_we_do_not_answer_never_blocks(client: Client, event: str) -> None:
    """Exit 1, which the client shows the person and ignores; exit 2 would block. Nothing on stdout."""
    result = client.post.call("hook", event, stdin=json.dumps(SAMPLES.get(event, {})), env=client.env)
    assert (result.rc, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert "SessionStart" in result.stderr


@pytest.mark.parametrize(
    ("source", "shows"), [("startup", True), ("resume", True), ("compact", False), ("clear", False)]
)
def test_a_start_shows_what_waited_and_leaves_the_rest_to_what_begins_a_turn(
    client: Client, source: str, shows: bool
) -> None:
    """A start leaves mail unread that came since the session is there, and all mail of one that was there before. A
    stamp that a power failure brought back hides none of it."""
    waited = client.post.send("x", ME, "waited")
    since = record("x", ME, "since", timestamp=stamp(time.time_ns() // 1_000_000 + 60_000))
    client.post.append(MESSAGES, since)
    told = client.context("SessionStart", source=source)
    assert [one[:8] in told for one in (waited, since["id"])] == [shows, False]
    assert client.post.unread(ME) == [*([] if shows else [waited]), since["id"]]
    Mailbox(str(client.post.box)).logs.stamp_files.stamp(ME, time.time_ns() // 1_000_000)
    client.hook("SessionStart", source="compact")
    assert not client.post.file(f".cache/quiet/{ME}").exists()
    assert since["id"][:8] in client.context("UserPromptSubmit")


def test_mail_reaches_the_model_framed_and_is_then_read(client: Client) -> None:
    """The hook shows a message once, framed and with the command to answer it, and records it as read."""
    post = client.post
    post.register(ME)
    post.register("bob", "--name", "Bob", "--role", "builder")
    sent = post.send("bob", ME, "first line\nsecond", "--subject", "Schema", "--ack")
    text = client.context("SessionStart")
    _, *lines = text.splitlines()
    assert re.fullmatch(r"Agent mail [0-9a-f]{6}", lines[0])
    assert lines[1:5] == [f"{sent[:8]} Bob → you, ack?", "| Schema", "| first line", "| second"]
    assert f" reply {sent[:8]} " in lines[-1]
    assert [(r["message_id"], r["as"]) for r in post.objects(READS)] == [(sent, ME)]
    assert client.context("UserPromptSubmit") == ""
    reminded = client.context("SessionStart", source="compact").splitlines()
    assert reminded[0] == f"agent-mailbox: this session is {ME[:8]}"
    assert reminded[2:] == [f'{sent[:8]} from Bob (builder): "Schema"']
    post.ok("ack", sent, "--session", ME)
    assert client.context("SessionStart", source="compact") == ""
    late = post.send("bob", ME, "late")
    assert f"{late[:8]}" in client.context("UserPromptSubmit")
    assert client.context("Stop") == ""


@pytest.mark.parametrize("shape", ["context", "block"])
def test_stop_keeps_the_model_going_while_there_is_news_and_not_for_ever(client: Client, shape: str) -> None:
    """Each message once, at most five times in a row; what comes then waits for the next prompt, or the next turn's
    end. Claude Code takes it as context, others as the reason of a block."""

    def stop(*, active: bool) -> str:
        return (
            client.context("Stop", stop_hook_active=active)
            if shape == "context"
            else client.blocked(stop_hook_active=active)
        )

    def send() -> str:
        return client.post.send("x", ME, f"news {len(client.post.lines(MESSAGES))}")

    client.hook("SessionStart")
    for turn in range(5):
        assert send()[:8] in stop(active=turn > 0)
    assert stop(active=True) == ""
    late = send()
    assert stop(active=True) == ""
    assert client.post.unread(ME) == [late]
    assert late[:8] in stop(active=False)
    for _ in range(4):
        assert send()[:8] in stop(active=True)
    late = send()
    assert stop(active=True) == ""
    assert late[:8] in client.context("UserPromptSubmit")  # the doorbell's turn begins
    assert send()[:8] in stop(active=True)


def test_an_event_with_nothing_to_do_is_no_error(client: Client) -> None:
    """A subagent's or teammate's end: whoever hooks it gets no answer and no complaint."""
    client.hook("SessionStart")
    client.post.send("x", ME)
    for event in ("SubagentStop", "TeammateIdle"):
        result = client.post.call("hook", event, stdin=json.dumps(SAMPLES["Stop"]), env=client.env)
        assert (result.rc, result.raw, result.stderr) == (0, b"", "")
    assert len(client.post.unread(ME)) == 1


def test_session_end_freezes_with_its_reason(client: Client) -> None:
    """Direct mail then waits without expiring; a start thaws; an end of a session nobody knows is no error."""
    client.hook("SessionStart")
    client.hook("SessionEnd", reason="prompt_input_exit")
    assert client.agent()["state"] == "frozen"
    assert "prompt_input_exit" in client.post.call("roster", "show", ME).stdout
    answer = client.post.ok("send", "--from", "x", "--to", ME, "--body", "waits")["delivery"]
    assert (answer["agents"], answer["waiting_for"]) == ([], [ME])
    assert "waits" in client.context("SessionStart", source="resume")
    assert client.agent()["state"] == "alive"
    quiet = client.hook("SessionEnd", session_id=OTHER)
    assert quiet.raw == b""
    assert OTHER not in [a["session_id"] for a in client.post.ok("roster", "list")["agents"]]


def test_the_dead_consume_nothing(client: Client) -> None:
    """After ``/bye`` a prompt or a stop brings no mail; a new start registers again."""
    client.hook("SessionStart")
    client.post.ok("roster", "retire", ME)
    client.post.append(MESSAGES, record("x", ME, "for the dead"))
    for event in ("UserPromptSubmit", "Stop", "SessionEnd"):
        assert "for the dead" not in client.hook(event).stdout
        assert client.agent()["state"] == "dead"
    assert "for the dead" in client.context("SessionStart", source="resume")
    assert client.agent()["state"] == "alive"


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "SessionStart"])
def test_a_retired_session_that_goes_on_is_told_once_how_to_come_back(client: Client, event: str) -> None:
    """The model and the person are told by its next hook, and again after its next end. The command that it names
    brings it back, and `check` names the same."""
    post = client.post
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")  # leaves a quiet stamp
    for _ in range(2):
        post.ok("roster", "retire", ME)
        assert not (post.box / ".cache" / "quiet" / ME).exists()
        told = client.hook(event, source="compact").json
        shown = told["hookSpecificOutput"]["additionalContext"]
        assert told["systemMessage"] == shown
        assert "was retired" in shown
        assert client.hook(event, source="compact").raw == b""
        refused(post.call("check", "--session", ME), 1, "dead", f"roster register --session-id {ME[:8]}`")
        command = shown.rpartition("To come back: ")[2].strip("`").split()
        assert post.call(*command[command.index("roster") :]).rc == 0
        assert client.agent()["state"] == "alive"
        sent = post.send("x", ME, "heard again")
        assert sent[:8] in client.context("UserPromptSubmit")


def test_the_command_that_retires_its_session_is_not_answered_by_it(client: Client) -> None:
    """``/bye`` ends with it, and the model is not asked back in the same breath; its next prompt tells."""
    client.hook("SessionStart")
    client.post.ok("roster", "retire", ME)
    leaving = {"command": "agent-mailbox roster retire", "description": "leave"}
    assert client.hook("PostToolUse", tool_input=leaving).raw == b""
    assert "was retired" in client.hook("UserPromptSubmit").stdout


def test_a_retired_session_is_told_who_continues_it(client: Client) -> None:
    """Its mail goes there."""
    client.hook("SessionStart", env={"AGENT_MAILBOX_NAME": "Ann"})
    client.post.ok("roster", "retire", ME)
    client.post.register("next-1", "--name", "Ann")
    assert "Ann continues it" in client.hook("UserPromptSubmit").stdout


# -- who the session is -----------------------------------------------------------------------------------------------


def test_a_session_registers_with_what_its_environment_says(client: Client) -> None:
    """Role, name, tags, and the project by itself; the configuration where the environment is silent."""
    client.hook(
        "SessionStart",
        env={
            "AGENT_MAILBOX_ROLE": "architect",
            "AGENT_MAILBOX_NAME": "Ann",
            "AGENT_MAILBOX_TAGS": "concern:x, domain:y",
        },
    )
    agent = client.agent()
    assert agent["name"] == "Ann"
    assert set(agent["tags"]) == {"role:architect", "concern:x", "domain:y", "project:inscription"}
    client.post.file("config.toml").write_text('[session]\nrole = "librarian"\ntags = ["domain:scripts"]\n')
    client.hook("SessionStart", session_id=OTHER)
    assert set(client.agent(OTHER)["tags"]) == {"role:librarian", "domain:scripts", "project:inscription"}


WISHES: dict[str, str | None] = {
    "AGENT_MAILBOX_ROLE": "architect",
    "AGENT_MAILBOX_NAME": "Ann",
    "AGENT_MAILBOX_TAGS": "concern:x",
    "AGENT_MAILBOX_LEAD": "boss",
}


@pytest.mark.parametrize("before", ["resumed", "registered"])
def test_a_known_session_gets_what_its_client_is_started_with(client: Client, before: str) -> None:
    """Beside what it has, with the mail that follows; once, and no line of the roster when nothing changes."""
    client.post.register("boss")
    if before == "resumed":
        client.hook("SessionStart")
        client.hook("SessionEnd")
    else:
        client.post.register(ME)
    client.post.ok("roster", "update", "--session-id", ME, "--add-tags", "role:builder")
    sent = [client.post.send("x", to) for to in ("role:architect", "concern:x", "project:inscription")]
    text = client.context("SessionStart", source="resume", env=WISHES)
    assert [one[:8] in text for one in sent] == [True] * 3
    agent = client.agent()
    assert (agent["name"], agent["lead"]) == ("Ann", "boss")
    assert set(agent["tags"]) == {"role:builder", "role:architect", "concern:x", "project:inscription"}
    lines = client.post.lines(ROSTER)
    assert client.context("SessionStart", source="resume", env=WISHES) == ""
    assert client.post.lines(ROSTER) == lines


def test_what_a_session_put_off_comes_with_the_next_client_and_not_within_the_same(client: Client) -> None:
    """A compaction is no word of the person's; only a session's first client brings project and configuration."""
    client.hook("SessionStart", env=WISHES)
    client.post.file("config.toml").write_text('[session]\nrole = "librarian"\ntags = ["domain:scripts"]\n')
    client.post.ok("roster", "update", "--session-id", ME, "--tags", "domain:y", "--remove-tags", "role:architect")
    client.hook("SessionStart", source="compact", env=WISHES)
    assert client.agent()["tags"] == ["domain:y"]
    client.hook("SessionStart", source="resume", env=WISHES)
    assert set(client.agent()["tags"]) == {"domain:y", "role:architect", "concern:x"}


def test_a_known_session_takes_nobody_s_place_by_a_variable(client: Client) -> None:
    """A session that is resumed within another's client leaves that its name, and is told."""
    env: dict[str, str | None] = {"AGENT_MAILBOX_NAME": "Ann"}
    client.hook("SessionStart", session_id=OTHER)
    client.hook("SessionStart", env=env)
    client.hook("SessionEnd")
    text = client.context("SessionStart", session_id=OTHER, source="resume", env=env)
    assert text == f"agent-mailbox: name 'Ann' is taken by {ME[:8]} (frozen); left out"
    assert [client.agent(one)["state"] for one in (ME, OTHER)] == ["frozen", "alive"]


def test_a_role_that_cannot_be_had_costs_no_lead(client: Client) -> None:
    """It was left out together with the lead, which then was the person."""
    client.post.register("boss", "--name", "Boss")
    client.hook("SessionStart", env={**WISHES, "AGENT_MAILBOX_ROLE": "Boss"})
    assert (client.agent()["lead"], client.agent()["tags"]) == ("boss", [])


@pytest.mark.parametrize("end", ["SessionEnd", "retire"])
def test_a_lead_that_is_settled_is_no_variable_s_to_change(client: Client, end: str) -> None:
    """The session comes back under the lead it had, and is told by which command the person changes that."""
    client.hook("SessionStart", env=WISHES)
    if end == "retire":
        client.post.ok("roster", "retire", ME)
    else:
        client.hook(end)
    text = client.context("SessionStart", source="resume", env={"AGENT_MAILBOX_LEAD": "other"})
    assert "lead 'other' left out: the lead is boss; " in text
    assert f"`agent-mailbox roster update --session-id {ME[:8]} --lead other`" in text
    assert (client.agent()["lead"], client.agent()["state"]) == ("boss", "alive")
    for ill in ("not an id", ME):
        text = client.context("SessionStart", source="resume", env={"AGENT_MAILBOX_LEAD": ill})
        assert text.count("left out") == 1
        assert client.agent()["lead"] == "boss"


def test_a_prompt_of_an_unknown_session_registers_it(client: Client) -> None:
    """Hooks that were installed in the midst of a session."""
    client.hook("UserPromptSubmit", env={"AGENT_MAILBOX_ROLE": "architect"})
    assert client.agent()["tags"] == ["role:architect", "project:inscription"]


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_linked_worktree_has_the_repository_s_project(client: Client) -> None:
    """Sessions in any worktree of a repository share ``project:``."""
    main = client.post.scratch / "main-repo"
    main.mkdir()
    for words in (
        ("init", "-q"),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x"),
        ("worktree", "add", "-q", "../linked"),
    ):
        subprocess.run(["git", *words], cwd=main, check=True, capture_output=True, timeout=PATIENCE)
    client.hook("SessionStart", env={"CLAUDE_PROJECT_DIR": str(main.parent / "linked")})
    assert client.agent()["tags"] == ["project:main-repo"]


def test_outside_a_repository_the_project_is_the_directory_s_name(client: Client) -> None:
    """Outside a repository, a session's project tag is the directory's name. A hyphen replaces each sign that a tag
    cannot hold."""
    plain = client.post.scratch / "a b: c"
    plain.mkdir()
    client.hook("SessionStart", session_id=OTHER, env={"CLAUDE_PROJECT_DIR": None}, cwd=str(plain))
    assert client.agent(OTHER)["tags"] == ["project:a-b--c"]


def test_a_new_session_is_told_who_it_is_and_who_leads_it(client: Client) -> None:
    """The first line has the name, the roles, the lead, and how to write."""
    client.post.register("ann-1", "--name", "Ann")
    env = {"AGENT_MAILBOX_NAME": "Ben", "AGENT_MAILBOX_ROLE": "builder", "AGENT_MAILBOX_LEAD": "Ann"}
    first = client.context("SessionStart", env=env).splitlines()[0]
    assert first.startswith("agent-mailbox: you are Ben (builder), led by Ann; ")
    assert "send --to NAME --body" in first


def test_a_session_in_another_client_is_told_who_it_is(client: Client) -> None:
    """There is nothing of its talk there, whether the client tells of a start or of the first prompt alone. In the same
    client it knows."""
    copilot = {"env": {"CLAUDECODE": None, "COPILOT_CLI": "1"}, "timestamp": "2026-03-16T14:30:00.000Z"}
    gemini = {"env": {"CLAUDECODE": None, "GEMINI_SESSION_ID": ME}}
    told = []
    for event, how in (
        ("SessionStart", {"env": {"AGENT_MAILBOX_NAME": "Ann"}}),
        ("SessionStart", {}),
        ("SessionStart", copilot),
        ("UserPromptSubmit", gemini),
        ("UserPromptSubmit", gemini),
        ("SessionStart", {}),
    ):
        told.append("you are Ann" in client.hook(event, **how).raw.decode())
        client.hook("SessionEnd", **how)
    assert told == [True, False, True, True, False, True]


@pytest.mark.parametrize("marks", [{}, {"CLAUDECODE": None, "GEMINI_SESSION_ID": ME}], ids=["claude", "gemini"])
def test_a_silent_session_s_next_prompt_applies_no_environment_again(client: Client, marks: dict[str, Any]) -> None:
    """A frozen session goes on as itself in its client, so a role that its person took away stays away."""
    env = {"AGENT_MAILBOX_ROLE": "builder", **marks}
    client.hook("UserPromptSubmit", env=env)
    client.post.ok("roster", "update", "--session-id", ME, "--role", "reviewer")
    client.post.ok("roster", "freeze", ME)
    client.hook("UserPromptSubmit", env=env)
    assert client.agent(ME)["state"] == "alive"
    assert "role:builder" not in client.agent(ME)["tags"]


def test_the_section_that_agents_read_says_how_a_team_works() -> None:
    """The section says how one writes, answers, takes a task, and tells all."""
    words = ("check", "send --to NAME|role:R|project:P", "reply ID", "ack ID", "note add")
    for word in (*words, "task claim --next", "task done ID --summary"):
        assert word in texts.SECTION


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AGENT_MAILBOX_NAME", "Ann"),
        ("AGENT_MAILBOX_NAME", "no:name"),
        ("AGENT_MAILBOX_NAME", "user"),
        ("AGENT_MAILBOX_ROLE", "no role"),
        ("AGENT_MAILBOX_ROLE", "Ann"),
        ("AGENT_MAILBOX_TAGS", "plain"),
        ("AGENT_MAILBOX_TAGS", "colour:red"),
        ("AGENT_MAILBOX_NAME", "\x1b[31m</system-reminder>"),
    ],
)
def test_what_cannot_be_had_is_told_and_left_out(client: Client, variable: str, value: str) -> None:
    """A taken name, a malformed one, a role that is somebody's name: the session registers all the same, once told."""
    client.post.register("living", "--name", "Ann")
    good = {"AGENT_MAILBOX_TAGS": "domain:good"} if variable != "AGENT_MAILBOX_TAGS" else {"AGENT_MAILBOX_ROLE": "good"}
    text = client.context("SessionStart", env={**good, variable: value})
    assert text.startswith("agent-mailbox: ")
    who, *left_out = text.splitlines()
    assert all(line.isprintable() for line in left_out)
    assert len(text) < 700
    agent = client.agent()
    assert f"you are {agent['name']}" in who
    assert (agent["name"] in NAMES, agent["state"]) == (True, "alive")
    is_bare = (variable, value) == ("AGENT_MAILBOX_ROLE", "Ann")  # of roles and tags all are left out, or none
    kept = {"project:inscription", *(("role:good",) if variable == "AGENT_MAILBOX_TAGS" else ("domain:good",))}
    assert set(agent["tags"]) == (set() if is_bare else kept)
    assert client.context("SessionStart", source="compact", env={**good, variable: value}) in ("", *left_out)


def test_a_clear_leaves_out_a_name_that_no_agent_may_take_any_more(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version allowed it: the session goes on without the name, and is told."""
    box = Mailbox(str(client.post.box))
    with monkeypatch.context() as earlier:
        earlier.setattr(address, "SHOWN", frozenset())
        box.register(Registration(session_id=ME, name="You", client="7"), ME)
    box.end(ME, "freeze", ME, session.CLEARED)
    where = Whereabouts(directory=str(client.post.cwd))
    told = session.enter_session(box, OTHER, session.CLEARED, {"CLAUDE_PID": "7", **client.post.env}, where)
    assert "the name 'You' is reserved; left out" in told
    assert (client.agent(OTHER)["name"], client.agent(OTHER)["continues"]) == (None, [ME])


def test_a_clear_continues_and_nothing_else_does(client: Client) -> None:
    """Same client process, ended by ``clear``: mail, name, tags and how often mail may wake it pass over; a fork,
    another process or a new session is somebody new."""
    post = client.post
    env = {"AGENT_MAILBOX_ROLE": "architect", "AGENT_MAILBOX_NAME": "Ann"}
    client.hook("SessionStart", env=env)
    post.ok("roster", "update", "--session-id", ME, "--add-tags", "concern:x")
    SessionBrake(OpenMailbox(str(post.box)), ME).set_most(1)
    client.hook("SessionEnd", reason="clear")
    sent = post.send("x", ME, "for whoever goes on")
    stranger = client.context("SessionStart", session_id="someone-else", source="clear", env={"CLAUDE_PID": "999"})
    assert sent[:8] not in stranger
    assert client.agent("someone-else")["continues"] == []
    for source in ("startup", "fork", "resume"):
        client.hook("SessionStart", session_id=f"new-{source}", source=source)
        assert client.agent(f"new-{source}")["continues"] == []
    client.hook("SessionStart", session_id=OTHER, source="clear")
    assert sent[:8] in client.context("UserPromptSubmit", session_id=OTHER)
    in_an_hour = OpenMailbox(str(post.box)).now() + 3_600_000
    later = OpenMailbox(str(post.box), clock=lambda: in_an_hour)
    post.send("x", OTHER, "one")
    rings = [SessionBrake(desk, OTHER).may_ring(Delivery(desk).peek(OTHER)) for desk in (later, later)]
    assert ([ring.wakes for ring in rings], rings[1].why) == ([True, False], "at most 1 wakes a day")
    heir = client.agent(OTHER)
    assert (heir["name"], heir["continues"]) == ("Ann", [ME])
    assert set(heir["tags"]) == {"role:architect", "project:inscription", "concern:x"}
    assert client.agent(ME)["state"] == "dead"
    late = post.send("x", "Ann", "by name")
    assert late[:8] in client.context("UserPromptSubmit", session_id=OTHER)


def test_a_fork_beside_its_living_origin_is_told_that_the_name_is_taken(client: Client) -> None:
    """It gets another name, and none of the origin's mail."""
    env = {"AGENT_MAILBOX_NAME": "Ann"}
    client.hook("SessionStart", env=env)
    sent = client.post.send("x", "Ann")
    text = client.context("SessionStart", session_id=OTHER, source="fork", env=env)
    assert "taken" in text
    assert sent[:8] not in text
    assert client.agent(OTHER)["name"] in NAMES
    assert sent[:8] in client.context("UserPromptSubmit")


@pytest.mark.parametrize("event", ANSWERED)
def test_a_subagent_consumes_nothing(client: Client, event: str) -> None:
    """A hook with ``agent_id`` is the parent's child: not a byte out, the parent's mail unread, its state as before."""
    client.hook("SessionStart")
    sent = client.post.send("x", ME)
    before = {name: data for name, data in client.post.snapshot().items() if name.endswith(".jsonl")}
    assert client.hook(event, agent_id="a1", agent_type="Explore").raw == b""
    assert {name: data for name, data in client.post.snapshot().items() if name.endswith(".jsonl")} == before
    assert client.post.unread(ME) == [sent]


# -- the session's own commands ---------------------------------------------------------------------------------------


def test_the_environment_file_is_written_only_where_the_client_sets_no_session(client: Client, tmp_path: Path) -> None:
    """Once, behind what others wrote; a shell that reads it knows the session; with the client's variable, nothing."""
    path = tmp_path / "env.sh"
    client.hook("SessionStart", env={"CLAUDE_ENV_FILE": str(path)})
    assert not path.exists()
    path.write_text("export OTHERS=1")
    for _ in range(2):
        client.hook("SessionStart", env={"CLAUDE_ENV_FILE": str(path), "CLAUDE_CODE_SESSION_ID": None})
    assert path.read_text() == f"export OTHERS=1\nexport AGENT_MAILBOX_SESSION='{ME}'\n"
    client.hook("UserPromptSubmit", env={"CLAUDE_ENV_FILE": str(path / "no"), "CLAUDE_CODE_SESSION_ID": None})
    told = subprocess.run(
        ["/bin/sh", "-c", f'. "{path}"; printf %s "$AGENT_MAILBOX_SESSION$OTHERS"'],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert told.stdout.decode() == ME + "1"


def test_an_environment_file_that_cannot_be_written_does_not_stop_the_mail(client: Client, tmp_path: Path) -> None:
    """It is told, and the session has its mail."""
    client.post.send("x", "all", "there")
    env: dict[str, str | None] = {"CLAUDE_ENV_FILE": str(tmp_path), "CLAUDE_CODE_SESSION_ID": None}
    assert "there" in client.context("SessionStart", env=env)


@pytest.mark.parametrize(
    "hostile",
    [
        "x'; touch pwned; '",
        "$(touch pwned)",
        "`touch pwned`",
        "a\nexport PATH=.",
        "../../../../pwned",
        "a b",
        "-rf",
        "all",
        "é",
    ],
)
def test_a_hostile_session_id_reaches_neither_a_shell_nor_a_path(client: Client, tmp_path: Path, hostile: str) -> None:
    """Refused with a message to the person; no file is written or made anywhere."""
    path = tmp_path / "env.sh"
    before = sorted(tmp_path.rglob("*"))
    result = client.hook(
        "SessionStart", session_id=hostile, env={"CLAUDE_ENV_FILE": str(path), "CLAUDE_CODE_SESSION_ID": None}
    )
    assert list(result.json) == ["systemMessage"]
    assert result.json["systemMessage"].isprintable()
    assert sorted(tmp_path.rglob("*")) == before
    assert client.post.lines(ROSTER) == []


# -- the budget -------------------------------------------------------------------------------------------------------

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")


def told(client: Client, event: str, **how: Any) -> str:
    """What an event tells the model, in whichever shape; checked to be under the cap."""
    return client.context(event, **how)


@pytest.mark.parametrize(
    ("event", "body"),
    [
        *((event, "short") for event in EVENTS),
        ("Stop", "long"),
        ("PostToolUse", "one line"),
        ("SessionStart", "emoji"),
        ("UserPromptSubmit", "quotes"),
    ],
)
def test_what_does_not_fit_stays_unread_and_comes_next(client: Client, event: str, body: str) -> None:
    """However many messages of whatever size: under the cap each time, in order, each exactly once, all in the end."""
    text = {
        "short": "hello",
        "long": "a line of some length\n" * 400,
        "one line": "x" * 30_000,
        "emoji": "\U0001f600" * 5000,
        "quotes": '"\\' * 8000,
    }[body]
    client.hook("SessionStart")
    count = 300 if body == "short" else 60
    batch = "\n".join(json.dumps({"recipient": ME, "content": f"{n:02} {text}"}) for n in range(count))
    sent = client.post.ok("send", "--jsonl", "-", "--from", "x", stdin=batch)["ids"]
    unread = client.post.unread(ME)
    assert unread == sent
    rounds = 0
    while unread:
        answer = told(client, event)
        left = client.post.unread(ME)
        shown = unread[: len(unread) - len(left)]
        assert shown
        assert left == unread[len(shown) :]
        for message_id in shown:
            assert message_id[:8] in answer
        for message_id in left:
            assert f"\n{message_id[:8]}  " not in answer
        assert left == [] or f"{len(left)} more unread" in answer
        unread, rounds = left, rounds + 1
    assert told(client, event) == ""
    assert rounds > 1


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "s" * 50_000},
        {"sender": "s" * 50_000},
        {"id": "i" * 50_000},
        {"thread": "t" * 50_000},
        {"recipient": [ME, *(f"role:{n:0100}" for n in range(500))]},
        {"recipient": ["role:" + "r" * 50_000, "all"]},
        {"content": "\n" * 50_000 + "x"},
        {"content": "\u200b" * 20_000},
    ],
    ids=lambda f: next(iter(f)) + str(len(next(iter(f.values())))),
)
def test_no_single_field_of_a_foreign_record_breaks_the_budget(client: Client, fields: dict[str, Any]) -> None:
    """Whatever another program wrote into the log: under the cap, and other mail still gets through."""
    client.hook("SessionStart", env={"AGENT_MAILBOX_ROLE": "r" * 128})
    client.post.append(MESSAGES, record(**{"recipient": ME, **fields}))
    after = client.post.send("x", ME, "behind it")
    answers = [told(client, "UserPromptSubmit"), told(client, "Stop"), told(client, "UserPromptSubmit")]
    assert after[:8] in "".join(answers)
    assert answers[-1] == ""


def test_no_agent_of_many_roles_or_names_breaks_the_budget(client: Client) -> None:
    """A sender's roles, a shared role's holders, a hundred bad tags in the environment."""
    many = [f"role{n:03}-{'x' * 100}" for n in range(150)]
    client.post.register("bob", *[word for role in many for word in ("--role", role)])
    for n in range(120):
        client.post.append(
            ROSTER,
            {
                "event": "register",
                "session_id": f"{n:03}-{'y' * 100}",
                "tags": ["role:builder"],
                "name": "n" * 100 + str(n),
            },
        )
    sent = client.post.send("bob", "all", "hello")
    bad = ",".join(f"bad{n}{'z' * 100}" for n in range(150))
    text = client.context("SessionStart", env={"AGENT_MAILBOX_ROLE": "builder", "AGENT_MAILBOX_TAGS": bad})
    assert sent[:8] in text
    sent = client.post.send("bob", "role:builder,all", "again")
    assert sent[:8] in client.context("UserPromptSubmit")


def test_the_configured_budget_counts_below_the_cap(client: Client) -> None:
    """``[hook] tokens``; more than the client's cap is brought down to it."""
    client.post.register(ME)
    for tokens, most in ((200, 800), (500, 2000), (2000, 8000), (100_000, CAP)):
        client.post.file("config.toml").write_text(f"[hook]\ntokens = {tokens}\n")
        for n in range(30):
            client.post.send("x", ME, f"{n} " + "word " * 250)
        text = client.context("SessionStart")
        assert utf16(text) <= most
        client.post.check(ME)


# -- when something is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ANSWERED)
@each(
    "stdin",
    [
        b"",
        b" \n",
        b"not json",
        b"[]",
        b"{}",
        b'{"session_id": 5}',
        b'{"session_id": ""}',
        b"\xff\xfe",
        b'{"session_id": "x"',
    ],
)
def test_bad_input_is_one_line_for_the_person_and_exit_0(client: Client, event: str, stdin: bytes) -> None:
    """A systemMessage (none at the end of a session, where it would not be shown), one line on stderr, no change."""
    before = client.post.snapshot()
    env = {**client.env, "CLAUDE_CODE_SESSION_ID": None}
    result = client.post.call("hook", event, stdin=stdin, env=env)
    assert result.rc == 0
    assert len(result.stderr.splitlines()) == 1
    if event == "SessionEnd":
        assert result.stdout == ""
    else:
        assert list(result.json) == ["systemMessage"]
    assert client.post.snapshot() == before


def test_fields_of_the_wrong_kind_count_as_absent(client: Client) -> None:
    """The hook treats a field of the wrong kind as absent, and still shows the mail."""
    client.post.send("x", "all", "there")
    text = client.context(
        "SessionStart", source=7, cwd=["x"], hook_event_name=None, transcript_path=None, unknown={"deep": [[[[1]]]]}
    )
    assert "there" in text
    client.post.send("x", ME, "again")
    assert "again" in client.context("Stop", stop_hook_active="false", last_assistant_message="x" * 2_000_000)


def test_a_wrong_configuration_stops_no_mail_of_a_hook_and_is_said_at_the_start(client: Client) -> None:
    """The session hears of it once, with the file; its mail is shown by the default settings."""
    client.post.file("config.toml").write_text("[ttl")
    client.post.send("x", "all", "there")
    text = client.context("SessionStart")
    assert str(client.post.file("config.toml")) in text
    assert "there" in text
    client.post.send("x", ME, "again")
    text = client.context("UserPromptSubmit")
    assert "again" in text
    assert "TOML" not in text


@pytest.mark.parametrize("what", ["log is a directory", "log is a link", "heartbeats", "unreadable roster"])
def test_an_unreadable_mailbox_is_a_message_to_the_person(client: Client, what: str) -> None:
    """systemMessage and exit 0; the model is told nothing, a stop is not blocked, the end is silent."""
    post = client.post
    if what == "heartbeats":
        shutil.rmtree(post.file(HEARTBEATS))
        post.file(HEARTBEATS).write_text("")
    elif what == "unreadable roster":
        post.file(ROSTER).mkdir()
    else:
        post.file(MESSAGES).unlink()
        if what == "log is a directory":
            post.file(MESSAGES).mkdir()
        else:
            post.file(MESSAGES).symlink_to("/etc/passwd")
    result = client.hook("SessionStart")
    assert list(result.json) == ["systemMessage"]
    assert len(result.json["systemMessage"]) < 1000
    assert len(result.stderr.splitlines()) == 1
    for event in ("UserPromptSubmit", "Stop"):
        answer = client.hook(event)
        assert answer.raw == b"" or list(answer.json) == ["systemMessage"]
    assert client.hook("SessionEnd").raw == b""


def test_outside_a_mailbox_hooks_are_silent(program: Program) -> None:
    """No mailbox anywhere: not a byte, exit 0, and none is made."""
    for event in ANSWERED:
        result = program.call("hook", event, stdin=json.dumps({**SAMPLES[event], "cwd": str(program.cwd)}))
        assert (result.rc, result.stdout, result.stderr) == (0, "", "")
    assert list(program.cwd.iterdir()) == []


def test_the_project_directory_decides_which_mailbox(program: Program) -> None:
    """CLAUDE_PROJECT_DIR before the call's ``cwd`` before the process's own."""
    for name in ("env", "call", "own"):
        where = program.scratch / name
        where.mkdir()
        assert program.call("init", cwd=where).rc == 0
        assert program.call("send", "--from", "x", "--to", "all", "--body", f"in {name}", cwd=where).rc == 0
    call = {"session_id": ME, "source": "startup", "cwd": str(program.scratch / "call")}
    env: dict[str, str | None] = {"CLAUDE_PROJECT_DIR": str(program.scratch / "env")}
    own = program.scratch / "own"
    assert "in env" in program.call("hook", "SessionStart", stdin=json.dumps(call), env=env, cwd=own).stdout
    assert "in call" in program.call("hook", "SessionStart", stdin=json.dumps(call), cwd=own).stdout
    del call["cwd"]
    assert "in own" in program.call("hook", "SessionStart", stdin=json.dumps(call), cwd=own).stdout


def test_a_hook_whose_output_nobody_takes_leaves_the_mail_unread(client: Client) -> None:
    """A reader that is gone: exit 0, nothing recorded, shown next time."""
    client.hook("SessionStart")
    sent = client.post.send("x", ME)
    read, write = os.pipe()
    os.close(read)
    env = {**client.env}
    with client.post.start("hook", "UserPromptSubmit", stdout=write, env=env) as child:
        os.close(write)
        _, err = child.communicate(json.dumps(SAMPLES["UserPromptSubmit"]).encode(), timeout=PATIENCE)
    assert child.returncode == 0
    assert b"Traceback" not in err
    assert client.post.unread(ME) == [sent]
    assert sent[:8] in client.context("UserPromptSubmit")


def _count_naps(process: int) -> int:
    """Return how often a process waited so far."""
    return int(Path(f"/proc/{process}/status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells that the hook waits")
def test_a_client_that_reads_late_is_shown_its_mail_once(client: Client) -> None:
    """A hook waits for a busy client, longer than a command for its reader. What the client takes counts as shown."""
    assert READER_WAIT < TIMEOUT
    client.hook("SessionStart")
    sent = client.post.send("x", ME)
    with client.post.start("hook", "UserPromptSubmit", env={**client.env}, python=IMPATIENT) as child:
        assert child.stdin is not None
        child.stdin.write(json.dumps(SAMPLES["UserPromptSubmit"]).encode())
        child.stdin.close()
        child.stdin = None
        until(lambda: child.poll() is not None or waiting_bytes(child.stdout))
        late = _count_naps(child.pid) + 20  # a command gives up after 8 looks
        until(lambda: child.poll() is not None or _count_naps(child.pid) >= late)
        assert child.poll() is None, child.communicate()
        out, _ = child.communicate(timeout=PATIENCE)
    assert sent[:8] in out.decode()
    assert client.post.unread(ME) == []


def test_role_mail_that_another_is_being_shown_is_not_shown_by_a_hook(client: Client) -> None:
    """The rest is delivered at once; the hook is not held up, and nobody gets the role's mail twice."""
    client.hook("SessionStart", env={"AGENT_MAILBOX_ROLE": "builder"})
    client.post.register("bob", "--role", "builder")
    role, own = client.post.send("x", "role:builder"), client.post.send("x", ME)
    texts: list[str] = []

    def show(items: list[Item]) -> list[Item]:
        texts.append(client.context("UserPromptSubmit"))
        return items

    assert Mailbox(str(client.post.box)).deliver("bob", show) == 1
    assert own[:8] in texts[0]
    assert role[:8] not in texts[0]


# -- the shell's side -------------------------------------------------------------------------------------------------


def test_the_shims_of_a_checkout_call_the_program(client: Client) -> None:
    """session-start.sh and check-mailbox.sh from any directory, by the program that is on the PATH."""
    tools = client.post.scratch / "bin"
    tools.mkdir()
    hooks = client.post.scratch / "check out" / "hooks"
    shutil.copytree(ROOT / "hooks", hooks)
    bare = {**client.post.environ(client.env), "PATH": "/usr/bin:/bin"}
    missing = _shim(client, hooks / "session-start.sh", bare)
    assert (missing.rc, list(missing.json)) == (0, ["systemMessage"])
    missing = _shim(client, hooks / "check-mailbox.sh", bare)
    assert (missing.rc, missing.raw) == (0, b"")  # the session was told
    program = tools / "agent-mailbox"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_mailbox "$@"\n')
    program.chmod(0o755)
    for name in ("session-start.sh", "check-mailbox.sh"):
        sent = client.post.send("x", "all", "hello " * 400)
        result = _shim(client, hooks / name, {**client.post.environ(client.env), "PATH": f"{tools}:/usr/bin:/bin"})
        assert (result.rc, result.stderr) == (0, ""), result
        assert sent[:8] in result.json["hookSpecificOutput"]["additionalContext"]
        assert f"all: agent-mailbox show {sent[:8]}" in result.json["hookSpecificOutput"]["additionalContext"]


def _shim(client: Client, path: Path, env: dict[str, str]) -> Result:
    call = json.dumps(SAMPLES["SessionStart"]).encode()
    done = subprocess.run([path], input=call, env=env, cwd=client.project, capture_output=True, timeout=PATIENCE)
    return Result(done.returncode, done.stdout, done.stderr)


def test_the_command_that_a_hook_tells_the_agent_works(client: Client) -> None:
    """The hook tells a command that works outside the PATH: it has the program's whole path, and no shell variable."""
    client.post.register("x")
    client.post.send("x", "all", "hello", "--ack")
    text = client.context("SessionStart", how=client.post.run)
    command = text.splitlines()[-1].replace("…", "an answer")
    assert "$" not in command
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=client.post.environ(client.env),
        cwd=client.project,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done
    assert client.post.objects(MESSAGES)[-1]["content"] == "an answer"
    assert client.post.objects(MESSAGES)[-1]["sender"] == ME


def test_a_session_is_named_once_for_its_life_and_no_name_comes_back(client: Client) -> None:
    """Two sessions have two names, stable over resume and clear, which others write to. After one is dead and its entry
    renamed, its name is nobody's: a newcomer with every other name used up gets a number, not the old one's mail."""
    post = client.post
    post.send("ann", "role:Otter", "for somebody to come")
    assert "you are " in client.context("SessionStart")
    name = client.agent()["name"]
    assert name in NAMES
    client.hook("SessionStart", source="resume")
    assert client.agent()["name"] == name
    sent = post.send("ann", name)
    client.hook("SessionStart", session_id=OTHER)
    other = client.agent(OTHER)["name"]
    assert other != name
    post.ok("roster", "update", "--session-id", OTHER, "--name", "Renamed")
    post.ok("roster", "retire", ME)
    everyone = [
        json.dumps({"event": "register", "session_id": f"s{at}", "timestamp": stamp(), "name": one}).encode() + b"\n"
        for at, one in enumerate(NAMES)
        if one not in (name, other, "Otter")
    ]
    post.append(ROSTER, *everyone)
    newcomer = "d3355fc7-6f1e-4997-83ed-699c6c8ae685"
    text = client.context("SessionStart", session_id=newcomer)
    assert client.agent(newcomer)["name"].endswith("-2")
    assert sent[:8] not in text
    assert "somebody to come" not in text


def test_two_sessions_that_start_at_once_get_two_names(client: Client) -> None:
    """Both begin at the same name of the list: the roster's lock lets one of them have it."""
    alike: dict[str, list[str]] = {}
    for one in (f"twin{at}" for at in range(2 * len(NAMES))):
        alike.setdefault(next(given_names._candidates(one)), []).append(one)
    pair = next(both for both in alike.values() if len(both) > 1)[:2]
    children = [
        client.post.start("hook", "SessionStart", env={**client.env, "CLAUDE_CODE_SESSION_ID": one}) for one in pair
    ]
    for one, child in zip(pair, children, strict=True):
        call = {**SAMPLES["SessionStart"], "session_id": one, "cwd": str(client.project)}
        child.communicate(json.dumps(call).encode())
    names = [client.agent(one)["name"] for one in pair]
    assert len({*names}) == 2
    assert {*names} <= {*NAMES}


def test_each_delivery_tells_the_person_whose_mail_it_is_and_the_model_nothing_of_that(client: Client) -> None:
    """It is a line for the terminal with sender and title: other people's words are harmless and clipped. The first one
    says who the session is."""
    post = client.post
    post.register("bob", "--name", "Bob")
    post.send("bob", "project:inscription", "text", "--subject", "Schema change?")
    first = client.hook("SessionStart").json
    name = client.agent()["name"]
    assert first["systemMessage"] == f"agent-mailbox: this session is {name}; mail from Bob: Schema change?"
    assert "systemMessage" not in client.context("UserPromptSubmit")
    for number in range(5):
        post.send("bob", ME, f"\x1b[2J{number}\nmail from user: " + "x" * 500)
    for event in ("UserPromptSubmit", "PostToolBatch", "Stop"):
        post.send("user", ME, f"for {event}")
        said = client.hook(event).json
        assert said["systemMessage"].startswith("mail from Bob: " if event == "UserPromptSubmit" else "mail from user")
        assert said["systemMessage"].isprintable()
        assert len(said["systemMessage"]) < 400
        assert said["systemMessage"] not in client.post.call("history", "--all").stdout


def test_a_session_whose_mailbox_was_moved_tells_its_person(post: Post) -> None:
    """It tells so in the new place and in the one that is gone, at a start and a prompt. Mail waits, and comes after
    ``init``. A session that never had a mailbox is told nothing."""
    before, after = post.scratch / "before", post.scratch / "after"
    here: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None}
    before.mkdir()
    post.ok("init", before / "data", env=here)
    client = Client(post)
    client.env |= {**here, "CLAUDE_PROJECT_DIR": str(before)}
    client.hook("SessionStart")
    words = ("send", "--from", "bob", "--to", ME, "--body", "MAIL", "--dir", before / "data")
    sent = str(post.ok(*words)["message"]["id"])
    before.rename(after)
    moved = {"CLAUDE_PROJECT_DIR": str(after)}
    gone = f"agent-mailbox: this session's mailbox is no longer at {before / 'data'}, so no mail comes."
    gone += " If you moved it, run"
    for event in ("SessionStart", "UserPromptSubmit"):
        assert client.hook(event).json == {"systemMessage": f"{gone} agent-mailbox init DIR, its new place"}
        assert client.hook(event, env=moved).json == {"systemMessage": f"{gone} agent-mailbox init {after / 'data'}"}
    for event in ("PostToolUse", "Stop", "SessionEnd"):
        assert client.hook(event, env=moved).raw == b""
    assert client.hook("UserPromptSubmit", session_id=OTHER, env=moved).raw == b""
    post.ok("init", after / "data", env=here)
    assert sent[:8] in client.context("SessionStart", source="resume", env=moved)
    assert client.context("UserPromptSubmit", env=moved) == ""


# -- a session with a lead --------------------------------------------------------------------------------------------


LEAD = "lead-1"


@pytest.fixture
def led(tmp_path: Path) -> Client:
    """A session that registered by its hook and was given a lead."""
    post = Post(tmp_path)
    client = Client(post)
    post.register(LEAD, "--name", "Lee")
    client.hook("SessionStart")
    post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
    return client


def idle(post: Post) -> list[dict[str, Any]]:
    """What was said about turns that ended."""
    bodies = [json.loads(m["content"]) for m in post.objects(MESSAGES) if m.get("type") == "control"]
    return [body for body in bodies if body["type"] == "idle_notification"]


def test_the_lead_is_told_once_when_a_turn_ends(led: Client) -> None:
    """A worker's Stop tells its lead once that the turn ended. A Stop that shows mail, or another event, tells
    nothing."""
    led.post.send(LEAD, ME, "one more thing")
    assert "one more thing" in led.context("Stop")
    for event in ("UserPromptSubmit", "PostToolUse"):
        assert led.hook(event).raw == b""
    assert idle(led.post) == []
    assert led.hook("Stop", stop_hook_active=True).raw == b""
    assert [(body["state"], body["idleReason"], body["agentId"]) for body in idle(led.post)] == [
        ("idle", "available", ME)
    ]
    assert "| idle_notification: available" in led.post.call("check", "--session", LEAD).stdout
    led.hook("UserPromptSubmit")
    led.hook("Stop")
    assert len(idle(led.post)) == 2


def test_a_session_without_a_lead_tells_nobody(tmp_path: Path) -> None:
    """A session without a lead tells nobody that its turn ended."""
    client = Client(Post(tmp_path))
    client.hook("SessionStart")
    assert client.hook("Stop").raw == b""
    assert client.post.lines(MESSAGES) == []


@pytest.mark.parametrize("how", ["led by the person", "its lead is gone"])
def test_the_person_is_not_told_of_every_turn(led: Client, how: str) -> None:
    """It would be mail that nobody reads; nor does the guard start anything for it."""
    if how == "led by the person":
        led.post.ok("roster", "update", "--session-id", ME, "--lead", "user")
    else:
        led.post.ok("roster", "retire", LEAD)
    led.hook("UserPromptSubmit")
    before = led.post.lines(MESSAGES)
    assert led.hook("Stop").raw == b""
    assert led.post.lines(MESSAGES) == before
    shown = led.post.file(".cache", "quiet", ME).read_bytes()
    assert shown == (b"" if how == "led by the person" else b"led\n")


def test_the_guard_lets_the_end_of_a_turn_through_for_a_lead(post: Post) -> None:
    """The shim starts Python at each Stop of a session that has a lead. Without mail, no other event starts it."""
    shim = Shim(post)
    shim.hook("SessionStart")
    shim.hook("Stop")
    assert shim.starts() == 1
    post.register(LEAD)
    post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
    for turn in (1, 2):
        shim.hook("UserPromptSubmit")
        shim.starts()
        for event in ("PostToolUse", "UserPromptSubmit"):
            assert shim.hook(event).raw == b""
        assert shim.starts() == 0
        assert shim.hook("Stop").raw == b""
        assert shim.starts() == 1
        assert len(idle(post)) == turn


def test_control_is_in_force_before_the_chat_that_came_with_it_is_shown(led: Client) -> None:
    """It is first, and what was refused of it says so; no reply to it is offered."""
    post = led.post
    post.send(LEAD, ME, "go ahead")
    post.ok("control", "mode", ME, "plan", "--session", LEAD)
    post.send("peer-1", ME, '{"type": "mode_set_request", "mode": "acceptEdits"}', "--type", "control", "--ack")
    assert post.ok("control", "mode", "--session", ME)["agents"][0]["mode"] == "plan"
    text = led.context("UserPromptSubmit")
    assert text.index("| mode_set_request: plan") < text.index("| go ahead")
    assert f"refused: peer-1 is not the lead of {ME}" in text
    assert " reply " not in text


def test_a_muted_lead_s_control_is_heard(led: Client) -> None:
    """Mail may be muted, coordination not."""
    led.post.ok("mute", LEAD, "--session", ME)
    led.post.send(LEAD, ME, "chat")
    led.post.ok("control", "request", "shutdown", ME, "--session", LEAD)
    text = led.context("UserPromptSubmit")
    assert "shutdown_request" in text
    assert "control answer shutdown-" in text
    assert "chat" not in text
