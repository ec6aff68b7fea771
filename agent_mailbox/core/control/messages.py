"""The typed messages of the control plane: a closed union, each a frozen value.

Belongs here: the content of each message. ``message_fields`` has the table of their written forms.
"""

from __future__ import annotations

from typing import Any

from ..records import Record

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
    """A piece of work for an agent, or for whoever of a role or tag claims it.

    ``plan_required``: nothing irreversible before a plan is approved. ``after``: the tasks that must be done before.
    ``ack_by``: the instant (ms) until which its adder wants it done. ``hands``: the tasks of its adder that go to who
    claims it.
    """

    title: str = ""
    instructions: str = ""
    context: str = ""
    plan_required: bool = False
    after: tuple[str, ...] = ()
    ack_by: int | None = None
    hands: tuple[str, ...] = ()


class TaskClaim(Payload):
    """Any agent: the task is mine, or ``holder``'s. ``over``: the claim (a message's id) whose place this one takes."""

    holder: str = ""
    over: str = ""


class TaskDropped(Payload):
    """Its holder, or who commands it: the task is given back, and open again."""

    reason: str = ""


class TaskCancelled(Payload):
    """Its adder, or who commands that one: nobody is to do the task."""

    reason: str = ""


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
    """Worker to lead: may I do this? The plan in parts, or as a text (``content``) and the file it is in."""

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


class CallChanged(Payload):
    """Worker to lead and person: another tool's hook changed a call after the rules had judged it.

    ``ran`` took the place of ``arguments``. ``reason``: why the rules deny that, if they do."""

    tool: str = ""
    use_id: str = ""
    arguments: str = ""
    ran: str = ""
    hook: str = ""
    reason: str = ""


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
