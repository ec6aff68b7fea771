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
    where = post.home / ".claude/teams" / TEAM
    where.mkdir(parents=True)
    config = {"leadSessionId": LEAD, "leadAgentId": f"team-lead@{TEAM}"}
    (where / "config.json").write_text(json.dumps(config))
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
    """As for any session."""
    assert f"Add `--session {ANN}`" in asked(team, f"agent-mailbox check --session bo@{TEAM}")
    assert "another session's entry" in asked(team, f"agent-mailbox roster retire {ANN} bo@{TEAM}")


@pytest.mark.parametrize("agent_id", [None, "plain", "broken", "unknown", "../agent-x", "a\0b", "n" * 5000])
def test_a_session_and_its_plain_subagents_act_in_the_sessions_name(team: Post, agent_id: str | None) -> None:
    """Without naming it; a teammate's name is another's to them."""
    assert asked(team, "agent-mailbox check", agent_id) == ""
    assert asked(team, f"agent-mailbox check --session {LEAD}", agent_id) == ""
    assert "somebody else" in asked(team, f"agent-mailbox check --session {ANN}", agent_id)


def test_after_a_clear_the_team_stands_where_it_began(team: Post) -> None:
    """Its lead has another id and transcript; the teammate is who it was, and so is the lead, by the roster."""
    after = {"session_id": "lead-2", "transcript_path": str(team.home / ".claude/projects/-x/lead-2.jsonl")}
    assert f"Add `--session {ANN}`" in asked(team, "agent-mailbox check", **after)
    command = f"agent-mailbox check --session team-lead@{TEAM}"
    assert "somebody else" in asked(team, command, None, **after)
    team.register(LEAD, "--name", "Lee")
    team.ok("roster", "freeze", LEAD)
    team.register("lead-2", "--name", "Lee")
    assert asked(team, command, None, **after) == ""


def test_a_lead_may_speak_as_the_lead_it_is(team: Post) -> None:
    """In the team that it leads; nobody else may."""
    command = f"agent-mailbox reply 1234abcd --body x --from team-lead@{TEAM}"
    assert asked(team, command, None) == ""
    assert "somebody else" in asked(team, command, None, session_id="another")
    assert "somebody else" in asked(team, command.replace(TEAM, "session-other"), None)
    assert "somebody else" in asked(team, command.replace("team-lead@", "boss@"), None)
    assert "somebody else" in asked(team, command.replace(TEAM, "../teams"), None)
    assert "somebody else" in asked(team, command, "plain")
