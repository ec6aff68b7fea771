"""Watches: the wish of one session to hear of another, once.

Belongs here: their fold, and which reports of what happened end one. A watch is its session's own word to itself. A
report counts only for what the log or the agent itself tells, so nobody ends another's watch by a lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..frame import word
from ..roster import DEAD as AGENT_DEAD
from .standing_notices import MOST_UNPROVEN as MOST_UNPROVEN
from .standing_notices import StandingNotice, StandingNotices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..roster import Roster
    from .control_requests import ControlStep
    from .messages import WatchReport

LONGEST = 7 * 24 * 3600 * 1000
"""Milliseconds that a watch lasts at most."""
MOST_HELD = 20
"""Watches that one session holds at an instant."""
IDLE, DEAD, TASK = "idle", "dead", "task"
"""An agent's turn ended, and nothing unread waits for it. It is frozen, retired, or its client is gone. A task is
done."""
EVENTS = (IDLE, DEAD, TASK)
SAID = {IDLE: "is idle", DEAD: "has ended", TASK: "finished task"}


class AgentWatch(StandingNotice):
    """A watch: its ``owner`` wants to hear of an agent. ``until`` has the events that end it."""

    agent: str
    until: tuple[str, ...]
    task: str

    def check(self) -> None:
        if not self.until or not set(self.until) <= {*EVENTS} or (TASK in self.until) != bool(self.task):
            raise ValueError(f"a watch is for one of {', '.join(EVENTS)}, and a task has an id")

    def is_for(self, event: str, task: str = "") -> bool:
        """Return whether the event ends it: one that it is for, or the agent's end, after which none can happen."""
        return event == DEAD or (event in self.until and (event != TASK or task == self.task))


class Watches(StandingNotices[AgentWatch]):
    """The fold of all watches, in log order. ``done_by`` tells who did one of the log's tasks."""

    NOTICE = AgentWatch
    KIND, OWNER, SAME = "watch", "watcher", ("owner", "agent", "until", "task")
    LONGEST, MOST_HELD = LONGEST, MOST_HELD

    def __init__(self, roster: Roster, done_by: Callable[[str], str]) -> None:
        super().__init__(roster)
        self._done_by = done_by

    def report(self, step: ControlStep, payload: WatchReport) -> bool:
        """Fold in that an event happened; return False if the watch was over before. Raise ``ValueError`` with the
        reason if that is not so, or not known."""
        watch = self.find(payload.request_id)
        if not watch.is_for(payload.event, payload.task):
            raise ValueError(f"the watch is not for {payload.event!r}")
        if step.message.recipients != (watch.owner,):
            raise ValueError(f"the watch is {word(watch.owner)}'s")
        own = step.is_proven and step.is_by(watch.agent)
        if not own and not self.has_happened(watch, payload.event, step.message.timestamp):
            raise ValueError("nothing shows that it happened")
        self._all[watch.id] = watch.replace(over=True)
        return not watch.over

    def has_happened(self, watch: AgentWatch, event: str, when: int) -> bool:
        """Return whether the log itself shows the event, until an instant (ms)."""
        if event == TASK:
            return watch.agent in self._roster.lineage(self._done_by(watch.task))
        agent = self._roster.get(watch.agent) if event == DEAD else None
        if agent is None:
            return False
        spans = (until is None or until >= watch.begins for since, until in agent.frozen if since <= when)
        return agent.state == AGENT_DEAD or any(spans)
