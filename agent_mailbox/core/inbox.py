"""A reader's unread mail: the set difference, written once.

Belongs here: unread, and the ``InboxState`` (the folded logs). Every question about mail is a function of it and
``now``: debts (``obligations``), conversations (``threads``). Every poll needs this module, but not those.

Expiry is judged at each answer and deletes nothing. Example: 24 h from 10:00, the recipient frozen from 12:00 to 15:00:
it expires at 13:00 next day.
"""

from __future__ import annotations

from . import codec, message_reads
from .address import DIRECT, Reader, is_muted, route, when_shown
from .instant import HOUR
from .message_reads import Reads
from .records import NOW, Message, Read, Record
from .roster import Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .address import Route
    from .roster import Agent


def _never(_: str) -> int:
    return 0


class InboxState(Record):
    """The folded logs: messages in log order (first of each id), reads, roster, hours to live per mode.

    ``sign`` gives the last sign of a session's life (``message_reads.lapsed``).
    """

    messages: Mapping[str, Message]
    reads: Reads
    roster: Roster
    ttls: Mapping[str, float | None]
    sign: Callable[[str], int] = _never

    def expired(self, message: Message, now: int) -> bool:
        """Return whether the message has expired at ``now``. At the deadline exactly: yes."""
        deadline = expires_at(message, self.roster, self.ttls)
        return deadline is not None and now >= deadline


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
    if way is None or message_reads.read_by(message, state.reads, reader.lineage, state.roster):
        return None
    if message.type not in _USUAL and is_on_board(message, way.mode):
        return None
    if way.claims and message_reads.holder(message, state.reads, state.roster, way.via) is not None:
        way = _another_way(message, reader, state) if message.bare else None
        if way is None:
            return None
    claimed = state.reads.claim(message.id) if way.claims else None
    deadline = expires_at(message, state.roster, state.ttls)
    if deadline is not None and now >= deadline:
        return None
    before = tuple(message_reads.readers(message, state.reads))
    muted = bool(reader.muted) and is_muted(message, reader.muted, state.roster.lineage(message.sender))
    withheld = claimed is not None and _is_withheld(claimed, message, reader, state, now)
    return Item(message, way.mode, way.via, way.claims, deadline, before, muted, "", claimed, withheld)


def _another_way(message: Message, reader: Reader, state: InboxState) -> Route | None:
    """Return the way to a part of role mail that nobody holds: each bare word among its recipients is held apart."""
    ways = (route((address,), reader, message.bare) for address in message.recipients)
    return next(
        (way for way in ways if way and message_reads.holder(message, state.reads, state.roster, way.via) is None), None
    )


_USUAL = ("message", "notification", "system")
"""Types of messages that are mail, whatever they say."""


def is_on_board(message: Message, mode: str) -> bool:
    """Return whether a message that comes by a mode is a note, or a task for whoever claims it: no mail to be read."""
    if message.type == "note":
        return True
    return mode != DIRECT and _is_control(message, "task_assignment")


def _is_control(message: Message, kind: str) -> bool:
    """Return whether it is a control message of a kind, without the time that it takes to read others."""
    if message.type != "control" or kind not in message.content:
        return False
    said = codec.parse(message.content.encode("utf-8", "surrogatepass"))
    return isinstance(said, dict) and said.get("type") == kind


ALONG = "along"
"""When a session is shown an idle notice: with other mail, and never for itself alone."""


def is_idle_notice(message: Message) -> bool:
    """Return whether a message says that its sender's turn ended: a state, which the sender's next one replaces."""
    return _is_control(message, "idle_notification")


def timing(item: Item) -> str:
    """Return when a session is shown unread mail: ``now``, ``turn``, ``idle`` or ``along``.

    An idle notice is shown along with other mail, unless its sender marked it as *now*: it holds a task, or is watched.
    """
    if item.message.type == "control" and is_idle_notice(item.message):
        return NOW if item.message.when == NOW else ALONG
    return when_shown(item.message, item.mode)


def replaced_notices(messages: Iterable[Message]) -> set[str]:
    """Return the ids of the idle notices behind which another one of the same sender went to the same readers."""
    notices = [message for message in messages if is_idle_notice(message)]
    last = {(message.sender, message.recipients): message.id for message in notices}
    return {message.id for message in notices} - {*last.values()}


