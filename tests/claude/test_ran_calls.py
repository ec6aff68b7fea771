"""Calls that another tool's hook changed in clients that show what ran: their hooks' input as each was seen to write it
(Codex 0.169.0, OpenCode 1.18.33, Gemini CLI 0.61.0, Copilot CLI 1.0.102)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_mailbox.store.files import system
from tests.claude.asking import LEAD, Meanwhile, command
from tests.claude.shim import ME, Shim
from tests.claude.test_copilot_hooks import CHILD
from tests.claude.test_opencode_plugin import SESSION, Plugged
from tests.helpers import MESSAGES, Post

FOREIGN = "/opt/tidy/rewrite --fast"
BEFORE = {"hooks": [{"type": "command", "command": FOREIGN}]}
CLIENTS = ["codex", "gemini", "opencode", "copilot"]
ENVIRON = {
    "codex": {},
    "gemini": {"GEMINI_SESSION_ID": ME},
    "opencode": {"OPENCODE_SESSION_ID": ME},
    "copilot": {"COPILOT_CLI": "1"},
}
PLACES = {
    "codex": (".codex/hooks.json", {"hooks": {"PreToolUse": [BEFORE]}}),
    "gemini": (".gemini/settings.json", {"hooks": {"BeforeTool": [BEFORE]}}),
    "opencode": (".opencode/opencode.json", {"plugin": [FOREIGN]}),
    "copilot": (".github/hooks/tidy.json", {"hooks": {"preToolUse": [{"type": "command", "bash": FOREIGN}]}}),
}
"""Where each shows another tool's hook."""


class Caller:
    """A client that calls the hooks of one session."""

    def __init__(self, post: Post, name: str) -> None:
        self.post, self.name = post, name

    def call(self, event: str, given: dict[str, Any], use: str = "1", tool: str = "Bash", **more: Any) -> str:
        """One hook about a tool; what it answered."""
        said: dict[str, Any] = {"session_id": ME, "cwd": str(self.post.cwd), "tool_input": given, "tool_name": tool}
        if self.name == "codex":
            said |= {"turn_id": "t", "tool_use_id": use}
        elif self.name == "opencode":
            said |= {"tool_use_id": use}
        else:
            said |= {"timestamp": "2026-11-27T16:51:21.743Z"}
        if self.name == "gemini":
            said["tool_name"] = {"Bash": "run_shell_command", "Edit": "replace"}.get(tool, tool)
        done = self.post.call("hook", event, stdin=json.dumps(said | more), env=ENVIRON[self.name])
        assert done.rc == 0, done
        return done.stdout

    def run(self, asked: str, ran: str, use: str = "1", **more: Any) -> None:
        """A command that was judged, and then ran, perhaps as another one."""
        self.call("Permit", {"command": asked, "description": "why"}, use, **more)
        self.call("PostToolUse", {"command": ran, "description": "x"}, use, **more)

    def told(self) -> list[dict[str, Any]]:
        """What was told of changed calls."""
        texts = [m["content"] for m in self.post.objects(MESSAGES) if "call_changed" in m["content"]]
        return [json.loads(text) for text in texts]


@pytest.fixture(params=CLIENTS)
def caller(led: Post, request: pytest.FixtureRequest) -> Caller:
    """A client whose session is under a policy that denies ``touch``."""
    made = Caller(led, request.param)
    command(led, "policy", ME, "--deny", "Bash(touch:*)")
    return made


def test_the_lead_and_the_person_are_told_of_a_changed_call_once(caller: Caller) -> None:
    """They are told what ran, what was asked, the hook in the client's settings, and the rule that denies it. A
    harmless change by the same hook is one more message, and a call that ran as asked is none."""
    name, text = PLACES[caller.name]
    file = caller.post.cwd / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(text))
    caller.run("pwd", "pwd")
    assert caller.told() == []
    caller.run("ls", "touch x", "2")
    (said,) = caller.told()
    assert (said["tool"]["name"], said["tool"]["arguments"], said["ran"]) == ("Bash", "ls", "touch x")
    assert said["hook"] == FOREIGN
    assert "denies Bash(touch:*)" in said["reason"]
    (mail,) = [m for m in caller.post.objects(MESSAGES) if "call_changed" in m["content"]]
    assert (mail["recipient"], mail["when"]) == ([LEAD, "user"], "now")
    caller.run("ls", "touch y", "3")
    caller.run("ls", "ls -l", "4")
    assert [(one["ran"], "reason" in one) for one in caller.told()] == [("touch x", True), ("ls -l", False)]
    log = caller.post.ok("control", "log")["messages"]
    assert [step["type"] for step in log].count("call_changed") == 2


