"""Calls of a bound session that another tool's hook changed after the rules judged them: who is told of which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.store.files import system
from tests.claude.asking import ENV, LEAD, ask, command
from tests.claude.shim import ME as SESSION
from tests.claude.shim import Shim
from tests.helpers import MESSAGES, each

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

FOREIGN = "/opt/tidy/rewrite --fast"
ACCEPTED = {"decision": "accept", "source": "hook"}


class Talk:
    """A transcript as Claude Code 2.1.329 writes it, and the hooks that are given its path."""

    def __init__(self, post: Post, file: Path) -> None:
        self.post, self.file = post, file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")

    def add(self, *lines: dict[str, Any]) -> None:
        """The client goes on."""
        with self.file.open("a") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def call(
        self,
        use: str,
        asked: str,
        ran: str | None,
        hook: str = FOREIGN,
        decided: Any = ACCEPTED,
        on: str = "PreToolUse",
    ) -> list[dict[str, Any]]:
        """The lines of one call: the model's, the hook's, the result."""
        given = {} if ran is None else {"updatedInput": {"command": ran}}
        said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", **given}}
        called = {"type": "tool_use", "name": "Bash", "input": {"command": asked}, "id": use}
        done = {"type": "tool_result", "content": "updatedInput", "tool_use_id": use}
        shown = {"type": "hook_success", "toolUseID": use, "hookEvent": on, "stdout": json.dumps(said), "command": hook}
        return [
            {"type": "assistant", "message": {"content": [called]}},
            {"type": "attachment", "attachment": shown},
            {"type": "user", "message": {"content": [done]}, "permissionDecision": decided},
        ]

    def look(self, event: str = "Permit", transcript: Path | None = None) -> list[dict[str, Any]]:
        """The next hook, and what was told until then, in order."""
        path = str(transcript or self.file)
        if event == "Permit":
            ask(self.post, given={"command": "ls"}, transcript_path=path)
        else:
            call = {"session_id": SESSION, "cwd": str(self.post.cwd), "transcript_path": path}
            assert self.post.call("hook", event, stdin=json.dumps(call), env=ENV).rc == 0
        texts = [m["content"] for m in self.post.objects(MESSAGES) if "call_changed" in m["content"]]
        return [json.loads(text) for text in texts]


@pytest.fixture
def talk(led: Post) -> Talk:
    """A session under a policy that denies ``touch``, which was asked about a first call."""
    command(led, "policy", SESSION, "--deny", "Bash(touch:*)")
    made = Talk(led, led.scratch / "talk/s.jsonl")
    made.add(*made.call("before", "ls", "touch before"))
    assert made.look() == []  # what ran before it was bound is nobody's
    return made


@each("event", ["Permit", "Stop", "SessionEnd"])
def test_the_lead_and_the_person_are_told_of_a_changed_call_once(talk: Talk, event: str) -> None:
    """The next hook tells the hook's name, what ran, and the rule that denies it. Another call that the hook changes is
    not told again."""
    talk.add(*talk.call("1", "ls", "touch x"))
    (said,) = talk.look(event)
    assert (said["tool"]["arguments"], said["ran"], said["hook"]) == ("ls", "touch x", FOREIGN)
    assert "denies Bash(touch:*)" in said["reason"]
    (mail,) = [m for m in talk.post.objects(MESSAGES) if "call_changed" in m["content"]]
    assert (mail["recipient"], mail["when"]) == ([LEAD, "user"], "now")
    talk.add(*talk.call("2", "ls", "touch y"))
    assert talk.look("Permit") == [said]
    log = talk.post.ok("control", "log")["messages"]
    assert [step["type"] for step in log].count("call_changed") == 1


def test_a_change_that_no_rule_denies_is_told_without_one_and_a_denied_one_beside_it(talk: Talk) -> None:
    """A harmless change comes first, and does not hide the other."""
    talk.add(*talk.call("1", "ls", "ls -l"), *talk.call("2", "ls", "touch x"), *talk.call("3", "ls", "pwd", "other"))
    assert [(said["ran"], "reason" in said, said["hook"]) for said in talk.look()] == [
        ("ls -l", False, FOREIGN),
        ("touch x", True, FOREIGN),
        ("pwd", False, "other"),
    ]


def test_what_did_not_change_behind_the_rules_is_not_told(talk: Talk) -> None:
    """Our own hook gives the lead's input. Others give the same input or none, or their call was denied. A hook of
    another event changes no call."""
    ours = "/p/.claude/hooks/agent-mailbox-hook Permit"
    rejected = {"decision": "reject", "source": "hook"}
    talk.add(
        *talk.call("1", "ls", "touch a", ours),
        *talk.call("2", "ls", "ls"),
        *talk.call("3", "ls", None),
        *talk.call("4", "ls", "touch a", decided=rejected),
        *talk.call("5", "ls", "touch a", on="PostToolUse"),
        {"type": "attachment", "attachment": ["updatedInput"]},
    )
    talk.file.open("a").write("updatedInput, no JSON\n")
    assert talk.look() == []


def test_a_call_that_still_runs_is_told_once_it_ended_and_a_subagent_s_too(talk: Talk) -> None:
    """Whether it was denied is known at its end. A subagent's calls are in a file beside, which comes later."""
    began, changed, ended = talk.call("1", "ls", "touch x")
    talk.add(began, changed, *talk.call("2", "ls", "ls"))
    assert talk.look() == []
    talk.add(ended)
    assert [said["ran"] for said in talk.look()] == ["touch x"]
    inner = Talk(talk.post, talk.file.parent / "s/subagents/agent-a.jsonl")
    inner.add(*inner.call("3", "ls", "touch sub", "another"))
    assert [said["hook"] for said in talk.look()] == [FOREIGN, "another"]


