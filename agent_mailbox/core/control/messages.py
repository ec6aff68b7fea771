"""The typed messages of the control plane: a closed union, each a frozen value.

Belongs here: the content of each message, with the written form of each field beside it (``message_fields``).
"""

from __future__ import annotations

from typing import Any

from ..records import Record
from .message_fields import WrittenMessage, optional_at, required_at
from .transitions import PERMISSION, PLAN, SANDBOX, SHUTDOWN, TASK
from .transitions import TIMEOUT as TIMEOUT

VERSION = 1
"""The version this program writes and understands: a later message is kept, shown as unknown, never applied."""
MODES = ("default", "plan", "acceptEdits", "safe", "locked-down")
"""The modes a message may set. No spelling of any mode bypasses permissions."""
STRICTNESS = ("acceptEdits", "default", "safe", "plan", "locked-down")
"""From the widest to the narrowest: if a message names two, the narrower counts."""
PHASES = ("analyzing", "implementing", "verifying", "blocked", "done")
SCOPES = ("one-shot", "session")


class Payload(WrittenMessage):
    """The fields that every control message may carry. Answers are matched by ``request_id`` alone.

    ``timestamp`` in ms is informative (the envelope's decides); the agent is the speaker.
    """

    request_id: str = required_at("requestId", "id", "taskId", kind="id")
    version: int = optional_at("version", kind="version", default=VERSION)
    timestamp: int | None = optional_at("timestamp", "createdAt", kind="when")
    team: str = optional_at("teamName", "team")
    agent_id: str = optional_at("agentId", "workerId")
    agent_name: str = optional_at("agentName", "from", "workerName", "assignedBy")


class Ask(Payload):
    """The fields of every request beside: the instant of its time-out (ms; None: unknown)."""

    expires: int | None = optional_at("expiresAt", kind="instant")


class Answer(Payload):
    """The fields of every response beside: the decision, its words, and ``TIMEOUT`` as the cause if nobody took it."""

    approved: bool = required_at("approved", "allow", "subtype", "behavior", "decision", kind="flag")
    notes: str = optional_at("notes", "feedback", "error", "content", "reason")
    cause: str = optional_at("cause", kind=(TIMEOUT,))


class TaskAssignment(Payload, kind="task_assignment", flow=TASK):
    """A piece of work for an agent, or for whoever of a role or tag claims it.

    ``plan_required``: nothing irreversible before a plan is approved. ``after``: the tasks that must be done before.
    ``ack_by``: the instant (ms) until which its adder wants it done. ``hands``: the tasks of its adder that go to who
    claims it.
    """

    title: str = required_at("task.title", "title", "subject")
    instructions: str = optional_at("task.instructions", "instructions", "description")
    context: str = optional_at("task.context", "context")
    plan_required: bool = optional_at("task.planModeRequired", "planModeRequired", kind="flag")
    after: tuple[str, ...] = optional_at("task.blockedBy", "blockedBy", kind="texts")
    ack_by: int | None = optional_at("task.ackBy", kind="instant")
    hands: tuple[str, ...] = optional_at("task.handsOver", kind="texts")


class TaskClaim(Payload, kind="task_claim", flow=TASK):
    """Any agent: the task is mine, or ``holder``'s. ``over``: the claim (a message's id) whose place this one takes."""

    holder: str = optional_at("holder")
    over: str = optional_at("takesOver")


class TaskProgress(Payload, kind="task_progress", flow=TASK):
    """Worker to lead, for information: it never has a side effect."""

    phase: str = required_at("progress.phase", "phase", kind=PHASES)
    message: str = optional_at("progress.message", "message")


class TaskCompleted(Payload, kind="task_completed", flow=TASK):
    """Worker to lead: the end of a task."""

    title: str = optional_at("task.title", "taskSubject", "subject")
    summary: str = optional_at("result.summary", "summary")
    artifacts: tuple[str, ...] = optional_at("result.artifacts", "artifacts", kind="texts")
    errors: tuple[str, ...] = optional_at("result.errors", "errors", kind="texts")
    status: str = optional_at("result.status", "status")


class TaskDropped(Payload, kind="task_dropped", flow=TASK):
    """Its holder, or who commands it: the task is given back, and open again."""

    reason: str = optional_at("reason", "description")


class TaskCancelled(Payload, kind="task_cancelled", flow=TASK):
    """Its adder, or who commands that one: nobody is to do the task."""

    reason: str = optional_at("reason", "description")


class IdleNotification(Payload, kind="idle_notification"):
    """Worker to lead: its turn ended (``reason``: available, interrupted, …)."""

    request_id: str = ""
    state: str = optional_at("state", kind=("idle",), default="idle")
    reason: str = optional_at("idleReason", "reason")
    summary: str = optional_at("summary")
    task: str = optional_at("completedTaskId")
    task_status: str = optional_at("completedStatus")
    failure: str = optional_at("failureReason")


class PlanRequest(Ask, kind="plan_approval_request", flow=PLAN):
    """Worker to lead: may I do this? The plan in parts, or as a text (``content``) and the file it is in."""

    goal: str = optional_at("plan.goal", "goal")
    steps: tuple[str, ...] = optional_at("plan.steps", "steps", kind="texts")
    risks: tuple[str, ...] = optional_at("plan.risks", "risks", kind="texts")
    tooling: tuple[str, ...] = optional_at("plan.tooling", "tooling", kind="texts")
    content: str = optional_at("plan.content", "planContent")
    file: str = optional_at("plan.filePath", "planFilePath")


class PlanResponse(Answer, kind="plan_approval_response", flow=PLAN):
    """Lead to worker: the decision about a plan, and the mode to go on in."""

    mode: str = optional_at("policy.permissionMode", "permissionMode", "mode", kind="mode")


