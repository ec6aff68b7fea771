"""The inboxes that the founding text captured, rebuilt from what it prints; entries as a client writes them."""

from __future__ import annotations

import json
from typing import Any


def inner(**told: Any) -> str:
    """A protocol message as it is in ``text``: JSON in JSON."""
    return json.dumps(told, separators=(",", ":"))


IDLE = inner(
    type="idle_notification", **{"from": "docs-types"}, timestamp="2026-02-07T15:20:49.498Z", idleReason="available"
)
SHUTDOWN = inner(
    type="shutdown_request",
    requestId="shutdown-1770477661492@docs-events",
    **{"from": "team-lead"},
    reason="Work is complete. Shutting down the team. Thank you!",
    timestamp="2026-02-07T15:21:01.492Z",
)
APPROVED = inner(type="shutdown_response", requestId="shutdown-1770477661492@docs-events", approved=True)
TASK = inner(
    type="task_assignment",
    taskId="1",
    subject="Analyze task file structure and lifecycle",
    description="...",
    assignedBy="task-analyst",
    timestamp="2026-02-09T15:08:11.039Z",
)
PLAN = inner(type="plan_approval_request", requestId="plan-1", **{"from": "docs-types"}, plan="1. read\n2. write")
ANSWER = inner(type="plan_approval_response", requestId="plan-1", approved=False, feedback="smaller steps")


def entry(sender: str, text: str, timestamp: str = "2026-02-07T15:20:46.348Z", **more: Any) -> dict[str, Any]:
    """An entry as the founding text has it."""
    return {"from": sender, "text": text, "timestamp": timestamp, **more}


def native(sender: str, text: str, number: int, **more: Any) -> dict[str, Any]:
    """An entry as client 2.1.329 writes it."""
    made = {"summary": text[:20], "msgV": 1, "msg_id": f"00000000-0000-4000-8000-{number:012}", "type": "message"}
    return entry(sender, text, f"2026-11-21T09:00:{number % 60:02}.000Z", **made, read=False, **more)


DONE = (
    "Task complete. The file already has a module-level doc comment at lines 1-3. The documentation is appropriate and"
    " describes the module's purpose. Both cargo build and cargo clippy pass successfully."
)
TEAMS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "humble-chasing-goose": {
        "team-lead": [
            entry("docs-events", DONE, summary="Task complete - events.rs docs verified", color="green", read=True),
            entry("docs-types", IDLE, "2026-02-07T15:20:49.498Z", color="blue", read=True),
            entry("docs-events", APPROVED, "2026-02-07T15:21:02.123Z", read=True),
            entry("docs-types", PLAN, "2026-02-07T15:22:02.123Z", color="blue", read=False),
        ],
        "docs-events": [entry("team-lead", SHUTDOWN, "2026-02-07T15:21:01.492Z", read=True)],
        "docs-types": [entry("team-lead", ANSWER, "2026-02-07T15:23:01.492Z", read=False)],
    },
    "moonlit-chasing-meerkat": {
        "team-lead": [
            entry(
                "doc-writer-1",
                "Both files already have comprehensive module-level documentation...",
                "2026-02-07T15:35:15.573Z",
                summary="Documentation already complete",
                color="blue",
                read=True,
            )
        ],
        "doc-writer-1": [
            entry(
                "team-lead",
                "Thanks for checking! Those files were already completed in a previous commit. Stand by while the other"
                " teammates finish their work.",
                "2026-02-07T15:35:24.484Z",
                summary="Good - those are already done",
                read=False,
            )
        ],
    },
    "analysis-team": {
        "task-analyst": [entry("task-analyst", TASK, "2026-02-09T15:08:11.039Z", color="blue", read=False)]
    },
}
"""Team, inbox, entries."""


def config(team: str, *names: str, lead_session: str = "lead-session", **more: Any) -> dict[str, Any]:
    """A team's configuration; the lead is always a member."""
    members = [{"agentId": f"{name}@{team}", "name": name, "agentType": "general-purpose"} for name in names]
    lead = {"agentId": f"team-lead@{team}", "name": "team-lead", "agentType": "team-lead"}
    return {
        "name": team,
        "leadAgentId": f"team-lead@{team}",
        "leadSessionId": lead_session,
        "members": [lead, *members],
        **more,
    }
