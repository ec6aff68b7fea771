"""The written form of each control message: one table, and the word for its type on the wire.

Belongs here: the table from which reading and writing (``message_text``) and the published JSON Schemas (``schema``)
follow. The types and written shapes are those of the founding texts' catalog of schemas; ``spellings`` knows the other
forms that the founding texts show.
"""

from __future__ import annotations

from ..records import Record
from .messages import (
    PHASES,
    SCOPES,
    TIMEOUT,
    CallChanged,
    IdleNotification,
    LeasePaths,
    LeaseRelease,
    ModeSet,
    Payload,
    PermissionRequest,
    PermissionResponse,
    PlanRequest,
    PlanResponse,
    PolicyUpdate,
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
    WatchAgent,
    WatchEnd,
    WatchReport,
)
from .spellings import key


class Field(Record):
    """One field of a message: its written place, its kind, and its other names in the founding texts (``also``).

    ``places`` are all of these, in the spelling of ``spellings.key``. Kinds: id, text, texts, rules, flag, instant,
    when, version, mode, any, list, or a tuple of the possible words.
    """

    name: str
    path: tuple[str, ...]
    kind: str | tuple[str, ...] = "text"
    required: bool = False
    also: tuple[tuple[str, ...], ...] = ()
    places: tuple[tuple[str, ...], ...] = ()


def _field(name: str, path: str, kind: str | tuple[str, ...] = "text", *also: str, required: bool = False) -> Field:
    written, *others = (tuple(place.split(".")) for place in (path, *also))
    places = tuple(tuple(map(key, place)) for place in (written, *others))
    return Field(name, written, kind, required, tuple(others), places)


def _needed(name: str, path: str, kind: str | tuple[str, ...] = "text", *also: str) -> Field:
    return _field(name, path, kind, *also, required=True)


_ID = _needed("request_id", "requestId", "id", "taskId")
_COMMON = (
    _field("version", "version", "version"),
    _field("timestamp", "timestamp", "when", "createdAt"),
    _field("team", "teamName", "text", "team"),
    _field("agent_id", "agentId", "text", "workerId"),
    _field("agent_name", "agentName", "text", "from", "workerName", "assignedBy"),
)
_EXPIRES = _field("expires", "expiresAt", "instant")
_CAUSE = _field("cause", "cause", (TIMEOUT,))
_APPROVED = _needed("approved", "approved", "flag", "allow", "subtype", "behavior", "decision")
_NOTES = _field("notes", "notes", "text", "feedback", "error", "content", "reason")
_REASON = _field("reason", "reason", "text", "description")

