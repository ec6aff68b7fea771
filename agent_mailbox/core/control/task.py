"""A task, as a value: who added it, for whom, who holds it, how far it is.

Belongs here: that value, and its state for a reader. ``tasks`` folds messages into it, ``transitions`` has its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import transitions
from .control_requests import ControlRequest

if TYPE_CHECKING:
    from ..roster import Roster
    from .messages import TaskAssignment

HANDOVER = "handover-"
"""The beginning of the id of a task by which a session hands over what it holds."""
BLOCKED = "blocked"
"""The state of a task that waits for others, and the phase of one whose holder cannot go on."""


class Task(ControlRequest):
    """A task. ``asker`` added it, ``answerer`` holds it (empty: nobody).

    ``to``: its addresses. ``claim``: the message by which its holder has it. ``moved``: the instant (ms) of that, or of
    the latest progress. ``phase``: the latest that its holder told. ``held_proven``: is it proven who holds it?
    ``handed``: the latest task by which its holder hands it over. ``adder``: who spoke when it was added.
    """

    payload: TaskAssignment
    to: tuple[str, ...] = ()
    claim: str = ""
    moved: int = 0
    phase: str = ""
    held_proven: bool = True
    handed: str = ""
    adder: str = ""

    @property
    def is_open(self) -> bool:
        """Return False: a task needs no decision."""
        return False

    @property
    def is_over(self) -> bool:
        """Return whether it is done or cancelled."""
        return self.state not in transitions.UNFINISHED

    @property
    def title(self) -> str:
        """Return what it is called."""
        return self.payload.title

    @property
    def after(self) -> tuple[str, ...]:
        """Return the tasks that must be done before."""
        return self.payload.after

    @property
    def is_handover(self) -> bool:
        """Return whether by it a session hands over what it holds, be that tasks or none."""
        return bool(self.hands) or self.id.startswith(HANDOVER)

    @property
    def hands(self) -> tuple[str, ...]:
        """Return the tasks that go to who claims it: it hands them over."""
        return self.payload.hands

    def list_deciders(self, roster: Roster) -> list[str]:
        """Return its holder."""
        return [holder] if (holder := self.holder(roster)) else []

    def holder(self, roster: Roster) -> str:
        """Return the agent that holds it now: the claimer, or who has its place; empty if nobody does.

        A holder that is dead, or whose client is recorded as ended, holds nothing; nor does one that came back from
        the dead.
        """
        if roster.get(self.answerer) is None or self.is_over:
            return self.answerer
        heirs = [heir for heir in roster.heirs(self.answerer) if self.answerer in roster.estate(heir)]
        now = roster.get(heirs[-1]) if heirs else None
        return "" if now is None or now.has_ended or now.returned > self.moved else now.session_id

    def is_left_by(self, holder: str, when: int, roster: Roster) -> bool:
        """Return whether its holder came back from the dead before an instant (ms): it may claim the task again."""
        agent = roster.get(holder)
        return agent is not None and self.moved < agent.returned <= when