def due(items: Iterable[Item], *times: str) -> list[Item]:
    """Return the mail that hooks show at one of these times, by default at any. Idle notices come along with it, and
    muted mail never does."""
    heard = [item for item in items if not item.muted]
    if not times:
        return heard if any(item.message.type != "control" or timing(item) != ALONG for item in heard) else []
    when = {item.message.id: timing(item) for item in heard}
    chosen = [item for item in heard if when[item.message.id] in (*times, ALONG)]
    return chosen if any(when[item.message.id] != ALONG for item in chosen) else []


def _is_withheld(claim: Read, message: Message, reader: Reader, state: InboxState, now: int) -> bool:
    """Return whether another's claim hides the message. A session takes over what those it continues had claimed."""
    if claim.session_id == reader.session_id:
        return False
    if claim.session_id in reader.lineage:
        return state.sign(claim.session_id) == message_reads.DELIVERING
    return not message_reads.lapsed(claim, message, state.reads, state.roster, state.sign, now)


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
    judged = (item_for(message, reader, state, now) for message in state.messages.values())
    found = [item for item in judged if item is not None]
    idle = {m.sender for m in (item.message for item in found) if m.type == "control" and is_idle_notice(m)}
    return _without_replaced(found, idle, state, reader) if idle else found


def _without_replaced(items: Iterable[Item], idle: set[str], state: InboxState, reader: Reader) -> list[Item]:
    """Return the items with the last idle notice alone of each of these senders, as all the messages tell."""
    last = {
        message.sender: message.id
        for message in state.messages.values()
        if message.sender in idle and is_idle_notice(message) and route(message.recipients, reader, message.bare)
    }
    return [item for item in items if not is_idle_notice(item.message) or last[item.message.sender] == item.message.id]


def expires_at(message: Message, roster: Roster, ttls: Mapping[str, float | None]) -> int | None:
    """Return the instant (ms) from which the message counts as expired; None if there is none now.

    None means no time to live, as of every note, or a direct recipient that is frozen now and so stops the clock. With
    several addresses the longest counts. An instant that the message itself names holds for all of them, and stops for
    nobody.
    """
    if message.type == "note":
        return None
    if message.expires_at is not None:
        return message.expires_at
    latest = 0
    for address in message.recipients:
        deadline = _part(address, message, roster, ttls)
        if deadline is None:
            return None
        latest = max(latest, deadline)
    return latest


def _part(address: str, message: Message, roster: Roster, ttls: Mapping[str, float | None]) -> int | None:
    mode = roster.mode(address)
    hours = message.ttl_hours if message.ttl_hours is not None else ttls[mode]
    if hours is None:
        return None
    deadline: int | None = message.timestamp + int(hours * HOUR)
    if mode == DIRECT:
        for since, until in _frozen_spans(address, roster):
            if deadline is None or since >= deadline:
                break
            deadline = None if until is None else deadline + max(0, until - max(since, message.timestamp))
    return deadline


def _frozen_spans(word: str, roster: Roster) -> list[tuple[int, int | None]]:
    """Return when the recipient was frozen, in order and without overlap: the agent, then its successors."""
    agent = roster.meant(word)
    found = [
        (max(since, start), until)
        for one, start in (_successors(agent, roster) if agent else ())
        for since, until in one.frozen
        if until is None or until > start
    ]
    spans: list[tuple[int, int | None]] = []
    for since, until in sorted(found, key=lambda span: span[0]):
        if spans and (spans[-1][1] is None or since <= spans[-1][1]):
            since, before = spans.pop()
            until = None if until is None or before is None else max(until, before)
        spans.append((since, until))
    return spans


def _successors(agent: Agent, roster: Roster) -> list[tuple[Agent, int]]:
    """Return the agent, and each that continues it, with the instant (ms) from which it does. A worker that is started
    again each hour has thousands."""
    line = {one.session_id: one for one in (agent, *roster.line(agent.session_id))}
    continued_by: dict[str, list[tuple[str, int]]] = {}
    for one in line.values():
        for earlier, since in zip(one.continues, one.heir, strict=True):
            continued_by.setdefault(earlier, []).append((one.session_id, since))
    first, to_visit = {agent.session_id: 0}, [agent.session_id]
    for earlier in to_visit:
        for successor, since in continued_by.get(earlier, ()):
            start = max(first[earlier], since)
            if successor not in first or start < first[successor]:  # this way to it begins sooner
                first[successor] = start
                to_visit.append(successor)
    return [(line[session_id], start) for session_id, start in first.items()]
