"""What a reader has yet to read: the set difference, written once.

Belongs here: unread, and the ``MailState`` (the folded logs) that everything asked about mail is a function of, with
``now``: what is owed (``owing``), what hangs together (``threads``). Every poll needs this module, and not those.
"""

from __future__ import annotations

from . import claims, expiry
from .address import Reader, route
from .claims import Reads
from .records import USER, Message, Record
from .roster import Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class MailState(Record):
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


def item_for(message: Message, reader: Reader, state: MailState, now: int) -> Item | None:
    """The message as unread mail of the reader at ``now``; None if it is not.

    Unread = addressed to the reader − its own − expired − read by it (or a session it continues) and not released −
    role mail claimed by another.
    """
    if message.sender == reader.session_id:
        return None
    way = route(message.recipients, reader)
    if way is None or claims.read_by(message, state.reads, reader.lineage, state.roster):
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


def unread(session_id: str, state: MailState, now: int) -> list[Item]:
    """Everything the session has yet to read, in the order it is shown."""
    reader = state.roster.reader(session_id)
    found = [item_for(message, reader, state, now) for message in state.messages.values()]
    return in_order([item for item in found if item is not None])