SPECS: dict[str, tuple[type[Payload], tuple[Field, ...]]] = {
    "task_assignment": (
        TaskAssignment,
        (
            _ID,
            _needed("title", "task.title", "text", "title", "subject"),
            _field("instructions", "task.instructions", "text", "instructions", "description"),
            _field("context", "task.context", "text", "context"),
            _field("plan_required", "task.planModeRequired", "flag", "planModeRequired"),
            _field("after", "task.blockedBy", "texts", "blockedBy"),
            _field("ack_by", "task.ackBy", "instant"),
            _field("hands", "task.handsOver", "texts"),
        ),
    ),
    "task_claim": (TaskClaim, (_ID, _field("holder", "holder"), _field("over", "takesOver"))),
    "task_progress": (
        TaskProgress,
        (
            _ID,
            _needed("phase", "progress.phase", PHASES, "phase"),
            _field("message", "progress.message", "text", "message"),
        ),
    ),
    "task_completed": (
        TaskCompleted,
        (
            _ID,
            _field("title", "task.title", "text", "taskSubject", "subject"),
            _field("summary", "result.summary", "text", "summary"),
            _field("artifacts", "result.artifacts", "texts", "artifacts"),
            _field("errors", "result.errors", "texts", "errors"),
            _field("status", "result.status", "text", "status"),
        ),
    ),
    "task_dropped": (TaskDropped, (_ID, _REASON)),
    "task_cancelled": (TaskCancelled, (_ID, _REASON)),
    "idle_notification": (
        IdleNotification,
        (
            _field("state", "state", ("idle",)),
            _field("reason", "idleReason", "text", "reason"),
            _field("summary", "summary"),
            _field("task", "completedTaskId"),
            _field("task_status", "completedStatus"),
            _field("failure", "failureReason"),
        ),
    ),
    "plan_approval_request": (
        PlanRequest,
        (
            _ID,
            _EXPIRES,
            _field("goal", "plan.goal", "text", "goal"),
            _field("steps", "plan.steps", "texts", "steps"),
            _field("risks", "plan.risks", "texts", "risks"),
            _field("tooling", "plan.tooling", "texts", "tooling"),
            _field("content", "plan.content", "text", "planContent"),
            _field("file", "plan.filePath", "text", "planFilePath"),
        ),
    ),
    "plan_approval_response": (
        PlanResponse,
        (_ID, _APPROVED, _NOTES, _CAUSE, _field("mode", "policy.permissionMode", "mode", "permissionMode", "mode")),
    ),
    "permission_request": (
        PermissionRequest,
        (
            _ID,
            _EXPIRES,
            _needed("tool", "tool.name", "text", "toolName"),
            _field("use_id", "tool.useId", "text", "toolUseId"),
            _field("arguments", "tool.arguments"),
            _field("input", "tool.input", "any", "input"),
            _REASON,
            _field("suggestions", "permissionSuggestions", "list"),
        ),
    ),
    "permission_response": (
        PermissionResponse,
        (
            _ID,
            _APPROVED,
            _NOTES,
            _CAUSE,
            _field("mode", "mode", "mode", "policy.permissionMode", "permissionMode"),
            _field("updated_input", "updatedInput", "any", "response.updatedInput"),
            _field("updates", "permissionUpdates", "list", "response.permissionUpdates"),
        ),
    ),
    "call_changed": (
        CallChanged,
        (
            _needed("tool", "tool.name"),
            _field("use_id", "tool.useId"),
            _field("arguments", "tool.arguments"),
            _field("ran", "ran"),
            _needed("hook", "hook"),
            _field("reason", "reason"),
        ),
    ),
    "sandbox_permission_request": (
        SandboxRequest,
        (
            _ID,
            _EXPIRES,
            _field("capability", "capability"),
            _field("hosts", "details.hostnames", "texts", "hostnames", "hostPattern.host", "host"),
            _field("reason", "details.reason", "text", "reason"),
        ),
    ),
    "sandbox_permission_response": (
        SandboxResponse,
        (
            _ID,
            _APPROVED,
            _NOTES,
            _CAUSE,
            _field("scope", "scope", SCOPES),
            _field("hosts", "hostnames", "texts", "host", "details.hostnames"),
        ),
    ),
    "mode_set_request": (
        ModeSet,
        (
            _field("request_id", "requestId", "id"),
            _needed("mode", "mode", "mode", "policy.permissionMode", "permissionMode"),
        ),
    ),
    "team_permission_update": (
        PolicyUpdate,
        (
            _field("request_id", "requestId", "id"),
            _field("allow", "rules.allowedTools", "rules", "allowedTools"),
            _field("deny", "rules.disallowedTools", "rules", "disallowedTools"),
            _field("hosts", "rules.allowedHosts", "texts", "allowedHosts"),
            _field("adds", "rules.adds", "flag"),
            _field("directory", "directoryPath"),
        ),
    ),
    "shutdown_request": (ShutdownRequest, (_ID, _EXPIRES, _REASON)),
    "shutdown_approved": (
        ShutdownApproved,
        (_ID, _field("pane", "paneId"), _field("backend", "backendType")),
    ),
    "shutdown_rejected": (
        ShutdownRejected,
        (_ID, _field("reason", "reason", "text", "content", "notes", "feedback"), _CAUSE),
    ),
    "lease": (
        LeasePaths,
        (
            _ID,
            _needed("project", "project"),
            _needed("paths", "paths", "texts"),
            _needed("expires", "expiresAt", "instant"),
            _field("note", "note"),
        ),
    ),
    "lease_release": (LeaseRelease, (_ID,)),
    "watch": (
        WatchAgent,
        (
            _ID,
            _needed("agent", "agent"),
            _field("name", "name"),
            _needed("until", "until", "texts"),
            _needed("expires", "expiresAt", "instant"),
            _field("task", "task"),
        ),
    ),
    "watch_report": (
        WatchReport,
        (
            _ID,
            _needed("agent", "agent"),
            _field("name", "name"),
            _needed("event", "event", ("idle", "dead", "task")),
            _field("task", "task"),
            _field("reason", "reason"),
        ),
    ),
    "watch_end": (WatchEnd, (_ID,)),
}
"""Every type there is: its value, and its own fields."""

FIELDS: dict[str, tuple[Field, ...]] = {
    name: (own[0], *_COMMON, *own[1:]) if own[0].name == "request_id" else (*_COMMON, *own)
    for name, (_, own) in SPECS.items()
}
"""All fields of each type, in the order they are written."""
NAMES: dict[type[Payload], str] = {kind: name for name, (kind, _) in SPECS.items()}
"""The wire's word for each value's type."""


def name(payload: Payload) -> str:
    """Return the type's word on the wire."""
    return NAMES[type(payload)]
