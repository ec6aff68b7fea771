"""Every sample of a control message in the founding texts, as its JSON is there.

Where a text writes a placeholder (``[iso8601]``, ``a | b``, ``{"any": "json"}`` for a rule), a value is instead.
"""

from __future__ import annotations

import json
from typing import Any

WHEN = "2026-02-07T15:21:01.492Z"

# The catalog of schemas.
CATALOG: dict[str, str] = {
    "task_assignment": """{"type": "task_assignment", "requestId": "task-123", "timestamp": "2026-02-07T15:21:01.492Z",
        "task": {"title": "Short label", "instructions": "What to do", "context": "Optional extra context",
        "planModeRequired": true}}""",
    "task_progress": """{"type": "task_progress", "requestId": "task-123", "timestamp": "2026-02-07T15:21:01.492Z",
        "progress": {"phase": "verifying", "message": "Human-readable progress update"}}""",
    "task_completed": """{"type": "task_completed", "requestId": "task-123", "timestamp": "2026-02-07T15:21:01.492Z",
        "result": {"summary": "What changed", "artifacts": ["optional references"], "errors": []}}""",
    "idle_notification": """{"type": "idle_notification", "timestamp": "2026-02-07T15:21:01.492Z", "state": "idle"}""",
    "plan_approval_request": """{"type": "plan_approval_request", "requestId": "plan-456",
        "timestamp": "2026-02-07T15:21:01.492Z", "plan": {"goal": "What will be done", "steps": ["step 1", "step 2"],
        "risks": ["what could go wrong"], "tooling": ["tools expected to be used"]}}""",
    "plan_approval_response": """{"type": "plan_approval_response", "requestId": "plan-456",
        "timestamp": "2026-02-07T15:21:01.492Z", "approved": true, "notes": "Optional reviewer notes",
        "policy": {"permissionMode": "default"}}""",
    "permission_request": """{"type": "permission_request", "requestId": "perm-789",
        "timestamp": "2026-02-07T15:21:01.492Z", "tool": {"name": "Bash", "arguments": "redacted or summarized"},
        "reason": "Why this tool is needed"}""",
    "permission_response": """{"type": "permission_response", "requestId": "perm-789",
        "timestamp": "2026-02-07T15:21:01.492Z", "approved": true, "mode": "locked-down",
        "notes": "Optional reason or instruction"}""",
    "sandbox_permission_request": """{"type": "sandbox_permission_request", "requestId": "net-101",
        "timestamp": "2026-02-07T15:21:01.492Z", "capability": "network",
        "details": {"hostnames": ["example.com"], "reason": "Why network is needed"}}""",
    "sandbox_permission_response": """{"type": "sandbox_permission_response", "requestId": "net-101",
        "timestamp": "2026-02-07T15:21:01.492Z", "approved": true, "scope": "session", "notes": "Optional"}""",
    "mode_set_request": """{"type": "mode_set_request", "timestamp": "2026-02-07T15:21:01.492Z", "mode": "safe",
        "policy": {"permissionMode": "default"}}""",
    "team_permission_update": """{"type": "team_permission_update", "timestamp": "2026-02-07T15:21:01.492Z",
        "rules": {"allowedTools": ["Bash(git:*)", "Read", "Edit"], "disallowedTools": ["Bash(rm -rf:*)"]}}""",
    "shutdown_request": """{"type": "shutdown_request", "requestId": "shutdown-1",
        "timestamp": "2026-02-07T15:21:01.492Z", "reason": "Optional"}""",
    "shutdown_approved": """{"type": "shutdown_approved", "requestId": "shutdown-1",
        "timestamp": "2026-02-07T15:21:01.492Z"}""",
    "shutdown_rejected": """{"type": "shutdown_rejected", "requestId": "shutdown-1",
        "timestamp": "2026-02-07T15:21:01.492Z", "reason": "Optional"}""",
}

