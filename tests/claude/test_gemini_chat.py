"""Gemini CLI's file of a conversation as evidence: what a hook gave the model, and what the client took back (as seen
with 0.61.0)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import chat_file
from agent_mailbox.clients.permission import gemini_tools
from agent_mailbox.clients.transcript import ERASED, OPEN, PASSED, SEEN, SHOWN
from agent_mailbox.core import instant
from agent_mailbox.mailbox.delivery import Offer
from tests.helpers import READS, Post, each

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "67198278-6da6-4741-b1eb-f95e38cd9544"
AT, BEFORE = "2026-11-27T01:54:33.000Z", "2026-11-27T01:54:31.000Z"
OFFER = Offer("1a2b3c", instant.parse("2026-11-27T01:54:32.000Z"), 0, ("m",))
TEXT = "Agent mail 1a2b3c\nf11ef1fc x → all\n| hello"
HOOK = f"<hook_context>{TEXT}</hook_context>"
NOTE = "\n\n[System] Tool input parameters were modified by a hook before execution."


def user(name: str, *texts: str) -> dict[str, Any]:
    """A message of the person or of hooks."""
    return {"id": name, "timestamp": AT, "type": "user", "content": [{"text": text} for text in texts]}


def result(output: str, key: str = "output") -> dict[str, Any]:
    """A part that gives a tool's result back."""
    return {"functionResponse": {"id": "c", "name": "run_shell_command", "response": {key: output}}}


def spoke(name: str, at: str = AT, **more: Any) -> dict[str, Any]:
    """An answer of the model."""
    return {"id": name, "timestamp": at, "type": "gemini", "content": "", "model": "gemini-2.5-pro", **more}


def used(name: str, output: str) -> dict[str, Any]:
    """The same answer, written again with the result of its call."""
    return spoke(name, BEFORE, toolCalls=[{"id": "c", "args": {}, "result": [result(output)]}])


def stay(*names: str) -> dict[str, Any]:
    """The client's list of the messages that stay, or that it makes of them."""
    return {"$set": {"messages": [{"id": name, "type": "user", "content": []} for name in names], "lastUpdated": AT}}


ASKED, SHOWS = user("a", "PROMPT"), user("b", "go on", HOOK)
BEHIND = {"id": "d", "timestamp": AT, "type": "user", "content": [result(f"hi\n\n{HOOK}")]}
STOPGAP = {"id": "s", "timestamp": AT, "type": "gemini", "content": [{"text": "closed"}]}
CASES = (
    ([], OPEN),
    ([spoke("c", BEFORE)], OPEN),
    ([spoke("c")], PASSED),
    ([SHOWS], SHOWN),
    ([SHOWS, spoke("c")], SEEN),
    ([SHOWS, STOPGAP], SHOWN),
    ([SHOWS, {"id": "c", "timestamp": AT, "type": "error", "content": "400", "model": "x"}], SHOWN),
    ([user("b", TEXT), spoke("c")], SEEN),
    ([user("b", f"| {TEXT}"), spoke("c")], PASSED),
    ([user("b", f"see:\n{TEXT}"), spoke("c")], PASSED),
    ([user("b", HOOK.replace("1a2b3c", "1a2b3d")), spoke("c")], PASSED),
    ([spoke("c", BEFORE), used("c", f"hi\n\n{HOOK}{NOTE}")], SHOWN),
    ([spoke("c", BEFORE), used("c", f"hi\n\n{HOOK}"), used("c", f"hi\n\n{HOOK}")], SHOWN),
    ([spoke("c", BEFORE), used("c", f"hi\n\n{HOOK}"), BEHIND, spoke("e")], SEEN),
    ([BEHIND, spoke("e")], SEEN),
    ([{**BEHIND, "content": [result(HOOK, "error")]}, spoke("e")], PASSED),
    ([{**BEHIND, "content": [result(f"{TEXT}\n<hook_context>other</hook_context>")]}, spoke("e")], PASSED),
    ([spoke("c", toolCalls=[{"args": {"command": HOOK}}])], PASSED),
    ([ASKED, SHOWS, stay("a")], ERASED),
    ([ASKED, SHOWS, spoke("c"), stay("a")], ERASED),
    ([ASKED, SHOWS, spoke("c"), {"$rewindTo": "b"}], ERASED),
    ([ASKED, SHOWS, spoke("c"), {"$rewindTo": "c"}], SEEN),
    ([ASKED, SHOWS, stay("a"), user("e", "go on", HOOK), spoke("f")], SEEN),
    ([ASKED, SHOWS, spoke("c"), stay("a", "b", "c")], SEEN),
    ([SHOWS, spoke("c"), user("x", "summary"), stay("x", "c")], SEEN),
    ([ASKED, SHOWS, stay("a"), stay("a", "b"), spoke("c")], SEEN),
    ([ASKED, stay("a", "c", "c"), SHOWS, stay("a", "c", "c")], ERASED),
    ([{"id": 5}, {"id": "b", "content": 5}, {"$set": {"messages": 5}}, {"$set": []}, {"$rewindTo": "z"}], OPEN),
)


