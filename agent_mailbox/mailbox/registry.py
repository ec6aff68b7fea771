"""Carrying out decisions about the roster.

Belongs here: looking and appending under the roster's lock, and what follows a death. Who may be what is
``core.roster_changes``.
"""

from __future__ import annotations

from ..core import codec, obligations, roster_changes
from ..core.records import USER, Read
from ..core.roster import DEAD
from ..core.roster_changes import Decision, Registration
from ..errors import Busy, NotFound
from .opened import OpenMailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..core.records import RosterEvent
    from ..core.roster import Agent, Roster


def change_roster(desk: OpenMailbox, decide: Callable[[Roster], Decision], actor: str | None = None) -> Decision:
    """Carry out a decision about the roster, taken and appended under its lock; raises what ``decide`` raises.

    ``actor`` is in whose name it is done (default: the session that an event is about). Whoever's death is recorded
    gives back, at once, the role mail that waits for its ack.
    """
    with desk.logs.roster.held() as log:
        roster = desk.logs.read_roster()
        decision = decide(roster)
        changed = {event.session_id for event in decision.events}
        heirs = {heir for session_id in changed for heir in roster.heirs(session_id)}
        proofs = [_proof(desk, event, actor or event.session_id) for event in decision.events]
        log.append([codec.roster_line(event) for event in decision.events], changed | heirs, proofs)
        log.sync()  # also where nothing changed: whoever wrote what stands there may have died before its sync
    for event in decision.events:
        if event.lead is not None:
            desk.logs.trail.bind(event.session_id)  # although the log is cut before the session's next call
        if event.event == "retire":
            try:
                # its own claims, and those it had come into
                give_back(desk, roster.lineage(event.session_id), actor)
            except Busy:
                pass  # the death is recorded; the steward gives back what is left
    return decision


def _proof(desk: OpenMailbox, event: RosterEvent, actor: str) -> str | None:
    """Return what is proven of an event's writer: if possible that it speaks for the agent which is continued."""
    older = None if event.continues is None or actor == USER else desk.prove(event.continues)
    return older or desk.prove(actor)


def admit(desk: OpenMailbox, session_id: str) -> None:
    """A check by a session that is not alive: registers the unknown, thaws the frozen; ``Refused`` to the dead."""
    change_roster(desk, lambda roster: roster_changes.checked_in(session_id, roster, desk.now()))


def give_back(desk: OpenMailbox, sessions: Iterable[str], actor: str | None = None) -> None:
    """Append releases for what dead agents still owed, decided under the reads' lock, so that no ack is lost.

    ``actor`` is in whose name (default: each agent's own)."""
    with desk.logs.reads.held() as log:
        state, now = desk.state(), desk.now()
        records = [
            Read(message_id=i, session_id=session_id, timestamp=now, event="release")
            for session_id in sessions
            for i in obligations.owed_on_death(session_id, state)
        ]
        log.append(map(codec.read_line, records), None, [desk.prove(actor or r.session_id) for r in records])
        log.sync()


def register(desk: OpenMailbox, request: Registration, actor: str) -> tuple[Agent, Decision]:
    """Register or update a session as ``actor`` asks; returns the agent and what was decided."""
    decision = change_roster(
        desk, lambda roster: roster_changes.enrolled(request, roster, actor, desk.now(), desk.config.namespaces), actor
    )
    if request.event == "register" or any(e.session_id == request.session_id for e in decision.events):
        desk.logs.beat(request.session_id, desk.now())
    roster = desk.logs.read_roster()
    agent = roster.get(request.session_id)
    if agent is None:
        raise NotFound(f"{request.session_id} vanished from the roster", "`agent-mailbox doctor` looks closer")
    return agent, decision.replace(warnings=(*decision.warnings, *_left_to_the_person(decision, roster)))


def _left_to_the_person(decision: Decision, roster: Roster) -> Iterator[str]:
    """Yield a warning for each lead whose name somebody took, and not its place."""
    for event in decision.events:
        old = event.continues
        if old is None or old in roster.estate(event.session_id):
            continue
        led = [agent.session_id for agent in roster.agents.values() if agent.lead == old and agent.state != DEAD]
        if led:
            workers = f"{led[0]} and {len(led) - 1} more" if len(led) > 1 else led[0]
            change = f"`agent-mailbox roster update --session-id {led[0]} --lead {event.session_id}` at a terminal"
            yield f"{old} led {workers}, for whom the person decides now; {change} changes that"


def end(desk: OpenMailbox, session_id: str, event: str, actor: str, reason: str | None = None) -> Agent:
    """Freeze, thaw or retire an agent (by id, name or prefix); raises ``NotFound`` or ``Refused``."""
    decision = change_roster(
        desk, lambda roster: roster_changes.ended(session_id, event, roster, actor, desk.now(), reason), actor
    )
    roster = desk.logs.read_roster()
    agent = roster.find(session_id)
    if event == "retire" and not decision.events:  # whoever recorded its death may have died before giving back
        give_back(desk, roster.lineage(agent.session_id), actor)
    return agent


class Registry(OpenMailbox):
    """The part of the facade that keeps the roster."""

    def change_roster(self, decide: Callable[[Roster], Decision], actor: str | None = None) -> Decision:
        """See ``change_roster``."""
        return change_roster(self, decide, actor)

    def register(self, request: Registration, actor: str) -> tuple[Agent, Decision]:
        """See ``register``."""
        return register(self, request, actor)

    def end(self, session_id: str, event: str, actor: str, reason: str | None = None) -> Agent:
        """See ``end``."""
        return end(self, session_id, event, actor, reason)
