"""A control message as the fold meets it: who speaks in it, whether that is proven, and its place in the log's order.

Belongs here: that value, and what requests, tasks and notices ask of it. ``state`` makes it, once for a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import Message, Record
from . import authority
from .verdicts import REFUSED, Verdict

if TYPE_CHECKING:
    from ..roster import Roster
    from .task import Task


class ControlStep(Record):
    """A message, its speaker, and its place. ``roster``: the agents, for questions of who may."""

    message: Message
    speaker: str
    is_proven: bool
    place: int
    roster: Roster

    def is_by(self, who: str) -> bool:
        """Return whether an agent wrote it, or one that has its place."""
        return authority.is_same(self.speaker, who, self.message.timestamp, self.roster)

    def is_by_holder(self, task: Task) -> bool:
        """Return whether who claimed the task wrote it, or one that has its place.

        The roster's times are not asked: its clock may be set back. The commands refuse the dead.
        """
        return bool(task.answerer) and self.is_by(task.answerer)

    def commands(self, who: str) -> bool:
        """Return whether its proven speaker may command an agent."""
        return self.is_proven and authority.commands(self.speaker, who, self.message.timestamp, self.roster)

    def may_restrict(self, who: str) -> bool:
        """Return whether its speaker, proven or not, may restrict an agent."""
        return authority.commands(self.speaker, who, self.message.timestamp, self.roster, proven=False)

    def refused(self, about: str, why: str) -> Verdict:
        """Return the verdict for a step that is not its sender's to take."""
        return Verdict(REFUSED, "", why, about=about, forbidden=True)
