"""The typed messages of the control plane: a closed union, each a frozen value.

Belongs here: the content of each message, and the one table from which reading and writing (``message_text``) and the
published JSON Schemas (``schema``) follow. The types and written shapes are those of the founding texts' catalog of
schemas; ``spellings`` knows the other forms that the founding texts show.
"""

from __future__ import annotations

from ..records import Record
from .spellings import key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
"""The version this program writes and understands: a later message is kept, shown as unknown, never applied."""
MODES = ("default", "plan", "acceptEdits", "safe", "locked-down")
"""The modes a message may set. No spelling of any mode bypasses permissions."""
STRICTNESS = ("acceptEdits", "default", "safe", "plan", "locked-down")
"""From the widest to the narrowest: if a message names two, the narrower counts."""
PHASES = ("analyzing", "implementing", "verifying", "blocked", "done")
SCOPES = ("one-shot", "session")
TIMEOUT = "timeout"
"""The cause of a decision that nobody took: the request has timed out."""


class Payload(Record):
    """The fields that every control message may carry. Answers are matched by ``request_id`` alone.

    ``timestamp`` in ms is informative (the envelope's decides); the agent is the speaker.
    """

    request_id: str = ""
    version: int = VERSION
    timestamp: int | None = None
    team: str = ""
    agent_id: str = ""
    agent_name: str = ""


class Ask(Payload):
    """The fields of every request beside: the instant of its time-out (ms; None: unknown)."""

    expires: int | None = None


class Answer(Payload):
    """The fields of every response beside: the decision, its words, and ``TIMEOUT`` as the cause if nobody took it."""

    approved: bool = False
    notes: str = ""
    cause: str = ""


class TaskAssignment(Payload):
    """Lead to worker: a piece of work. ``plan_required``: nothing irreversible before a plan is approved."""

    title: str = ""
    instructions: str = ""
    context: str = ""
    plan_required: bool = False


class TaskProgress(Payload):
    """Worker to lead, for information: it never has a side effect."""

    phase: str = ""
    message: str = ""


class TaskCompleted(Payload):
    """Worker to lead: the end of a task."""

    title: str = ""
    summary: str = ""
    artifacts: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    status: str = ""


class IdleNotification(Payload):
    """Worker to lead: its turn ended (``reason``: available, interrupted, …)."""

    state: str = "idle"
    reason: str = ""
    summary: str = ""
    task: str = ""
    task_status: str = ""
    failure: str = ""


class PlanRequest(Ask):
    """Worker to lead: may I do this? The plan in parts, or as a text (``content``) and the file it stands in."""

    goal: str = ""
    steps: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    tooling: tuple[str, ...] = ()
    content: str = ""
    file: str = ""


class PlanResponse(Answer):
    """Lead to worker: the decision about a plan, and the mode to go on in."""

    mode: str = ""


class PermissionRequest(Ask):
    """Worker to lead: may this tool be used? ``input`` is the call itself, ``arguments`` a summary of a secret or long
    one.

    ``use_id`` is the client's number of the call, ``suggestions`` are the client's proposals.
    """

    tool: str = ""
    use_id: str = ""
    arguments: str = ""
    input: Any = None
    reason: str = ""
    suggestions: tuple[Any, ...] = ()


class PermissionResponse(Answer):
    """Lead to worker: the decision about a tool call; approved, perhaps with another input; more rules, a mode."""

    mode: str = ""
    updated_input: Any = None
    updates: tuple[Any, ...] = ()


class SandboxRequest(Ask):
    """Worker to lead: may I have this capability (mostly the network, for these hosts)?"""

    capability: str = ""
    hosts: tuple[str, ...] = ()
    reason: str = ""


class SandboxResponse(Answer):
    """Lead to worker: the decision about a capability, for the session or this once."""

    scope: str = "one-shot"
    hosts: tuple[str, ...] = ()


class ModeSet(Payload):
    """Lead to worker: work in this mode from now on."""

    mode: str = ""


class PolicyUpdate(Payload):
    """Lead to workers: allow and deny rules in the client's own syntax, and hosts. They take the place of the earlier
    ones unless ``adds``. ``directory`` is what an observed form says of its origin; nothing follows from it."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    adds: bool = False
    directory: str = ""


class ShutdownRequest(Ask):
    """Lead to worker: end your work."""

    reason: str = ""


class ShutdownApproved(Payload):
    """Worker to lead: it ends. The terminal pane and its kind, where it knows them."""

    pane: str = ""
    backend: str = ""


class ShutdownRejected(Payload):
    """Worker to lead: not now; or the request timed out."""

    reason: str = ""
    cause: str = ""


class LeasePaths(Payload):
    """Any agent, to itself: it works on these paths of a project until then."""

    project: str = ""
    paths: tuple[str, ...] = ()
    expires: int | None = None
    note: str = ""


class LeaseRelease(Payload):
    """Its holder, or who commands it: the lease ends."""


class WatchAgent(Payload):
    """An agent's wish to hear once of another: when its turn ends, when it ends, or when a task is done."""

    agent: str = ""
    name: str = ""
    until: tuple[str, ...] = ()
    task: str = ""
    expires: int | None = None


class WatchReport(Payload):
    """The event of a watch, told to its watcher: this ends it."""

    agent: str = ""
    name: str = ""
    event: str = ""
    task: str = ""
    reason: str = ""


class WatchEnd(Payload):
    """The end of a watch before anything happened."""


class Unknown(Record):
    """A text that is no message of this union, as a value: kept and shown as such, never applied."""

    reason: str
    type: str = ""
    raw: str = ""


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
        ),
    ),
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