def test_the_end_of_a_turn_waits_a_moment_for_what_the_client_writes_late(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the end of a call that was asked about is missing, the hook looks again."""
    late = talk.call("toolu_1", "ls", "touch x")
    assert talk.look() == []
    monkeypatch.setattr(system, "sleep", lambda _: talk.add(*late))
    assert [said["ran"] for said in talk.look("Stop")] == ["touch x"]
    monkeypatch.setattr(system, "sleep", None)
    assert len(talk.look("Stop")) == 1


def test_a_transcript_that_was_replaced_or_removed_holds_up_nothing(talk: Talk) -> None:
    """The changes in the new one are told; the same hook's is not told twice."""
    talk.add(*talk.call("1", "ls", "touch x" * 50))
    assert len(talk.look()) == 1
    talk.file.write_text("")
    talk.add(*talk.call("1", "ls", "touch x"), *talk.call("2", "ls", "touch y", "new"))
    assert [said["hook"] for said in talk.look()] == [FOREIGN, "new"]
    talk.file.unlink()
    assert len(talk.look()) == 2


def test_a_session_that_nothing_binds_is_not_looked_at(post: Post) -> None:
    """Nothing is told or kept of it."""
    talk = Talk(post, post.scratch / "s.jsonl")
    talk.look("SessionStart")
    for event in ("Permit", "Stop", "SessionEnd"):
        talk.add(*talk.call(event, "ls", "touch x"))
        assert talk.look(event) == []
    assert not (post.user_state / "changed").exists()


def test_the_guard_lets_the_end_of_a_bound_session_s_turn_through(post: Post) -> None:
    """Python looks then, though no lead waits for the turn's end. No other event starts it."""
    shim = Shim(post)
    shim.hook("SessionStart")
    post.ok("control", "policy", SESSION, "--deny", "Bash(touch:*)", "--session", "user")
    ask(post, given={"command": "ls"})
    shim.hook("UserPromptSubmit")
    shim.starts()
    for event, starts in (("PostToolUse", 0), ("Stop", 1), ("Stop", 1), ("UserPromptSubmit", 0)):
        assert shim.hook(event).raw == b""
        assert shim.starts() == starts, event
