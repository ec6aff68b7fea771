"""Watches: the wish of one session to hear of another, once.

Belongs here: their fold, and which reports of what happened end one. A watch is its session's own word to itself. A
report counts only for what the log or the agent itself tells, so nobody ends another's watch by a lie.
"""

from __future__ import annotations

from .. import proofs
from ..records import USER, Record
from ..roster import DEAD as AGENT_DEAD
from ..text import word
from . import authority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..records import Message
    from ..roster import Roster
    from .messages import WatchAgent, WatchReport

LONGEST = 7 * 24 * 3600 * 1000
"""Milliseconds that a watch lasts at most."""
MOST_HELD = 20
"""Watches that one session holds at an instant."""
MOST_UNPROVEN = 100
"""Unproven watches of all senders at an instant."""
IDLE, DEAD, TASK = "idle", "dead", "task"
"""An agent's turn ended, and nothing unread waits for it. It is frozen, retired, or its client is gone. A task is
done."""
EVENTS = (IDLE, DEAD, TASK)
SAID = {IDLE: "is idle", DEAD: "has ended", TASK: "finished task"}


class AgentWatch(Record):
    """A watch. ``until`` has the events that end it, instants are in ms. ``over``: one happened, or it was
    cancelled."""

    id: str
    watcher: str
    agent: str
    until: tuple[str, ...]
    task: str
    begins: int
    ends: int
    message_id: str
    proven: bool
    over: bool = False

    def is_for(self, event: str, task: str = "") -> bool:
        """Return whether the event ends it: one that it is for, or the agent's end, after which none can happen."""
        return event == DEAD or (event in self.until and (event != TASK or task == self.task))


class Watches:
    """The fold of all watches, in log order. ``is_done`` tells of the log's tasks."""

    def __init__(self, roster: Roster, is_done: Callable[[str], bool]) -> None:
        self._roster = roster
        self._is_done = is_done
        self._all: dict[str, AgentWatch] = {}
        self._held: dict[str, list[str]] = {}
        self._latest = 0

    def add(self, message: Message, payload: WatchAgent, speaker: str) -> bool:
        """Fold a watch in; return False if it is there already. Raise ``ValueError`` with the reason if it is none."""
        is_proven = proofs.speaker(message.proof, message.sender) is not None
        begins, ends = message.timestamp, payload.expires or 0
        made = AgentWatch(
            payload.request_id, speaker, payload.agent, payload.until, payload.task, begins,
            min(ends, begins + LONGEST), message.id, is_proven,
        )  # fmt: skip
        known = self._all.get(made.id)
        if known is not None:
            if (known.watcher, known.agent, known.until, known.task) == (
                made.watcher,
                made.agent,
                made.until,
                made.task,
            ):
                return False
            raise ValueError("another watch has this id")
        if not made.until or not set(made.until) <= {*EVENTS} or (TASK in made.until) != bool(made.task):
            raise ValueError(f"a watch is for one of {', '.join(EVENTS)}, and a task has an id")
        if made.ends <= begins:
            raise ValueError("the watch ends before it begins")
        group, most = (speaker, MOST_HELD) if is_proven else ("", MOST_UNPROVEN)
        held = [one for one in self._held.get(group, ()) if self._holds(self._all[one], begins)]
        if len(held) >= most:
            raise ValueError(f"too many watches: {most} at an instant")
        self._all[made.id] = made
        self._held[group] = [*held, made.id]
        if is_proven:
            self._latest = max(self._latest, begins)
        return True

    def cancel(self, message: Message, watch_id: str, speaker: str) -> str:
        """Fold the end of a watch in; return its watcher. Raise ``ValueError`` with the reason if it ends nothing."""
        watch = self._found(watch_id)
        is_proven = proofs.speaker(message.proof, message.sender) is not None
        if watch.proven and not (is_proven and self.may_cancel(speaker, watch, message.timestamp)):
            raise ValueError(f"the watch is {word(watch.watcher)}'s")
        self._all[watch_id] = watch.replace(over=True)
        return watch.watcher

    def report(self, message: Message, payload: WatchReport, speaker: str) -> bool:
        """Fold in that an event happened; return False if the watch was over before. Raise ``ValueError`` with the
        reason if that is not so, or not known."""
        watch = self._found(payload.request_id)
        if not watch.is_for(payload.event, payload.task):
            raise ValueError(f"the watch is not for {payload.event!r}")
        if message.recipients != (watch.watcher,):
            raise ValueError(f"the watch is {word(watch.watcher)}'s")
        is_proven = proofs.speaker(message.proof, message.sender) is not None
        own = is_proven and authority.is_same(speaker, watch.agent, message.timestamp, self._roster)
        if not own and not self.has_happened(watch, payload.event, message.timestamp):
            raise ValueError("nothing shows that it happened")
        self._all[watch.id] = watch.replace(over=True)
        return not watch.over

    def has_happened(self, watch: AgentWatch, event: str, when: int) -> bool:
        """Return whether the log itself shows the event, until an instant (ms)."""
        if event == TASK:
            return self._is_done(watch.task)
        agent = self._roster.get(watch.agent) if event == DEAD else None
        if agent is None:
            return False
        spans = (until is None or until >= watch.begins for since, until in agent.frozen if since <= when)
        return agent.state == AGENT_DEAD or any(spans)

    def may_cancel(self, speaker: str, watch: AgentWatch, when: int) -> bool:
        """Return whether a proven speaker may end the watch: its watcher, that one's lead, or the person."""
        own = authority.is_same(speaker, watch.watcher, when, self._roster)
        return own or authority.commands(speaker, watch.watcher, when, self._roster)

    def get(self, watch_id: str) -> AgentWatch | None:
        """Return the watch of an id."""
        return self._all.get(watch_id)

    def live(self, now: int) -> list[AgentWatch]:
        """Return the watches that hold at an instant (ms) for watchers that are not dead, oldest first."""
        return [one for one in self._all.values() if self._holds(one, now) and self._is_heard(one.watcher)]

    def standing(self, now: int) -> list[str]:
        """Return the messages of the watches that hold."""
        return [watch.message_id for watch in self.live(now)]

    def is_past(self, watch_id: str) -> bool:
        """Return whether a watch is over for good."""
        watch = self._all.get(watch_id)
        return watch is not None and (watch.over or watch.ends < self._latest)

    def _found(self, watch_id: str) -> AgentWatch:
        watch = self._all.get(watch_id)
        if watch is None:
            raise ValueError("there is no such watch")
        return watch

    def _holds(self, watch: AgentWatch, now: int) -> bool:
        return not watch.over and watch.begins <= now < watch.ends

    def _is_heard(self, watcher: str) -> bool:
        return watcher == USER or self._roster.get(watcher) is None or bool(self._roster.heirs(watcher))