class PermissionRequest(Ask, kind="permission_request", flow=PERMISSION):
    """Worker to lead: may this tool be used? ``input`` is the call itself, ``arguments`` a summary of a secret or long
    one.

    ``use_id`` is the client's number of the call, ``suggestions`` are the client's proposals.
    """

    tool: str = required_at("tool.name", "toolName")
    use_id: str = optional_at("tool.useId", "toolUseId")
    arguments: str = optional_at("tool.arguments")
    input: Any = optional_at("tool.input", "input", kind="any")
    reason: str = optional_at("reason", "description")
    suggestions: tuple[Any, ...] = optional_at("permissionSuggestions", kind="list")


class PermissionResponse(Answer, kind="permission_response", flow=PERMISSION):
    """Lead to worker: the decision about a tool call; approved, perhaps with another input; more rules, a mode."""

    mode: str = optional_at("mode", "policy.permissionMode", "permissionMode", kind="mode")
    updated_input: Any = optional_at("updatedInput", "response.updatedInput", kind="any")
    updates: tuple[Any, ...] = optional_at("permissionUpdates", "response.permissionUpdates", kind="list")


class CallChanged(Payload, kind="call_changed"):
    """Worker to lead and person: another tool's hook changed a call after the rules had judged it.

    ``ran`` took the place of ``arguments``. ``reason``: why the rules deny that, if they do."""

    request_id: str = ""
    tool: str = required_at("tool.name")
    use_id: str = optional_at("tool.useId")
    arguments: str = optional_at("tool.arguments")
    ran: str = optional_at("ran")
    hook: str = required_at("hook")
    reason: str = optional_at("reason")


class SandboxRequest(Ask, kind="sandbox_permission_request", flow=SANDBOX):
    """Worker to lead: may I have this capability (mostly the network, for these hosts)?"""

    capability: str = optional_at("capability")
    hosts: tuple[str, ...] = optional_at("details.hostnames", "hostnames", "hostPattern.host", "host", kind="texts")
    reason: str = optional_at("details.reason", "reason")


class SandboxResponse(Answer, kind="sandbox_permission_response", flow=SANDBOX):
    """Lead to worker: the decision about a capability, for the session or this once."""

    scope: str = optional_at("scope", kind=SCOPES, default="one-shot")
    hosts: tuple[str, ...] = optional_at("hostnames", "host", "details.hostnames", kind="texts")


class ModeSet(Payload, kind="mode_set_request"):
    """Lead to worker: work in this mode from now on."""

    request_id: str = optional_at("requestId", "id", kind="id")
    mode: str = required_at("mode", "policy.permissionMode", "permissionMode", kind="mode")


class PolicyUpdate(Payload, kind="team_permission_update"):
    """Lead to workers: allow and deny rules in the client's own syntax, and hosts. They take the place of the earlier
    ones unless ``adds``. ``directory`` is what an observed form says of its origin; nothing follows from it."""

    request_id: str = optional_at("requestId", "id", kind="id")
    allow: tuple[str, ...] = optional_at("rules.allowedTools", "allowedTools", kind="rules")
    deny: tuple[str, ...] = optional_at("rules.disallowedTools", "disallowedTools", kind="rules")
    hosts: tuple[str, ...] = optional_at("rules.allowedHosts", "allowedHosts", kind="texts")
    adds: bool = optional_at("rules.adds", kind="flag")
    directory: str = optional_at("directoryPath")


class ShutdownRequest(Ask, kind="shutdown_request", flow=SHUTDOWN):
    """Lead to worker: end your work."""

    reason: str = optional_at("reason", "description")


class ShutdownApproved(Payload, kind="shutdown_approved", flow=SHUTDOWN):
    """Worker to lead: it ends. The terminal pane and its kind, where it knows them."""

    pane: str = optional_at("paneId")
    backend: str = optional_at("backendType")


class ShutdownRejected(Payload, kind="shutdown_rejected", flow=SHUTDOWN):
    """Worker to lead: not now; or the request timed out."""

    reason: str = optional_at("reason", "content", "notes", "feedback")
    cause: str = optional_at("cause", kind=(TIMEOUT,))


class LeasePaths(Payload, kind="lease"):
    """Any agent, to itself: it works on these paths of a project until then."""

    project: str = required_at("project")
    paths: tuple[str, ...] = required_at("paths", kind="texts")
    expires: int | None = required_at("expiresAt", kind="instant")
    note: str = optional_at("note")


class LeaseRelease(Payload, kind="lease_release"):
    """Its holder, or who commands it: the lease ends."""


class WatchAgent(Payload, kind="watch"):
    """An agent's wish to hear once of another: when its turn ends, when it ends, or when a task is done."""

    agent: str = required_at("agent")
    name: str = optional_at("name")
    until: tuple[str, ...] = required_at("until", kind="texts")
    expires: int | None = required_at("expiresAt", kind="instant")
    task: str = optional_at("task")


class WatchReport(Payload, kind="watch_report"):
    """The event of a watch, told to its watcher: this ends it."""

    agent: str = required_at("agent")
    name: str = optional_at("name")
    event: str = required_at("event", kind=("idle", "dead", "task"))
    task: str = optional_at("task")
    reason: str = optional_at("reason")


class WatchEnd(Payload, kind="watch_end"):
    """The end of a watch before anything happened."""


TYPES: dict[str, type[Payload]] = {
    one.kind: one for base in (Payload, Ask, Answer) for one in base.__subclasses__() if one.kind
}
"""Every type of message there is, by the wire's word for it."""


class Unknown(Record):
    """A text that is no message of this union, as a value: kept and shown as such, never applied."""

    reason: str
    type: str = ""
    raw: str = ""
