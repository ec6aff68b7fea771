"""Before a tool of Codex, which takes a refusal there and goes on at any other answer (seen with 0.169.0)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.claude.asking import LEAD, Meanwhile, command, decision
from tests.claude.test_permit import ME
from tests.helpers import PATIENCE, Post

TOUCH = {"command": "touch x"}
WHY = {**TOUCH, "description": "to mark it"}
"""As the client's own question has it."""


def ask(post: Post, event: str = "Permit", given: dict[str, Any] | None = None, tool: str = "Bash", **env: str) -> Any:
    """One call of Codex's, as it was captured; the part of the answer that decides, None where nothing was said."""
    call = {
        "session_id": ME,
        "turn_id": "01a209a7-69f6-7c02-ba2e-d48eceaf34ba",
        "transcript_path": str(post.scratch / "rollout.jsonl"),
        "cwd": str(post.cwd),
        "hook_event_name": "PermissionRequest" if event == "PermissionRequest" else "PreToolUse",
        "model": "stand-in",
        "permission_mode": "default",
        "tool_name": tool,
        "tool_input": TOUCH if given is None else given,
        "tool_use_id": "call_000100",
    }
    result = post.call("hook", event, stdin=json.dumps(call), env=env or None)
    assert result.rc == 0, result
    return decision(result.stdout)


def test_a_file_is_not_sent_unasked(post: Post) -> None:
    """The guard refuses a file that Codex would send, for Codex cannot ask its person. It says who may send it."""
    post.register(ME, "--name", "Me")
    post.register("other")
    file = {"command": "agent-mailbox send --to other --body @/etc/hostname"}
    said = ask(post, "PreToolUse", file)
    assert said[0] == "deny"
    assert "only the person may run this" in said[1]
    assert ask(post, "PreToolUse", file, CLAUDECODE="1", CLAUDE_CODE_SESSION_ID=ME)[0] == "ask"
    for text in ("agent-mailbox send --from Me --to other --body x", "make", "agent-mailbox check"):
        assert ask(post, "PreToolUse", {"command": text}) is None


def test_rules_bind_and_what_they_allow_is_passed_in_silence(led: Post) -> None:
    """An allowing answer before a tool would be an error there. Its own question is answered."""
    command(led, "policy", ME, "--deny", "Bash(rm:*)", "--allow", "Bash(touch:*)")
    assert ask(led, given={"command": "rm -rf x"})[0] == "deny"
    assert ask(led) is None
    assert ask(led, "PermissionRequest", WHY)[0] == "allow"
    assert ask(led, "PermissionRequest", {"command": "rm x"})[0] == "deny"


@pytest.mark.parametrize("approved", [True, False])
def test_the_lead_decides_where_the_mode_asks(led: Post, approved: bool) -> None:
    """Once: its approval also answers the question that the client may ask about this call, and no other."""
    command(led, "mode", ME, "safe")
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, approved, notes="NOTES")):
        said = ask(led)
    if not approved:
        assert said[0] == "deny"
        assert "NOTES" in said[1]
        return
    assert said is None
    assert ask(led, "PermissionRequest", WHY)[0] == "allow"
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, False)):
        assert ask(led, "PermissionRequest", WHY)[0] == "deny"


def test_a_command_that_the_lead_changed_runs_by_itself(led: Post) -> None:
    """Before a tool the client takes another input, and its own question about that is answered once."""
    command(led, "mode", ME, "safe")
    changed = {"command": "touch y"}
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, True, updated_input=changed)):
        assert ask(led)[::2] == ("allow", changed)
    assert ask(led, "PermissionRequest", {**changed, "description": "x"})[0] == "allow"
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, False)):
        assert ask(led, given=changed)[0] == "deny"


@pytest.mark.parametrize(("event", "tool"), [("PermissionRequest", "Bash"), ("Permit", "mcp__a__b")])
def test_elsewhere_a_changed_input_is_a_call_that_the_model_is_told_to_make(
    led: Post,
    event: str,
    tool: str,
) -> None:
    """Its own question takes no other input, nor does a tool that is no command. That call then passes once, without
    asking again."""
    command(led, "mode", ME, "safe")
    changed = {"command": "touch y"}
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, True, updated_input=changed)):
        said = ask(led, event, tool=tool)
    assert said[0] == "deny"
    assert f'call {tool} again, with exactly {{"command":"touch y"}}' in said[1]
    assert ask(led, given=changed, tool=tool) is None


def test_whom_nobody_leads_asks_the_person(post: Post) -> None:
    """A policy without a lead: the client cannot be made to ask, so the person decides in the console."""
    post.register(ME)
    post.ok("control", "mode", ME, "safe", "--session", "user")
    post.file("config.toml").write_text(f"[control]\ntimeout = {PATIENCE}\n")
    with Meanwhile(post, lambda desk, request: desk.answer("user", request.id, True), who="user"):
        assert ask(post) is None


def test_without_an_answer_the_call_is_refused_whatever_the_default(led: Post) -> None:
    """The guard refuses a call of Codex that nobody answered, even if the default is to ask."""
    led.file("config.toml").write_text("[control]\ntimeout = 0.2\n")
    (led.user_state / "config.toml").write_text('[control]\ndefault = "ask"\n')
    command(led, "mode", ME, "safe")
    said = ask(led)
    assert said[0] == "deny"
    assert "did not answer" in said[1]


def test_a_patch_is_judged_as_an_edit_of_each_of_its_files(led: Post) -> None:
    """The strictest judgement counts, whatever comes first in it; one that names no file is no edit that a rule
    allows."""
    command(led, "mode", ME, "safe")
    command(led, "policy", ME, "--deny", "Edit(secret/**)", "--allow", "Edit(src/**)")

    def patched(*names: str) -> Any:
        files = "".join(f"*** Add File: {name}\n+x\n" for name in names)
        return ask(led, given={"command": f"*** Begin Patch\n{files}*** End Patch\n"}, tool="apply_patch")

    assert patched("src/a", "src/b") is None
    for names in (("src/a", "secret/b"), ("secret/b", "src/a")):
        assert patched(*names)[0] == "deny"
    for names in (("src/a", "c"), ()):
        with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, False, notes="NOT_THAT")):
            assert "NOT_THAT" in patched(*names)[1]