@each("case", CASES)
def test_what_was_shown_what_was_seen_and_what_the_client_took_back(tmp_path: Path, case: Any) -> None:
    """Seen is what the model answered to. A failed request or Escape takes messages back, with the mail that was beside
    them. A compaction does not. Quotes by others show nothing."""
    lines, state = case
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + '{"id":"to')
    assert chat_file.states(str(path), [OFFER]) == {"1a2b3c": state}
    begun = chat_file.states(str(path), [OFFER], "next")
    assert begun == {"1a2b3c": ERASED if state in (OPEN, PASSED) else state}, "a prompt begins without it"
    assert chat_file.states(str(path), [OFFER], TEXT) == {"1a2b3c": state}, "it begins by it"
    assert chat_file.states(str(tmp_path / "none"), [OFFER]) is None


class Gemini:
    """The client, as far as hooks see it."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.path = post.scratch / "chats" / f"session-2026-11-27T01-54-{SESSION[:8]}.jsonl"
        self.path.parent.mkdir()
        self.count = 0

    def hook(self, event: str, **how: Any) -> str:
        """A hook's text for the model."""
        said = {"session_id": SESSION, "transcript_path": str(self.path), "timestamp": AT, **how}
        done = self.post.call(
            "hook", event, stdin=json.dumps(said), env={"GEMINI_SESSION_ID": SESSION, "GEMINI_CLI": None}
        )
        answer = json.loads(done.stdout or "{}")
        return str(answer.get("hookSpecificOutput", answer).get("additionalContext", answer.get("reason", "")))

    def write(self, *lines: dict[str, Any]) -> None:
        """Lines of the file."""
        with open(self.path, "a") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def speak(self) -> None:
        """The model answers now."""
        self.count += 1
        self.write(spoke(f"answer-{self.count}", instant.text(self.post_time())))

    def post_time(self) -> int:
        """A moment after whatever was shown."""
        return max(instant.parse(r["timestamp"]) for r in self.post.objects(READS)) + 1000

    def events(self) -> list[str]:
        """What the reads log says, in order."""
        return [r["event"] for r in self.post.objects(READS)]


def test_mail_beside_a_prompt_that_gemini_takes_back_comes_with_the_next_one(post: Post) -> None:
    """A refused request and Escape take the prompt back. So the next prompt's hook offers the mail again, once. At the
    turn's end it is seen. What came behind a tool is not seen before the turn ends, for Escape may take all of it."""
    gemini = Gemini(post)
    gemini.write(user("first", "context"))
    gemini.hook("UserPromptSubmit", prompt="hello")
    sent = post.send("x", SESSION, "MAIL")
    text = gemini.hook("UserPromptSubmit", prompt="go on")
    gemini.write(user("p1", "go on", f"<hook_context>{text}</hook_context>"), stay("first"))
    again = gemini.hook("UserPromptSubmit", prompt="go on")
    assert sent[:8] in text
    assert sent[:8] in again
    gemini.write(user("p2", "go on", f"<hook_context>{again}</hook_context>"))
    gemini.speak()
    assert gemini.hook("PostToolUse", tool_name="t", tool_response={"llmContent": "hi"}) == ""
    assert gemini.events() == ["read", "release", "read"], "the turn may still be taken back"
    gemini.speak()
    assert gemini.hook("Stop", prompt="go on") == ""
    assert gemini.events() == ["read", "release", "read", "seen"]


def test_behind_a_tool_that_failed_gemini_is_shown_nothing(post: Post) -> None:
    """It gives the model the error alone. So the mail waits for the next tool, or the turn's end. There it becomes a
    prompt: that prompt's hook does not take it for lost."""
    gemini = Gemini(post)
    gemini.hook("UserPromptSubmit", prompt="hello")
    sent = post.send("x", SESSION, "MAIL")
    failed = {"llmContent": "no", "error": {"message": "File not found", "type": "file_not_found"}}
    assert gemini.hook("PostToolUse", tool_name="read_file", tool_response=failed) == ""
    text = gemini.hook("Stop", prompt="hello")
    assert sent[:8] in text
    assert gemini.hook("UserPromptSubmit", prompt=text) == ""
    gemini.write(user("p", text))
    gemini.speak()
    assert gemini.hook("Stop", prompt=text, stop_hook_active=True) == ""
    assert gemini.events() == ["read", "seen"]


