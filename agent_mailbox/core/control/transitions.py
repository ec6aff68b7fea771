"""The steps of requests and tasks: state × event → state, as tables. A step that is not in a table is refused.

Belongs here: the tables. ``messages`` says which message is of which flow. The event of an answer is its decision
(``control_requests``), and that of a task's message its type. ``authority`` says who may cause an event; the fold over
the log is ``state``.
"""

from __future__ import annotations

OPEN, APPROVED, DENIED, TIMED_OUT = "open", "approved", "denied", "timed_out"
ASSIGNED, CLAIMED, DONE, CANCELLED = "assigned", "claimed", "done", "cancelled"
UNFINISHED = (OPEN, ASSIGNED, CLAIMED)
"""States that still wait for an event."""
APPROVE, DENY = "approve", "deny"
TIMEOUT = "timeout"
"""The cause of a decision that nobody took: the request has timed out."""
PLAN, PERMISSION, SANDBOX, SHUTDOWN, TASK = "plan", "permission", "sandbox", "shutdown", "task"

ASKED = {(OPEN, APPROVE): APPROVED, (OPEN, DENY): DENIED, (OPEN, TIMEOUT): TIMED_OUT}
"""The table of every request. An answered one has no further step: the first decision is the only one."""
TASKS = {
    **{(state, "task_claim"): CLAIMED for state in UNFINISHED},
    **{(state, "task_progress"): CLAIMED for state in (ASSIGNED, CLAIMED)},
    **{(state, "task_completed"): DONE for state in (ASSIGNED, CLAIMED)},
    **{(state, "task_dropped"): OPEN for state in (ASSIGNED, CLAIMED)},
    **{(state, "task_cancelled"): CANCELLED for state in UNFINISHED},
}
"""The table of every task; it begins as ``ASSIGNED`` to an agent, or as ``OPEN``."""
