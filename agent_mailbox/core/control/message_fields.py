"""The written form of each control message: one table, and the word for its type on the wire.

Belongs here: the table from which reading and writing (``message_text``) and the published JSON Schemas (``schema``)
follow. The types and written shapes are those of the founding texts' catalog of schemas. ``catalog`` brings the other
forms that they show into these, as far as more differs than a key's name. Any other form is left as it is, for
``message_text`` to refuse.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

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


@lru_cache(1000)  # a message may bring any number of keys
def key(word: str) -> str:
    """Return a key without the differences of spellings: ``requestId``, ``request_id`` and ``request-id`` are one."""
    return word.replace("_", "").replace("-", "").casefold()


class Field(Record):
    """One field of a message: its written place, its kind, and its other names in the founding texts (``also``).

    ``places`` are all of these, in the spelling of ``key``. Kinds: id, text, texts, rules, flag, instant,
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


FLAGS = {"success": True, "error": False, "allow": True, "deny": False, "approved": True, "rejected": False}
"""The words some spellings have for a decision."""


def level(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object by its keys as ``key`` has them, nulls left out.

    Raise ``ValueError`` if a key is there in two spellings with different values.
    """
    found: dict[str, Any] = {}
    for word, value in obj.items():
        if value is not None and found.setdefault(key(word), value) != value:
            raise ValueError(f"{word} is there twice, with different values")
    return found


def catalog(kind: str, obj: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return type and object in the catalog's form, as far as that takes more than other keys. Raise ``ValueError``."""
    found = level(obj)
    if kind == "shutdown_response":
        approved = found.get("approved")
        if type(approved) is not bool:
            raise ValueError("approved is not true or false")
        return ("shutdown_approved" if approved else "shutdown_rejected"), obj
    if kind == "plan_approval_request" and type(found.get("plan")) is str:
        return kind, {**_without(obj, "plan"), "planContent": found["plan"]}
    if kind == "permission_request":
        tool = found.get("tool")
        if type(tool) is str:
            return kind, {**_without(obj, "tool"), "toolName": tool}
        if type(tool) is dict and type(arguments := level(tool).get("arguments")) is dict:
            return kind, {**obj, "tool": {**_without(tool, "arguments"), "input": arguments}}
    if kind == "team_permission_update" and "permissionupdate" in found:
        return kind, {**obj, **_update_rules(found["permissionupdate"], found.get("toolname"))}
    if kind == "sandbox_permission_request" and "capability" not in found and {"hostpattern", "host"} & found.keys():
        return kind, {**obj, "capability": "network"}
    return kind, obj


def _without(obj: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if key(name) != word}


def _update_rules(update: Any, tool: Any) -> dict[str, Any]:
    """Return the observed receiver's contract: rules and a behaviour, added to the present ones."""
    if type(update) is not dict:
        raise ValueError("permissionUpdate is no object")
    said = level(update)
    behaviour, rules = said.get("behavior"), said.get("rules")
    if behaviour not in ("allow", "deny"):
        raise ValueError("permissionUpdate.behavior is neither allow nor deny")
    if type(rules) is not list or not rules:
        raise ValueError("permissionUpdate.rules is no list of rules")
    word = "allowedTools" if behaviour == "allow" else "disallowedTools"
    return {"rules": {word: [rule(one, tool) for one in rules], "adds": True}}


def rule(given: Any, tool: Any = None) -> str:
    """Return a rule in the client's own syntax, from such text or an object ``{toolName, ruleContent}``.

    Raise ``ValueError`` for anything else.
    """
    if type(given) is str:
        return given
    if type(given) is not dict:
        raise ValueError("a rule is neither text nor an object")
    said = level(given)
    if not said or not said.keys() <= {"toolname", "rulecontent"}:  # an unknown part must not widen the rule
        raise ValueError("a rule says what no rule says")
    name, content = said.get("toolname", tool), said.get("rulecontent")
    if type(name) is not str or (content is not None and type(content) is not str):
        raise ValueError("a rule names no tool")
    return f"{name}({content})" if content else name