def test_a_gemini_session_that_comes_back_is_shown_what_its_file_lacks(post: Post) -> None:
    """It has no hook at its start. The first prompt tells: what its file holds was replayed, the rest is shown."""
    gemini = Gemini(post)
    gemini.hook("UserPromptSubmit", prompt="hello")
    post.send("x", SESSION, "HELD")
    text = gemini.hook("UserPromptSubmit", prompt="go on")
    gemini.write(user("p", "go on", f"<hook_context>{text}</hook_context>"))
    post.send("x", SESSION, "LACKED")
    assert "LACKED" in gemini.hook("PostToolUse", tool_name="t", tool_response={"llmContent": "hi"})
    gemini.hook("SessionEnd", reason="exit")
    again = gemini.hook("UserPromptSubmit", prompt="again")
    assert ("HELD" in again, "LACKED" in again) == (False, True)


@each(
    "case",
    (
        ("/h/.gemini/tmp/p/chats/session-2026-11-27T01-54-67198278.jsonl", True),
        ("/h/.gemini/tmp/p/chats/session-2026-11-27T01-54-67198279.jsonl", False),
        (f"/h/.gemini/tmp/p/chats/{SESSION}/0a1b2c3d.jsonl", False),
        ("", False),
    ),
)
def test_a_gemini_session_s_own_chat_alone_is_looked_at(case: Any) -> None:
    """A subagent's lies in a directory of its parent's, and its hooks bear the parent's id."""
    path, kept = case
    said = {"session_id": SESSION, "transcript_path": path}
    found = client_input.parse_call("Stop", said, {"GEMINI_SESSION_ID": SESSION}, "/")
    assert bool(found.conversation) == kept


def test_an_answer_before_a_tool_has_gemini_s_form(post: Post) -> None:
    """Rules know its tools by Claude Code's names. It takes a refusal or another input in forms of its own, and drops
    what is said beside a tool."""
    gemini = Gemini(post)
    gemini.hook("UserPromptSubmit", prompt="hello")
    post.ok("control", "policy", SESSION, "--deny", "Bash(rm:*)", "--deny", "mcp__deploy", "--session", "user")

    def asked(event: str, tool: str, **given: str) -> str:
        said = {"tool_name": tool, "tool_input": given, "cwd": str(post.cwd)}
        answer = {"session_id": SESSION, "transcript_path": str(gemini.path), "timestamp": AT, **said}
        environ = {"GEMINI_SESSION_ID": SESSION, "GEMINI_CLI": None}
        return str(json.loads(post.call("hook", event, stdin=json.dumps(answer), env=environ).stdout or "{}"))

    file, inside = str(post.cwd / ".gemini/settings.json"), str(post.file("config.toml"))
    assert "'decision': 'deny'" in asked("Permit", "run_shell_command", command="rm -r x")
    assert "denies mcp__deploy" in asked("Permit", "deploy", where="x")
    assert asked("Permit", "run_shell_command", command="ls") == "{}"
    assert "own settings" in asked("Files", "write_file", file_path=file, content="x")
    assert "the mailbox's own" in asked("Files", "replace", file_path=inside, instruction="x")
    assert asked("Files", "write_file", file_path=str(post.cwd / "free"), content="x") == "{}"
    assert "sends the file" in asked(
        "PreToolUse", "run_shell_command", command="agent-mailbox send --body @/etc/hostname"
    )
    for event, body, form in (
        ("deny", {"permissionDecisionReason": "WHY"}, {"decision": "deny", "reason": "WHY"}),
        ("allow", {"updatedInput": {"command": "x"}}, {"hookSpecificOutput": {"hookEventName": "BeforeTool"}}),
        ("allow", {"additionalContext": "leased"}, {}),
    ):
        text = gemini_tools.as_it_takes(json.dumps({"hookSpecificOutput": {"permissionDecision": event, **body}}))
        found = json.loads(text or "{}")
        assert found.get("hookSpecificOutput", {}).pop("tool_input", {"command": "x"}) == {"command": "x"}
        assert found == form
