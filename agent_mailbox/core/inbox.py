"""What a reader has yet to read, what it owes, what nobody ever read: the set difference, written once.

Belongs here: unread, obligations, dead letters, threads, delivery reports. Everything is a function of one ``State``
(the folded logs) and ``now``.
"""

from __future__ import annotations

from . import claims, expiry
from .address import ALL, DIRECT, ROLE, Reader, role_of, route, teammate
from .claims import Reads
from .records import USER, Message, Record
from .roster import ALIVE, DEAD, FROZEN, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class State(Record):
    """The folded logs: messages in log order (first of each id), reads, roster, hours to live per mode."""

    messages: Mapping[str, Message]
    reads: Reads
    roster: Roster
    ttls: Mapping[str, float | None]

    def expires_at(self, message: Message) -> int | None:
        """See ``expiry.expires_at``."""
        return expiry.expires_at(message, self.roster, self.ttls)

    def expired(self, message: Message, now: int) -> bool:
        """See ``expiry.expired``."""
        return expiry.expired(message, now, self.roster, self.ttls)


class Item(Record):
    """A message as it reaches one reader: by which mode, read through which address, and if reading it claims it.

    ``read_by`` are those who read it before; ``muted``: hooks do not bring it up; ``note``: what became of a control
    message, where that is to be told.
    """

    message: Message
    mode: str
    via: str
    claims: bool
    expires_at: int | None
    read_by: tuple[str, ...] = ()
    muted: bool = False
    note: str = ""


def item_for(message: Message, reader: Reader, state: State, now: int) -> Item | None:
    """The message as unread mail of the reader at ``now``; None if it is not.

    Unread = addressed to the reader − its own − expired − read by it (or a session it continues) and not released −
    role mail claimed by another.
    """
    if message.sender == reader.session_id:
        return None
    way = route(message.recipients, reader)
    if way is None or claims.read_by(message, state.reads, reader.lineage):
        return None
    if way.claims and claims.holder(message, state.reads, state.roster) is not None:
        return None
    deadline = state.expires_at(message)
    if deadline is not None and now >= deadline:
        return None
    before = tuple(claims.readers(message, state.reads))
    muted = bool(reader.muted) and _is_muted(message, reader, state.roster)
    return Item(message, way.mode, way.via, way.claims, deadline, before, muted)


def _is_muted(message: Message, reader: Reader, roster: Roster) -> bool:
    """A muted sender stays so as its successor; control and the person are always heard."""
    if message.type == "control" or message.sender == USER:
        return False
    return not set(reader.muted).isdisjoint(roster.lineage(message.sender))


def _urgency(item: Item) -> int:
    if item.message.type == "control":
        return 0
    return 1 if item.message.priority == "high" else 2


def in_order(items: Iterable[Item]) -> list[Item]:
    """As they are shown: control, high priority, the rest; log order within (the sort is stable)."""
    return sorted(items, key=_urgency)


def unread(session_id: str, state: State, now: int) -> list[Item]:
    """Everything the session has yet to read, in the order it is shown."""
    reader = state.roster.reader(session_id)
    found = [item_for(message, reader, state, now) for message in state.messages.values()]
    return in_order([item for item in found if item is not None])


def repliers(state: State) -> dict[str, set[str]]:
    """Who replied to each message that has replies."""
    found: dict[str, set[str]] = {}
    for message in state.messages.values():
        if message.thread is not None:
            found.setdefault(message.thread, set()).add(message.sender)
    return found


def obligations(session_id: str, state: State) -> list[Message]:
    """What the session (or one it continues) read, was asked to ack, and has neither acked nor answered."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and state.reads.by(m.id, lineage)]
    if not asked:
        return []
    replies = repliers(state)
    return [
        m for m in asked if not state.reads.acked(m.id, lineage) and replies.get(m.id, frozenset()).isdisjoint(lineage)
    ]


def unanswered(session_id: str, state: State) -> list[Message]:
    """What the session (or one it continues) sent and asked an ack for, and nobody has acked or answered."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and m.sender in lineage]
    if not asked:
        return []
    replies = repliers(state)
    return [
        m
        for m in asked
        if not state.reads.acked(m.id, claims.readers(m, state.reads))
        and replies.get(m.id, frozenset()) <= frozenset(lineage)
    ]


def staleness(message: Message, state: State, now: int) -> str:
    """Why dealing with the message may be pointless by now: ``sender gone``, ``superseded`` (its sender wrote again
    below it), ``expired``; empty where nothing speaks against it."""
    roster = state.roster
    if message.sender != USER and roster.state(message.sender) == DEAD and not roster.heirs(message.sender):
        return "sender gone"
    if any(m.thread == message.id and m.sender == message.sender for m in state.messages.values()):
        return "superseded"
    return "expired" if state.expired(message, now) else ""


