"""The steps of requests and tasks: state × event → state, as tables. A step that is not in a table is refused.

Belongs here: the tables, and which message is which event of which flow. The event of an answer is its decision
(``control_requests``). ``authority`` says who may cause an event; the fold over the log is ``state``.
"""

from __future__ import annotations

from .messages import (
    TIMEOUT,
    Payload,
    PermissionRequest,
    PermissionResponse,
    PlanRequest,
    PlanResponse,
    SandboxRequest,
    SandboxResponse,
    ShutdownApproved,
    ShutdownRejected,
    ShutdownRequest,
    TaskAssignment,
    TaskCancelled,
    TaskClaim,
    TaskCompleted,
    TaskDropped,
    TaskProgress,
)

OPEN, APPROVED, DENIED, TIMED_OUT = "open", "approved", "denied", "timed_out"
ASSIGNED, CLAIMED, DONE, CANCELLED = "assigned", "claimed", "done", "cancelled"
UNFINISHED = (OPEN, ASSIGNED, CLAIMED)
"""States that still wait for an event."""
REQUEST, APPROVE, DENY = "request", "approve", "deny"
ASSIGN, OFFER, CLAIM, PROGRESS, COMPLETE = "assign", "offer", "claim", "progress", "complete"
DROP, CANCEL = "drop", "cancel"
PLAN, PERMISSION, SANDBOX, SHUTDOWN, TASK = "plan", "permission", "sandbox", "shutdown", "task"

_ASKED = {
    (None, REQUEST): OPEN,
    (OPEN, APPROVE): APPROVED,
    (OPEN, DENY): DENIED,
    (OPEN, TIMEOUT): TIMED_OUT,
}
TABLES: dict[str, dict[tuple[str | None, str], str]] = {
    PLAN: dict(_ASKED),
    PERMISSION: dict(_ASKED),
    SANDBOX: dict(_ASKED),
    SHUTDOWN: dict(_ASKED),
    TASK: {
        (None, ASSIGN): ASSIGNED,
        (None, OFFER): OPEN,
        **{(state, CLAIM): CLAIMED for state in UNFINISHED},
        **{(state, PROGRESS): CLAIMED for state in (ASSIGNED, CLAIMED)},
        **{(state, COMPLETE): DONE for state in (ASSIGNED, CLAIMED)},
        **{(state, DROP): OPEN for state in (ASSIGNED, CLAIMED)},
        **{(state, CANCEL): CANCELLED for state in UNFINISHED},
    },
}
"""Every flow's table. An answered request has no further step: the first decision is the only one."""

FLOWS: dict[type[Payload], str] = {
    PlanRequest: PLAN,
    PlanResponse: PLAN,
    PermissionRequest: PERMISSION,
    PermissionResponse: PERMISSION,
    SandboxRequest: SANDBOX,
    SandboxResponse: SANDBOX,
    ShutdownRequest: SHUTDOWN,
    ShutdownApproved: SHUTDOWN,
    ShutdownRejected: SHUTDOWN,
    TaskAssignment: TASK,
    TaskClaim: TASK,
    TaskProgress: TASK,
    TaskCompleted: TASK,
    TaskDropped: TASK,
    TaskCancelled: TASK,
}
"""The flow a message belongs to; a message that is not here belongs to none."""
TASK_EVENTS: dict[type[Payload], str] = {
    TaskAssignment: ASSIGN,
    TaskClaim: CLAIM,
    TaskProgress: PROGRESS,
    TaskCompleted: COMPLETE,
    TaskDropped: DROP,
    TaskCancelled: CANCEL,
}
"""The event that a message about a task is."""
