"""A request or a task of the control plane, as a value: who asked, who must answer, and how it is decided.

Belongs here: that value. ``state`` folds messages into it, ``transitions`` has its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..frame import name_of
from ..records import Record
from . import authority, transitions
from .messages import TIMEOUT, Answer, Ask, Payload, ShutdownApproved, ShutdownRejected

if TYPE_CHECKING:
    from ..records import Proof
    from ..roster import Roster


class ControlRequest(Record):
    """A request or a task, and its state. ``asker`` asked; instants in ms, of the messages' writing.

    ``answerer`` is the agent that must answer, if it is one (a shutdown's or task's worker; empty: the asker's lead).
    Only a ``proven`` request can be approved. Any program may deny one in its decider's name: ``answer_proven``. The
    words for both are ``proof`` and ``answer_proof``.
    """

    id: str
    flow: str
    asker: str
    answerer: str
    payload: Payload
    message_id: str
    place: int
    asked: int
    state: str
    answer: Payload | None = None
    by: str = ""
    answer_id: str = ""
    decided: int | None = None
    proven: bool = True
    answer_proven: bool = True
    proof: Proof | None = None
    answer_proof: Proof | None = None

    def may_decide(self, speaker: str, when: int, roster: Roster, *, approves: bool) -> bool:
        """Return whether the speaker may decide the request at that instant: follows from the roster alone.

        The worker decides a shutdown, the worker's lead everything else. An unproven lead may deny.
        """
        if self.flow == transitions.SHUTDOWN:
            return authority.is_same(speaker, self.answerer, when, roster)
        return authority.commands(speaker, self.asker, when, roster, proven=approves)

    def list_deciders(self, roster: Roster) -> list[str]:
        """Return who decides it: for a shutdown the worker, else its lead, or the person if it has none."""
        if self.answerer:
            return roster.heirs(self.answerer) or [self.answerer]
        return [authority.lead_of(self.asker, roster)]

    @property
    def is_open(self) -> bool:
        """Return whether it still needs a decision."""
        return self.state == transitions.OPEN

    def has_timed_out(self, now: int) -> bool:
        """Return whether it is open, and its asker waits no more at an instant (ms)."""
        expires = self.payload.expires if isinstance(self.payload, Ask) else None
        return self.is_open and expires is not None and now >= expires

    def why_moot(self, roster: Roster, now: int) -> str:
        """Return why an answer would change nothing: nobody waits for it, or who goes on by it is dead. Empty else."""
        if self.has_timed_out(now):
            return "it has timed out"
        worker = roster.get(self.worker)
        is_gone = self.is_open and worker is not None and not roster.heirs(self.worker)
        return f"{name_of(self.worker, roster)} is dead" if is_gone else ""

    @property
    def doubt(self) -> str:
        """Return " (unverified)" if nothing proves who decided it."""
        return "" if self.answer_proven else " (unverified)"

    @property
    def worker(self) -> str:
        """Return the agent that goes on or ends by it."""
        return self.answerer or self.asker


def decision_of(answer: Payload) -> str:
    """Return the event that an answer to a request is: its approval, its denial, or its asker's time-out."""
    if isinstance(answer, Answer | ShutdownRejected) and answer.cause == TIMEOUT:
        return TIMEOUT
    is_approved = answer.approved if isinstance(answer, Answer) else isinstance(answer, ShutdownApproved)
    return transitions.APPROVE if is_approved else transitions.DENY