def owed_on_death(session_id: str, state: State) -> list[str]:
    """Ids of what a dead agent gives back: role mail that it claimed, was asked to ack and neither acked nor answered,
    and whatever it was offered and never seen to have taken in. Nothing while someone living continues the agent: the
    obligation passed over."""
    line = tuple(agent.session_id for agent in state.roster.line(session_id))
    if state.roster.heirs(session_id):
        return []
    owed = {
        m.id
        for m in obligations(session_id, state)
        if claims.holder(m, state.reads, state.roster) == session_id and not state.reads.acked(m.id, line)
    }
    owed.update(i for i in state.messages if any(r.session_id == session_id for r in state.reads.unseen(i)))
    replies = repliers(state)
    return [i for i in state.messages if i in owed and replies.get(i, frozenset()).isdisjoint(line)]


EXPIRED, RECIPIENT_DEAD = "expired", "recipient_dead"


def dead_reason(message: Message, state: State, now: int) -> str | None:
    """Why the message is a dead letter (``EXPIRED`` or ``RECIPIENT_DEAD``), or None if it is not.

    Someone having read it ends the question; so does a living successor of a dead recipient.
    """
    if claims.readers(message, state.reads):
        return None
    if state.expired(message, now):
        return EXPIRED
    roster = state.roster
    gone = all(roster.mode(a) == DIRECT and not _living_recipient(a, roster) for a in message.recipients)
    return RECIPIENT_DEAD if gone else None


def _living_recipient(word: str, roster: Roster) -> bool:
    agent = roster.meant(word)
    return agent is None or bool(roster.heirs(agent.session_id))


def dead_letters(state: State, now: int, session_id: str | None = None) -> list[tuple[Message, str]]:
    """Dead letters with their reason: those the session sent or was to get, or everyone's."""
    reader = state.roster.reader(session_id) if session_id is not None else None
    found = []
    for message in state.messages.values():
        if reader and message.sender not in reader.lineage and route(message.recipients, reader) is None:
            continue
        reason = dead_reason(message, state, now)
        if reason is not None:
            found.append((message, reason))
    return found


def visible(message: Message, reader: Reader) -> bool:
    """Is the message part of the reader's history: sent by it, or addressed to it?"""
    return message.sender in reader.lineage or route(message.recipients, reader) is not None


def exchanged(messages: Iterable[Message], word: str, roster: Roster) -> list[Message]:
    """The messages from or to what a written address means; raises ``NotFound`` or ``Ambiguous``."""
    word = teammate(word) or word
    if word == ALL or ":" in word or (f"role:{word}" in roster.roles_ever and not roster.is_agent(word)):
        wanted = word if word == ALL or ":" in word else f"role:{word}"
        return [m for m in messages if m.sender == wanted or any(wanted in (a, role_of(a)) for a in m.recipients)]
    lineage = roster.lineage(roster.find(word).session_id)
    return [m for m in messages if m.sender in lineage or not set(lineage).isdisjoint(m.recipients)]


def thread_of(message_id: str, messages: Mapping[str, Message]) -> list[Message]:
    """The whole chain a message stands in, oldest first: up to its root, then everything below, whoever wrote it."""
    root, seen = message_id, {message_id}
    while root in messages:
        parent = messages[root].thread
        if parent is None or parent not in messages or parent in seen:
            break
        seen.add(parent)
        root = parent
    members = {root}
    chain = []
    pending = list(messages.values())
    while True:
        grown = [m for m in pending if m.id in members or m.thread in members]
        if not grown:
            break
        members.update(m.id for m in grown)
        chain += grown
        pending = [m for m in pending if m.id not in members]
    order = {message: place for place, message in enumerate(messages)}
    return sorted(chain, key=lambda m: order[m.id])


class Delivery(Record):
    """What a sender is told: agents that will see it now, and what waits (frozen agents, roles nobody holds)."""

    agents: tuple[str, ...]
    waiting_for: tuple[str, ...]


def delivery(message: Message, roster: Roster) -> Delivery:
    """Whom a message reaches at the moment it is sent."""
    now: dict[str, None] = {}
    waiting: dict[str, None] = {}
    for stored in message.recipients:
        mode = roster.mode(stored)
        if mode == DIRECT:
            for session_id in roster.heirs(stored):
                if session_id != message.sender:
                    (now if roster.state(session_id) == ALIVE else waiting)[session_id] = None
            continue
        others = [a for a in _bearing(stored, mode, roster) if a.session_id != message.sender]
        living = dict.fromkeys(a.session_id for a in others if a.state == ALIVE)
        now.update(living)
        if mode != ROLE:
            waiting.update(dict.fromkeys(a.session_id for a in others if a.state == FROZEN))
        elif not living:
            waiting[stored] = None
    return Delivery(agents=tuple(now), waiting_for=tuple(w for w in waiting if w not in now))


def _bearing(stored: str, mode: str, roster: Roster) -> list[Agent]:
    """All agents, in whatever state, that a role, tag or broadcast address matches now."""
    if stored == ALL:
        return list(roster.agents.values())
    return roster.carrying(role_of(stored) if mode == ROLE else stored, None)


def concerned(message: Message, roster: Roster) -> set[str] | None:
    """The sessions whose unread mail the message may change, by the roster as it is; None: everyone's."""
    found: set[str] = set()
    for stored in message.recipients:
        if stored == ALL:
            return None
        if ":" not in stored:
            found.update((stored, *roster.heirs(stored)))
        found.update(a.session_id for a in roster.carrying(stored if ":" in stored else role_of(stored), None))
    return found
