"""The open ends of a sender: acks that are missing, and mail that reaches nobody.

Belongs here: who still owes what to it. ``obligations`` has the reader's side. Everything is a function of one
``InboxState`` and ``now``.
"""

from __future__ import annotations

from . import message_reads, obligations
from .address import BROADCAST, DIRECT, ROLE, is_remote
from .reach import find_bearers
from .records import Record
from .roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from .inbox import InboxState
    from .records import Message
    from .roster import Roster


class Owing(Record):
    """One who still owes an ack: an agent, or the address of mail that nobody took. ``stage``: how far it is with the
    mail; empty if it is unread."""

    who: str
    stage: str


def missing_acks(session_id: str, state: InboxState, now: int) -> list[tuple[Message, list[Owing]]]:
    """Return the mail of the session, or of one it continues, that still lacks an ack, with those who owe it."""
    lineage = state.roster.lineage(session_id)
    asked = [m for m in state.messages.values() if m.ack and m.sender in lineage]
    if not asked:
        return []
    replies = obligations.repliers(state)
    rows = ((m, owing(m, state, replies.get(m.id, frozenset()), now)) for m in asked)
    return [(m, owed) for m, owed in rows if owed]


def owing(message: Message, state: InboxState, repliers: Collection[str], now: int) -> list[Owing]:
    """Return who still owes the message an ack; ``repliers`` are the senders of its answers.

    That are all readers that neither acked nor answered, and until it expires everyone who has yet to read it.
    """
    roster, found = state.roster, dict[str, str]()

    def owes(who: str) -> bool:
        lineage = roster.lineage(who)
        return message.sender not in lineage and obligations.is_owed(message, lineage, state, repliers)

    stages = state.reads.stages(message.id)
    for reader in message_reads.readers(message, state.reads):
        found.update(dict.fromkeys(filter(owes, roster.heirs(reader)), stages.get(reader, message_reads.READ)))
    if not state.expired(message, now):
        for who in _unread(message, state):
            if (
                who not in found
                and owes(who)
                and not message_reads.read_by(message, state.reads, roster.lineage(who), roster)
            ):
                found[who] = ""
    return [Owing(who, stage) for who, stage in found.items()]


def _unread(message: Message, state: InboxState) -> Iterator[str]:
    """Yield the agents that the message is for; the address itself if nobody of a role or elsewhere took it."""
    roster = state.roster
    for stored in message.recipients:
        if is_remote(stored) and "/" in stored:
            yield stored
            continue
        mode = roster.mode(stored)
        if mode == DIRECT:
            yield from roster.heirs_of(stored)
        elif mode != ROLE:
            yield from _others(message, stored, roster)
        elif message_reads.holder(message, state.reads, roster, stored) is None:
            yield message_reads.claimer(message, state.reads, roster, stored) or stored


def _others(message: Message, stored: str, roster: Roster) -> list[str]:
    found = find_bearers(stored, roster, message.bare)
    return [a.session_id for a in found if a.state != DEAD and a.session_id != message.sender]


def waits_for_nobody(message: Message, state: InboxState, now: int) -> bool:
    """Return whether one of the message's addresses means no agent that is not dead, and nobody took the message
    through it."""
    if message.type == "note":
        return False
    return not state.expired(message, now) and bool(lonely_addresses(message, state.reads, state.roster))


def lonely_addresses(message: Message, reads: message_reads.Reads, roster: Roster) -> list[str]:
    """Return the addresses through which nobody took the message, and that mean nobody now."""
    takers = message_reads.takers(message, reads)
    if message.read_by or (takers and len(message.recipients) == 1):
        return []
    ways = {read.via for read in reads.standing(message.id, takers)}
    return [
        stored
        for stored in message.recipients
        if not reaches(stored, message, roster)
        and not any(message_reads.is_taken(stored, way, message) for way in ways)
    ]


def reaches(stored: str, message: Message, roster: Roster) -> bool:
    """Return whether one of the message's addresses means anybody but its sender.

    Only a role, a tag or a bare word may mean nobody. A gateway's mail is on its way. Mail to a dead agent is a dead
    letter.
    """
    mode = roster.mode(stored)
    return is_remote(stored) or mode in (DIRECT, BROADCAST) or bool(_others(message, stored, roster))
