"""A reader's unread mail: the set difference, written once.

Belongs here: unread, and the ``InboxState`` (the folded logs). Every question about mail is a function of it and
``now``: debts (``obligations``), conversations (``threads``). Every poll needs this module, but not those.
"""

from __future__ import annotations

from . import claims, codec, expiry
from .address import DIRECT, Reader, route
from .claims import Reads
from .records import USER, Message, Read, Record
from .roster import Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .address import Route


def _never(_: str) -> int:
    return 0


class InboxState(Record):
    """The folded logs: messages in log order (first of each id), reads, roster, hours to live per mode.

    ``sign`` gives the last sign of a session's life (``claims.lapsed``).
    """

    messages: Mapping[str, Message]
    reads: Reads
    roster: Roster
    ttls: Mapping[str, float | None]
    sign: Callable[[str], int] = _never

    def expired(self, message: Message, now: int) -> bool:
        """Return whether it has expired; see ``expiry.expired``."""
        return expiry.expired(message, now, self.roster, self.ttls)


class Item(Record):
    """A message as it reaches one reader: by which mode, read through which address, and if reading it claims it.

    ``read_by`` are its earlier readers; ``muted``: hooks do not bring it up; ``note`` tells the result of a control
    message, if that matters. ``claimed``: the standing claim of role mail. ``withheld``: it is another's, so the mail
    is not shown; it may come back.
    """

    message: Message
    mode: str
    via: str
    claims: bool
    expires_at: int | None
    read_by: tuple[str, ...] = ()
    muted: bool = False
    note: str = ""
    claimed: Read | None = None
    withheld: bool = False


def item_for(message: Message, reader: Reader, state: InboxState, now: int) -> Item | None:
    """Return the message as unread mail of the reader at ``now``; None if it is not.

    Unread mail is addressed to the reader, without:

    - its own
    - expired mail
    - mail read by it (or a session it continues) and not released
    - role mail that another holds
    - notes, and tasks that are open to a role or a tag: they wait on a board, and not in an inbox

    Role mail that another claimed and has not read is ``withheld``.
    """
    if message.sender == reader.session_id:
        return None
    way = route(message.recipients, reader, message.bare)
    if way is None or claims.read_by(message, state.reads, reader.lineage, state.roster):
        return None
    if message.type not in _USUAL and is_on_board(message, way.mode):
        return None
    if way.claims and claims.holder(message, state.reads, state.roster, way.via) is not None:
        way = _another_way(message, reader, state) if message.bare else None
        if way is None:
            return None
    claimed = state.reads.claim(message.id) if way.claims else None
    deadline = expiry.expires_at(message, state.roster, state.ttls)
    if deadline is not None and now >= deadline:
        return None
    before = tuple(claims.readers(message, state.reads))
    muted = bool(reader.muted) and _is_muted(message, reader, state.roster)
    withheld = claimed is not None and _is_withheld(claimed, message, reader, state, now)
    return Item(message, way.mode, way.via, way.claims, deadline, before, muted, "", claimed, withheld)


def _another_way(message: Message, reader: Reader, state: InboxState) -> Route | None:
    """Return the way to a part of role mail that nobody holds: each bare word among its recipients is held apart."""
    ways = (route((address,), reader, message.bare) for address in message.recipients)
    return next(
        (way for way in ways if way and claims.holder(message, state.reads, state.roster, way.via) is None), None
    )


_TASK = "task_assignment"
_USUAL = ("message", "notification", "system")
"""Types of messages that are mail, whatever they say."""


def is_on_board(message: Message, mode: str) -> bool:
    """Return whether a message that comes by a mode is a note, or a task for whoever claims it: no mail to be read."""
    if message.type == "note":
        return True
    if message.type != "control" or mode == DIRECT or _TASK not in message.content:
        return False
    said = codec.parse(message.content.encode("utf-8", "surrogatepass"))
    return isinstance(said, dict) and said.get("type") == _TASK


def _is_withheld(claim: Read, message: Message, reader: Reader, state: InboxState, now: int) -> bool:
    """Return whether another's claim hides the message. A session takes over what those it continues had claimed."""
    if claim.session_id == reader.session_id:
        return False
    if claim.session_id in reader.lineage:
        return state.sign(claim.session_id) == claims.DELIVERING
    return not claims.lapsed(claim, message, state.reads, state.roster, state.sign, now)


def _is_muted(message: Message, reader: Reader, roster: Roster) -> bool:
    """Return whether the reader muted the sender or one it continues; control and the person are always heard."""
    if message.type == "control" or message.sender == USER:
        return False
    return not set(reader.muted).isdisjoint(roster.lineage(message.sender))


def _urgency(item: Item) -> int:
    if item.message.type == "control":
        return 0
    return 1 if item.message.priority == "high" else 2


def in_order(items: Iterable[Item]) -> list[Item]:
    """Return the items as they are shown: control, high priority, the rest; log order within (the sort is stable)."""
    return sorted(items, key=_urgency)


def unread(session_id: str, state: InboxState, now: int) -> list[Item]:
    """Return all unread mail of the session, in the order it is shown."""
    reader = state.roster.reader(session_id)
    return in_order(item for item in waiting(reader, state, now) if not item.withheld)


def waiting(reader: Reader, state: InboxState, now: int) -> list[Item]:
    """Return the same of a reader in log order, with what is withheld."""
    found = [item_for(message, reader, state, now) for message in state.messages.values()]
    return [item for item in found if item is not None]
