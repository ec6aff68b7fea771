"""How requests and tasks may go: state × event → state, as tables. What is not in a table is refused.

Belongs here: the tables, which messages are which event of which flow. Who may cause an event is ``authority``; the
fold over the log is ``state``.
"""

from __future__ import annotations

from .messages import (
    TIMEOUT,
    Answer,
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
    TaskCompleted,
    TaskProgress,
)

OPEN, APPROVED, DENIED, TIMED_OUT = "open", "approved", "denied", "timed_out"
ASSIGNED, WORKING, DONE = "assigned", "working", "done"
UNFINISHED = (OPEN, ASSIGNED, WORKING)
"""States in which something is still awaited."""
REQUEST, APPROVE, DENY = "request", "approve", "deny"
ASSIGN, PROGRESS, COMPLETE = "assign", "progress", "complete"
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
        (ASSIGNED, PROGRESS): WORKING,
        (WORKING, PROGRESS): WORKING,
        (ASSIGNED, COMPLETE): DONE,
        (WORKING, COMPLETE): DONE,
    },
}
"""Every flow's table. From an answered request nothing leads anywhere: the first decision is the only one."""

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
    TaskProgress: TASK,
    TaskCompleted: TASK,
}
"""The flow a message belongs to; a message that is not here belongs to none."""
_TASKS: dict[type[Payload], str] = {TaskAssignment: ASSIGN, TaskProgress: PROGRESS, TaskCompleted: COMPLETE}


def event(payload: Payload) -> str:
    """What the message of a flow is, as an event."""
    if isinstance(payload, TaskAssignment | TaskProgress | TaskCompleted):
        return _TASKS[type(payload)]
    if isinstance(payload, ShutdownApproved):
        return APPROVE
    if isinstance(payload, Answer | ShutdownRejected):
        if payload.cause == TIMEOUT:
            return TIMEOUT
        return APPROVE if isinstance(payload, Answer) and payload.approved else DENY
    return REQUEST


def after(flow: str, state: str | None, what: str) -> str | None:
    """The state after an event; None where the table has no such step."""
    return TABLES[flow].get((state, what))
