"""A teammate's commands carry its lead's session id: each must name the teammate, and the lead need not name itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.helpers import Post

LEAD = "5e1a715d-642b-432d-9b4b-3e64c31ebdc5"
TEAM = "session-5e1a715d"
ANN = f"ann@{TEAM}"
WORKER = "aann-cd7673bb94c974e5"


def asked(post: Post, command: str, agent_id: str | None = WORKER, **fields: Any) -> str:
    """The hook before a Bash call; why it is refused, or nothing."""
    transcript = post.home / f".claude/projects/-x/{LEAD}.jsonl"
    call = {
        "session_id": LEAD,
        "transcript_path": str(transcript),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "agent_id": agent_id,
        **fields,
    }
    result = post.call("hook", "PreToolUse", stdin=json.dumps(call), env={"CLAUDECODE": "1"})
    assert result.rc == 0
    return str(json.loads(result.stdout)["hookSpecificOutput"]["permissionDecisionReason"]) if result.stdout else ""


@pytest.fixture
def team(post: Post) -> Post:
    """A session that leads a team, as its client writes it down."""
    beside = post.home / f".claude/projects/-x/{LEAD}/subagents"
    beside.mkdir(parents=True)
    (beside / f"agent-{WORKER}.meta.json").write_text(json.dumps({"name": "ann", "teamName": TEAM}))
    (beside / "agent-plain.meta.json").write_text(json.dumps({"agentType": "general-purpose"}))
    (beside / "agent-broken.meta.json").write_text("{")
    return post


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("agent-mailbox reply 1234abcd --body x", "--from"),
        ("agent-mailbox send --to bob --body x", "--from"),
        ("agent-mailbox send --to bob --body x --from $CLAUDE_CODE_SESSION_ID", "--from"),
        (f"agent-mailbox send --to bob --body x --from {LEAD}", "--from"),
        (f"agent-mailbox send --to bob --body x --from {LEAD[:8]}", "--from"),
        (f"agent-mailbox send --to {ANN} --body x", "--from"),
        (f"AGENT_MAILBOX_SESSION={ANN} agent-mailbox check", "--session"),
        ("cd /x && agent-mailbox check", "--session"),
        ("bash -c 'agent-mailbox ack 1234abcd'", "--session"),
        ("echo agent-mailbox check | sh", "--session"),
        ("agent-mailbox control approve perm-1", "--session"),
        ("agent-mailbox roster heartbeat", "--session-id"),
        ("scripts/agent_roster.py update --add-tags concern:x", "--session-id"),
    ],
)
def test_a_teammate_that_names_nobody_or_its_lead_is_told_its_name(team: Post, command: str, option: str) -> None:
    """The refusal says what to add; it is the same in every wrapping."""
    assert f"Add `{option} {ANN}`" in asked(team, command)


@pytest.mark.parametrize(
    "command",
    [
        f"agent-mailbox reply 1234abcd --body x --from {ANN}",
        f"agent-mailbox check --session={ANN}",
        f"agent-mailbox roster heartbeat {ANN}",
        "agent-mailbox show 1234abcd",
        "agent-mailbox roster list",
        "agent-mailbox teams show",
        "git log --grep agent-mailbox",
    ],
)
def test_in_its_own_name_and_where_no_name_counts_it_goes_on(team: Post, command: str) -> None:
    """Nothing is said."""
    assert asked(team, command) == ""


def test_another_teammates_name_is_another(team: Post) -> None:
    """The refusal tells it to name itself."""
    assert f"Add `--session {ANN}`" in asked(team, f"agent-mailbox check --session bo@{TEAM}")
    assert "another session's entry" in asked(team, f"agent-mailbox roster retire {ANN} bo@{TEAM}")


@pytest.mark.parametrize("agent_id", [None, "plain", "broken", "unknown", "../agent-x", "a\0b", "n" * 5000])
def test_of_a_session_and_its_plain_subagents_the_hook_says_nothing(team: Post, agent_id: str | None) -> None:
    """They act in the session's name. The command itself refuses every other one, by the processes above it."""
    for command in ("check", f"check --session {LEAD}", f"check --session {ANN}"):
        assert asked(team, f"agent-mailbox {command}", agent_id) == ""


def test_after_a_clear_the_team_stands_where_it_began(team: Post) -> None:
    """Its lead has another id and transcript; the teammate is who it was."""
    after = {"session_id": "lead-2", "transcript_path": str(team.home / ".claude/projects/-x/lead-2.jsonl")}
    assert f"Add `--session {ANN}`" in asked(team, "agent-mailbox check", **after)
