"""A control message as a step, and a request as a value: who asked, who must answer, and how it is decided.

Belongs here: these values. ``state`` makes the one for each message, and folds it into the other; ``transitions`` has
the steps of a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..frame import name_of
from ..records import Message, Record
from . import authority, transitions
from .messages import TIMEOUT, Answer, Ask, Payload, ShutdownApproved, ShutdownRejected
from .verdicts import REFUSED, Verdict

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
        """Return whether its asker waits no more at an instant (ms), if it is open."""
        expires = self.payload.expires if isinstance(self.payload, Ask) else None
        return expires is not None and now >= expires

    def why_moot(self, roster: Roster, now: int) -> str:
        """Return why an answer would change nothing: nobody waits for it, or who goes on by it is dead. Empty else."""
        if self.has_timed_out(now):
            return "it has timed out"
        worker = roster.get(self.worker)
        is_gone = worker is not None and not roster.heirs(self.worker)
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


class ControlStep(Record):
    """A control message as the fold meets it: who speaks in it, whether that is proven, and its place in the log's
    order. ``roster``: the agents, for questions of who may."""

    message: Message
    speaker: str
    is_proven: bool
    place: int
    roster: Roster

    def is_by(self, who: str) -> bool:
        """Return whether an agent wrote it, or one that has its place."""
        return authority.is_same(self.speaker, who, self.message.timestamp, self.roster)

    def is_by_holder(self, holder: str) -> bool:
        """Return whether the holder of a task wrote it, if there is one, or one that has its place.

        The roster's times are not asked: its clock may be set back. The commands refuse the dead.
        """
        return bool(holder) and self.is_by(holder)

    def commands(self, who: str) -> bool:
        """Return whether its proven speaker may command an agent."""
        return self.is_proven and authority.commands(self.speaker, who, self.message.timestamp, self.roster)

    def may_restrict(self, who: str) -> bool:
        """Return whether its speaker, proven or not, may restrict an agent."""
        return authority.commands(self.speaker, who, self.message.timestamp, self.roster, proven=False)

    def refused(self, about: str, why: str) -> Verdict:
        """Return the verdict for a step that is not its sender's to take."""
        return Verdict(REFUSED, why, about=about, forbidden=True)
