"""Which rules a decider is offered to allow for good: the asker writes the suggestions."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.core.control import lasting, messages


def _asked(*rules: Any, behavior: str = "allow", tool: str = "Bash") -> messages.PermissionRequest:
    return messages.PermissionRequest(
        request_id="perm-1",
        tool=tool,
        suggestions=({"type": "addRules", "behavior": behavior, "rules": list(rules), "destination": "session"},),
    )


def test_a_narrow_rule_of_the_tool_is_offered_in_either_spelling() -> None:
    """The client's objects and its texts mean the same rule, once; what it denies is not offered."""
    both = _asked({"toolName": "Bash", "ruleContent": "make test:*"}, "Bash(make test:*)")
    assert lasting.offered(both) == ("Bash(make test:*)",)
    assert lasting.offered(_asked("mcp__db__query", tool="mcp__db__query")) == ("mcp__db__query",)
    assert lasting.offered(_asked("Bash(rm:*)", behavior="deny")) == ()
    assert lasting.offered(messages.PlanRequest(goal="g")) == ()


@pytest.mark.parametrize(
    "rule",
    [
        *("Bash", "Bash(*)", "Bash(:*)", "Bash( ** )", "Write(a)", "BashOutput(make)", "*", "Bash(", "Bash(a\nb)"),
        *(5, {"toolName": 1}, {}),
    ],
)
def test_one_wide_or_foreign_rule_makes_nothing_offered(rule: Any) -> None:
    """An asker that hides a wide rule among narrow ones gains nothing: no part of its suggestion is offered."""
    assert lasting.offered(_asked("Bash(make:*)", rule)) == ()


def test_more_rules_than_one_reads_are_not_offered() -> None:
    """A decision about a long list is none."""
    rules = [f"Bash(make {n})" for n in range(lasting.MOST + 1)]
    assert lasting.offered(_asked(*rules)) == ()
    assert len(lasting.offered(_asked(*rules[1:]))) == lasting.MOST