# The protocol's cheat sheet and the observed message system: text of the sample, fields it must come to.
OBSERVED: list[tuple[str, dict[str, Any]]] = [
    (
        """{"type": "permission_request", "requestId": "req_123", "agentId": "worker-agent-id", "toolName": "Bash",
        "toolUseId": "toolu_abc", "description": "Why the tool is needed", "input": {"any": "json"},
        "permissionSuggestions": []}""",
        {
            "request_id": "req_123",
            "agent_id": "worker-agent-id",
            "tool": "Bash",
            "use_id": "toolu_abc",
            "reason": "Why the tool is needed",
            "input": {"any": "json"},
        },
    ),
    (
        """{"type": "permission_request", "requestId": "r", "tool": {"name": "Bash",
        "arguments": {"command": "ls"}}}""",
        {"tool": "Bash", "input": {"command": "ls"}},
    ),
    (
        """{"type": "permission_response", "requestId": "req_123", "subtype": "success",
        "response": {"updatedInput": {"any": "json"}, "permissionUpdates": [{"any": "json"}]}}""",
        {"request_id": "req_123", "approved": True, "updated_input": {"any": "json"}, "updates": ({"any": "json"},)},
    ),
    (
        """{"type": "permission_response", "requestId": "req_123", "subtype": "error", "error": "Permission denied"}""",
        {"request_id": "req_123", "approved": False, "notes": "Permission denied"},
    ),
    (
        """{"type": "sandbox_permission_request", "requestId": "sb_123", "workerId": "worker-agent-id",
        "workerName": "worker-1", "workerColor": "cyan", "hostPattern": {"host": "example.com"}, "createdAt": 0}""",
        {
            "request_id": "sb_123",
            "agent_id": "worker-agent-id",
            "agent_name": "worker-1",
            "capability": "network",
            "hosts": ("example.com",),
            "timestamp": 0,
        },
    ),
    (
        """{"type": "sandbox_permission_response", "requestId": "sb_123", "host": "example.com", "allow": true,
        "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {"request_id": "sb_123", "approved": True, "hosts": ("example.com",), "scope": "one-shot"},
    ),
    (
        """{"type": "plan_approval_request", "from": "worker-1", "timestamp": "2026-02-07T15:21:01.492Z",
        "planFilePath": "/abs/path/to/PLAN.md", "planContent": "markdown plan contents", "requestId": "plan_123"}""",
        {
            "request_id": "plan_123",
            "agent_name": "worker-1",
            "file": "/abs/path/to/PLAN.md",
            "content": "markdown plan contents",
        },
    ),
    (
        """{"type": "plan_approval_request", "requestId": "u-1", "from": "worker-1", "plan": "plan content"}""",
        {"request_id": "u-1", "agent_name": "worker-1", "content": "plan content"},
    ),
    (
        """{"type": "plan_approval_response", "requestId": "plan_123", "approved": true,
        "timestamp": "2026-02-07T15:21:01.492Z", "permissionMode": "default"}""",
        {"request_id": "plan_123", "approved": True, "mode": "default"},
    ),
    (
        """{"type": "plan_approval_response", "requestId": "plan_123", "approved": false,
        "feedback": "Need to handle the empty input case", "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {"request_id": "plan_123", "approved": False, "notes": "Need to handle the empty input case", "mode": ""},
    ),
    (
        """{"type": "shutdown_request", "requestId": "shutdown_456", "from": "team-lead", "reason": "Task completed",
        "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {"request_id": "shutdown_456", "agent_name": "team-lead", "reason": "Task completed"},
    ),
    (
        """{"type": "shutdown_approved", "requestId": "shutdown_456", "from": "worker-1",
        "timestamp": "2026-02-07T15:21:01.492Z", "paneId": "optional", "backendType": "optional"}""",
        {"request_id": "shutdown_456", "agent_name": "worker-1", "pane": "optional", "backend": "optional"},
    ),
    (
        """{"type": "shutdown_rejected", "requestId": "shutdown_456", "from": "worker-1", "reason": "Still working",
        "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {"request_id": "shutdown_456", "reason": "Still working"},
    ),
    (
        """{"type": "mode_set_request", "mode": "acceptEdits", "from": "team-lead"}""",
        {"mode": "acceptEdits", "agent_name": "team-lead"},
    ),
    (
        """{"type": "team_permission_update", "toolName": "Bash", "directoryPath": "/abs/path",
        "permissionUpdate": {"behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}]}}""",
        {"allow": ("Bash(npm test:*)",), "deny": (), "adds": True, "directory": "/abs/path"},
    ),
    (
        """{"type": "team_permission_update", "toolName": "Bash",
        "permissionUpdate": {"behavior": "deny", "rules": [{"ruleContent": "npm publish:*"}]}}""",
        {"allow": (), "deny": ("Bash(npm publish:*)",), "adds": True},
    ),
    (
        """{"type": "idle_notification", "from": "worker-1", "timestamp": "2026-02-07T15:21:01.492Z",
        "idleReason": "available", "summary": "optional", "completedTaskId": "optional",
        "completedStatus": "optional", "failureReason": "optional"}""",
        {"agent_name": "worker-1", "reason": "available", "summary": "optional", "task": "optional"},
    ),
    (
        """{"type": "task_assignment", "taskId": "task_123", "subject": "Fix the failing build",
        "description": "Details...", "assignedBy": "team-lead", "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {
            "request_id": "task_123",
            "title": "Fix the failing build",
            "instructions": "Details...",
            "agent_name": "team-lead",
            "plan_required": False,
        },
    ),
    (
        """{"type": "task_completed", "from": "worker-1", "taskId": "task_123",
        "taskSubject": "Fix the failing build", "timestamp": "2026-02-07T15:21:01.492Z"}""",
        {"request_id": "task_123", "title": "Fix the failing build", "agent_name": "worker-1"},
    ),
    (
        """{"type":"idle_notification","from":"docs-types","timestamp":"2026-02-07T15:20:49.498Z","idleReason":"available"}""",
        {"agent_name": "docs-types", "reason": "available", "state": "idle"},
    ),
    (
        """{"type":"shutdown_request","requestId":"shutdown-1770477661492@docs-events","from":"team-lead","reason":"Work is complete. Shutting down the team. Thank you!","timestamp":"2026-02-07T15:21:01.492Z"}""",  # noqa: E501 - as it is in the text
        {"request_id": "shutdown-1770477661492@docs-events", "timestamp": 1770477661492},
    ),
    (
        """{"type":"shutdown_response","requestId":"shutdown-1770477661492@docs-events","approved":true}""",
        {"request_id": "shutdown-1770477661492@docs-events"},
    ),
    (
        """{"type":"shutdown_response","requestId":"s-1","approved":false,"content":"Still working"}""",
        {"request_id": "s-1", "reason": "Still working"},
    ),
    (
        """{"type":"task_assignment","taskId":"1","subject":"Analyze task file structure and lifecycle","description":"...","assignedBy":"task-analyst","timestamp":"2026-02-09T15:08:11.039Z"}""",  # noqa: E501 - as it is in the text
        {"request_id": "1", "title": "Analyze task file structure and lifecycle", "agent_name": "task-analyst"},
    ),
]

VERBATIM = tuple(json.dumps(json.loads(text)) for text in (*CATALOG.values(), *(text for text, _ in OBSERVED)))