def test_a_call_that_was_denied_lets_no_other_one_run_as_it(caller: Caller) -> None:
    """The model asks for what is denied. Then a hook turns another call into that. No file shows the hook."""
    assert "deny" in caller.call("Permit", {"command": "touch x"})
    caller.run("ls", "touch x", "2")
    (said,) = caller.told()
    assert (said["ran"], said["hook"]) == ("touch x", "of another tool, in no file that we know")


def test_calls_at_once_and_a_subagent_s_are_told_apart(caller: Caller) -> None:
    """Two were judged before either ran, and they end in another order. What a subagent ran is compared, too."""
    caller.call("Permit", {"command": "ls"}, "1")
    caller.call("Permit", {"command": "pwd"}, "2")
    caller.call("PostToolUse", {"command": "pwd"}, "2")
    caller.call("PostToolUse", {"command": "ls"}, "1")
    assert caller.told() == []
    of_child = {"agent_id": CHILD}
    if caller.name == "copilot":
        return  # which session a subagent of its works for, only its process tells
    caller.run("ls", "touch x", "3", **of_child)
    assert [one["ran"] for one in caller.told()] == ["touch x"]


def test_an_input_that_the_lead_put_in_is_no_other_tool_s(caller: Caller) -> None:
    """The command that the lead gave is the one that was let pass."""
    command(caller.post, "mode", ME, "safe")
    given = {"command": "ls -l"}
    with Meanwhile(caller.post, lambda desk, one: desk.answer(LEAD, one.id, True, updated_input=given)):
        assert "ls -l" in caller.call("Permit", {"command": "make"})
    caller.call("PostToolUse", {"command": "ls -l"})
    assert caller.told() == []


def test_what_was_never_judged_and_a_session_that_nothing_binds_tell_nothing(post: Post) -> None:
    """A call from before the session was bound, a tool without an input, an unbound session: nothing is kept of it."""
    caller = Caller(post, "codex")
    caller.run("ls", "touch x")
    assert not (post.user_state / "changed").exists()
    post.register(LEAD)
    post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
    command(post, "policy", ME, "--deny", "Bash(touch:*)")
    caller.call("PostToolUse", {"command": "touch x"}, "7")
    caller.call("PostToolUse", {}, "8", tool_input=None)
    assert caller.told() == []


def test_no_answer_waits_where_the_record_cannot_be_kept(led: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk changes no answer, and tells nothing."""
    command(led, "policy", ME, "--deny", "Bash(touch:*)")
    caller = Caller(led, "codex")

    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(system, "make_directory", fail)
    caller.run("ls", "touch x")
    assert caller.told() == []


@pytest.mark.parametrize("name", CLIENTS)
def test_the_doctor_and_who_binds_a_session_name_the_hook(post: Post, name: str) -> None:
    """Both name it by its file and its command, where the client shows them. Our own hooks are none of these."""
    place, text = PLACES[name]
    post.ok("install", name, "--project", post.cwd)
    caller = Caller(post, name)
    first = "UserPromptSubmit" if name == "gemini" else "SessionStart"
    caller.call(first, {}, prompt="x", source="startup")
    told = post.ok("control", "policy", ME, "--deny", "Bash(touch:*)", "--session", "user")
    assert FOREIGN not in json.dumps(told)
    assert FOREIGN not in post.call("doctor").stdout
    file = post.cwd / place
    known = json.loads(file.read_text()) if file.exists() else {}
    for event, groups in text.get("hooks", {}).items():
        known.setdefault("hooks", {}).setdefault(event, []).extend(groups)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**text, **known}))
    told = post.ok("control", "mode", ME, "safe", "--session", "user")
    assert f"{file} has a hook that may change a call" in json.dumps(told, ensure_ascii=False)
    doctor = post.call("doctor").stdout
    assert f"{FOREIGN}: another tool's hook, which may change a command" in doctor


def test_the_guard_lets_what_ran_through_for_a_bound_session(post: Post) -> None:
    """Python compares behind each tool then. For a session that nothing binds no event starts it."""
    session = Plugged(Shim(post))
    session.hook("SessionStart", source="startup")
    session.hook("Permit", tool_name="Bash", tool_input={"command": "ls"})
    session.shim.starts()
    session.hook("PostToolUse")
    assert session.shim.starts() == 0
    post.ok("control", "policy", SESSION, "--deny", "Bash(touch:*)", "--session", "user")
    session.hook("Permit", tool_name="Bash", tool_input={"command": "ls"})
    session.hook("UserPromptSubmit")
    session.shim.starts()
    session.hook("PostToolUse")
    assert session.shim.starts() == 1
