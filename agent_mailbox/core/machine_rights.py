"""The right of another machine to say who wrote a line.

Belongs here: that one rule. The person says of each machine whether it may speak as the person, and for which sessions.
Within that a machine tells of its own sessions alone: those that it registered first. A machine that only claims to run
somebody's session orders nothing, leads nobody, and ends nobody.
"""

from __future__ import annotations

from . import proofs
from .address import ALL, is_remote
from .records import USER, Message, Proof, Read, Record, RosterEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .roster import Roster

_SWEEPS = ("freeze", "retire", "release")
"""The events that a machine's steward may record, of that machine's sessions."""


class Rights(Record):
    """The person's word on another machine.

    ``fingerprint``: that of the key which the person confirmed. ``user``: it may speak as the person. ``sessions``: the
    ids for which it may speak; ``ALL`` means those that live there.
    """

    fingerprint: str
    user: bool = False
    sessions: tuple[str, ...] = ()


class SessionMachines:
    """The machines on which sessions live: by the roster, and by the events that are about to be written there.

    ``acted_here`` tells whether a session ever acted on this machine: lines of earlier versions do not say where an
    unproven one lives."""

    def __init__(self, roster: Roster, acted_here: Callable[[str], bool] = bool) -> None:
        self.roster = roster
        self._acted_here = acted_here
        self._fresh: dict[str, str | None] = {}
        self._words: dict[str, str] = {}
        self._ended: set[str] = set()

    def lives(self, session_id: str, machine: str) -> bool:
        """Return whether that machine was the first to register the session."""
        if session_id in self._fresh:
            return self._fresh[session_id] == machine
        agent = self.roster.get(session_id)
        return agent is not None and agent.home == machine

    def lives_here(self, session_id: str) -> bool:
        """Return whether the session is this machine's own."""
        agent = self.roster.get(session_id)
        return agent is not None and agent.home is None and (agent.proven or self._acted_here(session_id))

    def is_another_s(self, session_id: str, machine: str) -> bool:
        """Return whether the session is known, and not to live on that other machine. The person lives on none."""
        if session_id in self._fresh:
            return self._fresh[session_id] != machine
        agent = self.roster.get(session_id)
        if agent is None:
            return False
        if agent.home is not None or session_id == USER or agent.proven:
            return agent.home != machine
        return self._acted_here(session_id)

    def is_new(self, session_id: str) -> bool:
        """Return whether no machine registered the session yet."""
        return session_id not in self._fresh and self.roster.get(session_id) is None

    def is_taken(self, word: str | None, session_id: str) -> bool:
        """Return whether the word is another agent's: see ``Roster.means_another``."""
        if word is None:
            return False
        agent = self.roster.meant(word)
        if self.roster.means_another(word, session_id):
            return agent is None or agent.session_id not in self._ended
        return self._words.get(word, session_id) != session_id

    def note(self, event: RosterEvent, machine: str | None, *, counts: bool) -> None:
        """Take in an event that is about to be written. ``machine``: the other one whose it is. ``counts``: it is
        proven."""
        if self.is_new(event.session_id):
            self._fresh[event.session_id] = machine
        if counts and event.event in ("register", "update"):
            self._words.update(dict.fromkeys(filter(None, (event.session_id, event.name)), event.session_id))
        elif counts and event.event == "retire":
            self._ended.add(event.session_id)


def may_say(
    machine: str, rights: Rights, proof: Proof, record: Message | Read | RosterEvent, homes: SessionMachines
) -> bool:
    """Return whether the machine's word counts that this proof holds for the record."""

    def speaks_for(session_id: str) -> bool:
        if session_id in rights.sessions:
            return True
        is_first = isinstance(record, RosterEvent) and record.session_id == session_id and homes.is_new(session_id)
        return ALL in rights.sessions and (is_first or homes.lives(session_id, machine))

    if isinstance(record, RosterEvent):
        words = (record.session_id, record.name) if record.event in ("register", "update") else ()
        if any(homes.is_taken(word, record.session_id) for word in words):
            return False
    if isinstance(record, Message):
        return _may_write(rights, proof, record, speaks_for)
    older = record.continues if isinstance(record, RosterEvent) else None
    is_own = speaks_for(record.session_id) and (older is None or speaks_for(older))
    if proofs.is_person(proof):
        return rights.user or is_own  # the machine might as well say it in the session's own name
    if proof == proofs.STEWARD:
        return is_own and record.event in _SWEEPS
    return is_own and proof.id is not None and speaks_for(proof.id)


def oversteps(machine: str, record: Message | Read | RosterEvent, homes: SessionMachines) -> bool:
    """Return whether a machine tells of a session that is not its own, by a record of which nothing is proven.

    It may freeze one that has no client, as ``engine forget`` does: that one's next check thaws it. A name that another
    session has is not taken by this: the roster itself does not give it."""
    if isinstance(record, Message):
        return homes.is_another_s(record.sender, machine)
    if isinstance(record, Read):
        return homes.is_new(record.session_id) or homes.is_another_s(record.session_id, machine)
    if record.event == "freeze":
        return False
    older = record.continues
    if older is not None and homes.is_another_s(older, machine):
        return True
    return homes.is_another_s(record.session_id, machine)


def _may_write(rights: Rights, proof: Proof, message: Message, speaks_for: Callable[[str], bool]) -> bool:
    """Return whether the machine's word counts for a message. A session may write for another of its machine, such as a
    teammate, in that one's name. A machine's gateway writes for members of its swarms."""
    if proofs.is_person(proof):
        return rights.user
    if proofs.is_carried(proof):
        return ALL in rights.sessions and is_remote(message.sender)
    return proof.id is not None and speaks_for(proof.id) and speaks_for(message.sender)
