"""Telling the watchers of an agent that something happened to it.

Belongs here: finding those watchers, and one message to each. It comes from the process that makes the event known. The
steward tells of events whose process was killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import frame
from ..core.address import uuid_of
from ..core.compose import Draft
from ..core.control import message_text, messages
from ..core.control.watches import DEAD, TASK
from ..core.proofs import STEWARD
from ..core.text import clipped, neutral
from ..store.files import system
from ..store.files.board import WATCHED, Board
from . import control_log
from .task_reports import append_notice

if TYPE_CHECKING:
    from ..core.control.watches import AgentWatch
    from ..mailbox.open_mailbox import OpenMailbox


def live(desk: OpenMailbox) -> list[AgentWatch]:
    """Return the watches that hold now, oldest first."""
    return control_log.of_watches(desk).watches.live(desk.now())


def of_event(desk: OpenMailbox, me: str, agent: str, event: str, *, task: str = "", reason: str = "") -> None:
    """Tell those who watch an agent of an event, in the name of ``me``, who knows of it."""
    for watch in live(desk):
        if watch.agent == agent and watch.is_for(event, task):
            _tell(desk, me, watch, event, reason)
    settle(desk)
    if not Board(desk.logs.stamp_files, WATCHED).has(agent):
        desk.logs.stamp_files.try_to_disturb(agent)  # its next stamp spares the hook at its turn's end


def of_all_that_is(desk: OpenMailbox, me: str) -> None:
    """Tell the watchers, in the name of ``me``, of each event that the log shows and nobody told."""
    fold, now = control_log.of_watches(desk).watches, desk.now()
    for watch in fold.live(now):
        event = next((one for one in (TASK, DEAD) if fold.has_happened(watch, one, now)), None)
        if event is not None:
            _tell(desk, me, watch, event)
    settle(desk)


def settle(desk: OpenMailbox) -> None:
    """Note which agents are watched now, and by which sessions."""
    with desk.logs.messages.held():  # a watch that is set later is noted later
        found: dict[str, set[str]] = {}
        for watch in live(desk):
            found.setdefault(watch.agent, set()).add(watch.owner)
        Board(desk.logs.stamp_files, WATCHED).settle_told(found)


def _tell(desk: OpenMailbox, me: str, watch: AgentWatch, event: str, reason: str = "") -> None:
    """Send a watcher its report. A session is not shown its own mail, so then it comes from the steward."""
    sender = STEWARD if me == watch.owner else me
    roster = desk.logs.read_roster()
    agent = roster.get(sender)
    payload = messages.WatchReport(
        request_id=watch.id, timestamp=desk.now(), agent_id=sender,
        agent_name=(agent.name or "") if agent is not None else "",
        agent=watch.agent, name=frame.name_of(watch.agent, roster), event=event,
        task=watch.task if event == TASK else "", reason=clipped(neutral(reason), 200),
    )  # fmt: skip
    draft = Draft(sender=sender, to=(watch.owner,), content=message_text.written(payload), type="control")
    append_notice(desk, draft, uuid_of(system.urandom(16).hex(), "4"))
