"""Watches on a mailbox: setting, ending and finding them.

Belongs here: the order of those steps. A watch is a message of its watcher to itself. ``watch_reports`` tells the
watcher. The rules are ``core.control.watches``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..control_plane import control_log, watch_reports
from ..core import frame
from ..core.control import messages
from ..core.control.watches import LONGEST, AgentWatch
from ..core.records import USER
from ..core.roster import ALIVE
from ..core.text import neutral, typed
from ..errors import Malformed, Refused
from ..store.files import system
from ..store.files.board import WATCHED, Board
from .steps import end_notice, note_read, post_message, refuse_unapplied
from .task_views import TaskViews

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.roster import Agent
    from ..mailbox.open_mailbox import OpenMailbox

_HOUR = 3_600_000


class Watching:
    """Keeps the watches in an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def watches(self, me: str | None = None) -> list[AgentWatch]:
        """Return the watches that hold now, oldest first; ``me``: those of that session."""
        return [one for one in watch_reports.live(self.box) if me in (None, one.owner)]

    def watch(self, me: str, word: str, until: Sequence[str], task: str = "", hours: float = 24) -> AgentWatch:
        """Have ``me`` told once when one of the events happens to an agent (an id, a name or a prefix).

        Raises ``NotFound``, ``Malformed`` for a time that is none, and ``Refused`` if ``me`` watches too many, or the
        event happened before.
        """
        if not 0 < hours * _HOUR <= LONGEST:
            raise Malformed(f"not a time to watch: {hours:g} hours", "at most 7 days; watch the agent again then")
        agent = self.box.logs.read_roster().find(word)
        task = self._task(task, agent.session_id) if task else ""
        self._refuse_past(me, agent)
        if agent.session_id == USER and not task:
            raise Refused("the person is never idle, and does not end", "watch a task of theirs with --task ID")
        payload = messages.WatchAgent(
            request_id=f"watch-{system.urandom(4).hex()}", agent=agent.session_id, name=agent.name or "",
            until=tuple(until), task=task, expires=self.box.now() + round(hours * _HOUR),
        )  # fmt: skip
        Board(self.box.logs.stamp_files, WATCHED).add_told(agent.session_id, me)
        same = payload.agent, {*payload.until}, payload.task
        earlier = [one for one in self.watches(me) if (one.agent, {*one.until}, one.task) == same]
        sent = post_message(self.box, me, payload, (me,))
        note_read(self.box, me, {sent.message.id: me})
        refuse_unapplied(self.box, sent, "cancel one of yours: `agent-mailbox watch list` has them")
        watch_reports.settle(self.box)  # whoever settled before this watch was in the log removed its note
        # Its next stamp lets the hook at its turn's end through.
        self.box.logs.stamp_files.try_to_disturb(agent.session_id)
        made = control_log.of_watches(self.box).watches.get(payload.request_id)
        if made is None:
            raise Refused(f"{payload.request_id}: it vanished", "watch the agent again")
        for one in earlier:  # else one event would be told twice
            with suppress(Refused):
                self.cancel(me, one.id)
        return made

    def _refuse_past(self, me: str, agent: Agent) -> None:
        name = frame.name_of(agent.session_id, self.box.logs.read_roster())
        if agent.session_id == me:
            raise Refused(f"{name} cannot watch itself", "name another agent; `agent-mailbox roster list` lists them")
        if agent.state != ALIVE or self.box.gone([agent.session_id]):
            raise Refused(f"{name} has ended already", "`agent-mailbox roster list` lists the living", code="ended")

    def _task(self, word: str, agent: str) -> str:
        view = TaskViews(self.box).task(word)
        task = view.task
        if view.holder != agent:
            name = frame.name_of(agent, self.box.logs.read_roster())
            raise Refused(f"{neutral(task.id)} is no task of {name}", "`agent-mailbox control log` shows whose it is")
        if task.decided is not None:
            raise Refused(
                f"{neutral(task.id)} is done", f"`agent-mailbox control log --request {typed(task.id)}` shows it"
            )
        return task.id

    def cancel(self, me: str, word: str) -> tuple[AgentWatch, bool]:
        """End a watch, by its id or a unique beginning; return whether it was over before, too.

        Raises ``NotFound``, and ``Refused`` unless it is that of ``me``, or of an agent that ``me`` commands."""
        fold = control_log.of_watches(self.box).watches
        ended = end_notice(
            self.box, me, word, fold, lambda: control_log.of_request(self.box, word).watches, fold.live(self.box.now()),
            messages.WatchEnd,
        )  # fmt: skip
        watch_reports.settle(self.box)
        return ended
