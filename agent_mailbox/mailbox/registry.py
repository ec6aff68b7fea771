"""Carrying out decisions about the roster.

Belongs here: looking and appending under the roster's lock, and the consequences of a death. The rules are
``core.roster_changes``.
"""

from __future__ import annotations

from ..core import codec, obligations, roster_changes
from ..core.address import is_remote
from ..core.line_forms import has_word, lines_read_by
from ..core.records import USER, Read
from ..core.roster import DEAD
from ..core.roster_changes import Decision, Registration
from ..core.text import typed
from ..errors import Busy, MailboxError, NotFound
from ..store.files import system
from ..store.files.board import WATCHED, Board
from ..store.files.lines import line_chunks
from ..store.files.small_files import OpenFile
from ..store.log.stamps import EVERYONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..core.records import Proof, RosterEvent
    from ..core.roster import Agent, Roster
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog, Log
    from .open_mailbox import OpenMailbox

SPAN = 1 << 16
"""Bytes of reads that are passed by together if none is of an agent that died."""


class Registry:
    """Keeps the roster of an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def change_roster(
        self, decide: Callable[[Roster], Decision], actor: str | None = None, *, even_away: bool = False
    ) -> Decision:
        """Carry out a decision about the roster, taken and appended under its lock; raises what ``decide`` raises.

        ``actor`` is the agent in whose name it is done (default: the session that an event is about). An agent whose
        death is recorded gives back, at once, the role mail that waits for its ack. ``even_away``: without the engine
        of several machines, or this machine's turn there, it is recorded here, and in the order later.
        """
        try:
            ordered = self.box.in_order(self.box.logs.roster, hurried=even_away)
            roster, decision = ordered.decide(self._change, decide, actor)
        except Busy:
            if not (even_away and self.box.logs.is_shared):
                raise
            roster, decision = self.box.logs.roster.decide(self._change, decide, actor)
        for event in decision.events:
            if event.lead is not None:
                from ..store.user_state import bindings  # which most events do without

                # It holds although the log is cut before the session's next call.
                bindings.bind(self.box.logs.stamp_files, event.session_id)
        self._settle_deaths([event.session_id for event in decision.events if event.event == "retire"], roster, actor)
        for event in decision.events:
            if event.event in ("freeze", "retire") and Board(self.box.logs.stamp_files, WATCHED).has(event.session_id):
                self._tell_watchers(event, actor or event.session_id)
        return decision

    def _settle_deaths(self, dead: Sequence[str], roster: Roster, actor: str | None) -> None:
        """Give back the claims of the dead, and those they had come into, with one look at the logs for all."""
        for group in self.box.by_machine(dict.fromkeys(old for one in dead for old in roster.lineage(one))):
            try:
                self.give_back(group, actor)
            except Busy:
                pass  # the deaths are recorded; the steward gives back what is left

    def _tell_watchers(self, event: RosterEvent, actor: str) -> None:
        from ..control_plane import watch_reports  # few are watched
        from ..core.control import watches

        try:
            reason = event.reason or {"freeze": "frozen", "retire": "retired"}[event.event]
            watch_reports.of_event(self.box, actor, event.session_id, watches.DEAD, reason=reason)
        except MailboxError:
            pass  # its end is recorded; the steward tells who was not told

    def _change(
        self, log: HeldLog | OrderedLog, decide: Callable[[Roster], Decision], actor: str | None
    ) -> tuple[Roster, Decision]:
        roster = self.box.logs.read_roster()
        decision = decide(roster)
        changed = {event.session_id for event in decision.events}
        heirs = {heir for session_id in changed for heir in roster.heirs(session_id)}
        proofs = [self._proof(event, actor or event.session_id) for event in decision.events]
        log.append([codec.spell_event(event) for event in decision.events], changed | heirs, proofs)
        log.sync()  # even if nothing changed: the last writer may have died before its sync
        return roster, decision

    def admit(self, session_id: str) -> bool:
        """Register an unknown session (then return true), or thaw a frozen one, because it checks.

        Raises ``Refused`` for the dead."""
        decision = self.change_roster(
            lambda roster: roster_changes.checked_in(session_id, roster, self.box.now()), even_away=True
        )
        return any(event.event == "register" for event in decision.events)

    def give_back(self, sessions: Sequence[str], actor: str | None = None) -> None:
        """Append releases of all mail that dead agents still owed, under the reads' lock, so that no ack is lost.

        ``actor``: the agent in whose name (default: each agent's own)."""
        self.box.giving_back(sessions).decide(self._give_back, sessions, actor)

    def _give_back(self, log: HeldLog | OrderedLog, sessions: Sequence[str], actor: str | None) -> None:
        now, roster = self.box.now(), self.box.logs.read_roster()
        readers: dict[str, None] = {}
        for session_id in sessions:
            if session_id not in readers:  # else so are all whom it continues, who may be hundreds
                readers.update(dict.fromkeys(roster.lineage(session_id)))
        spelt = [reader.encode() for reader in readers]
        theirs = list(lines_read_by(line_chunks(log.fd, system.fstat(log.fd).st_size, size=SPAN), spelt))
        records = map(codec.read, (line for _, line in theirs))
        ids = {record.message_id for record in records if isinstance(record, Read)}
        state = self.box.logs.state_of(ids, self.box.config.ttls) if ids else None  # who read nothing owes nothing
        owed = obligations.owed_on_death(sessions, state) if state else ()
        given = [Read(message_id, session_id, now, "release") for session_id, message_id in owed]
        log.append(map(codec.spell_read, given), EVERYONE, [self.box.prove(actor or r.session_id) for r in given])
        log.sync(None if given else theirs)  # a killed process may have given back before

    def register(self, request: Registration, actor: str, *, even_away: bool = False) -> tuple[Agent, Decision]:
        """Register or update a session as ``actor`` asks; return the agent and the decision."""
        request = request.replace(is_left=self._is_of_left_swarm)
        decision = self.change_roster(
            lambda roster: roster_changes.enrolled(request, roster, actor, self.box.now(), self.box.config.namespaces),
            actor,
            even_away=even_away,
        )
        is_own = actor == request.session_id and any(e.session_id == actor for e in decision.events)
        if request.event == "register" or is_own:  # another's word is no sign of life
            self.box.logs.beat(request.session_id, self.box.now())
        roster = self.box.logs.read_roster()
        agent = roster.get(request.session_id)
        if agent is None:
            raise NotFound(f"{request.session_id} vanished from the roster", "`agent-mailbox doctor` looks closer")
        return agent, decision.replace(warnings=(*decision.warnings, *_left_to_the_person(decision, roster)))

    def end(self, session_id: str, event: str, actor: str, reason: str | None = None) -> Agent:
        """Freeze, thaw or retire an agent (by id, name or prefix); raises ``NotFound`` or ``Refused``."""
        decision = self.change_roster(
            lambda roster: roster_changes.ended(session_id, event, roster, actor, self.box.now(), reason),
            actor,
            even_away=event == "freeze" and actor == session_id,
        )
        roster = self.box.logs.read_roster()
        agent = roster.find(session_id)
        if event == "retire" and not decision.events:  # whoever recorded its death may have died before giving back
            self.give_back(roster.lineage(agent.session_id), actor)
        return agent

    def is_unused(self, name: str) -> bool:
        """Return whether no event of the roster has the name, live or archived, and no live mail went to it.

        A compacted roster forgets a name that its bearer gave up, and mail may wait for a name that nobody has yet."""
        logs = self.box.logs
        places = (logs.roster, name), (self.box.archive.roster_log(), name), (logs.messages, f"role:{name}")
        return not any(_has_word(log, word) for log, word in places)

    def _is_of_left_swarm(self, tag: str) -> bool:
        if not is_remote(tag):
            return False
        from . import mailbox_gateway  # few mailboxes have a gateway

        return mailbox_gateway.is_left(tag, self.box.directory)

    def _proof(self, event: RosterEvent, actor: str) -> Proof | None:
        """Return the proof for an event's writer: if possible that it speaks for the agent which is continued."""
        older = None if event.continues is None or actor == USER else self.box.prove(event.continues)
        return older or self.box.prove(actor)


def _has_word(log: Log, word: str) -> bool:
    """Return whether a line has the word. A roster of two years has 10 MB: its lines one by one take half a second."""
    if (fd := log.open()) is None:
        return False
    with OpenFile(fd):
        return any(has_word(part, word) for _, part in line_chunks(fd, system.fstat(fd).st_size))


def _left_to_the_person(decision: Decision, roster: Roster) -> Iterator[str]:
    """Yield a warning for each lead whose name somebody took, and not its place."""
    for event in decision.events:
        old = event.continues
        if old is None or old in roster.estate(event.session_id):
            continue
        led = [agent.session_id for agent in roster.led_by(old) if agent.state != DEAD]
        if led:
            workers = f"{led[0]} and {len(led) - 1} more" if len(led) > 1 else led[0]
            change = f"agent-mailbox roster update --session-id {typed(led[0])} --lead {typed(event.session_id)}"
            yield f"{old} led {workers}, for whom the person decides now; `{change}` at a terminal changes that"
