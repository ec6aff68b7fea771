"""Messages of one thread in one delivery: a block, with one frame.

Belongs here: which messages are shown together, and what their frame says once. Each message keeps its id, its sender
and its marks. Messages of the same few words share a line. Example::

    Thread 5d01aa02 → you
    0bc9f3d7 cat, ack?
    | May I add a column?
    77069211 bo, 8a5c21f0 ann
    | ok
"""

from __future__ import annotations

from .. import conversations, frame
from ..address import is_remote
from ..records import Record
from .message_frame import told_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..conversations import Parent
    from ..inbox import Item
    from ..records import Message

    Row = tuple[Item, ...]

_SHORT = 80
"""Characters of a text that is shown once for several who said it."""


class Block(Record):
    """Messages that are shown together. A row has one message, or several of the same words. ``root``: the thread's
    beginning, as far as it is known; empty for a message alone."""

    rows: Sequence[Row]
    root: str = ""

    @property
    def told_thread(self) -> str | None:
        """Return what the block's line says that its messages answer; None if it has no line."""
        return self.root if len(self.rows) > 1 else None

    def lines(self, style: Callable[[str, str], str] = frame.plain) -> list[str]:
        """Return the line above its rows, if they need one: what they answer, and by which address they came."""
        line = f"Thread {style(frame.short(self.root), 'id')} → {told_way(self.rows[0][0])}"
        return [line] if self.told_thread is not None else []


def may_share(items: Sequence[Item]) -> bool:
    """Return whether some of the items may be of one thread."""
    return len(items) > 1 and any(item.message.thread is not None for item in items)


def arrange(items: Sequence[Item], parent: Parent) -> list[Block]:
    """Return the items in blocks, each at the place of its first one. ``parent`` looks up the message of an id.

    The messages of a block came by one address. Control and urgent mail stays before other mail, and what comes from
    other machines behind it."""
    roots = _find_roots([item.message for item in items], parent)
    found: dict[tuple[str, str, bool, bool, bool], list[Item]] = {}
    for item in items:
        m = item.message
        key = (roots[m.id], told_way(item), m.type == "control", m.priority == "high", is_remote(m.sender))
        found.setdefault(key, []).append(item)
    return [Block(_rows(several), root if len(several) > 1 else "") for (root, *_), several in found.items()]


def _find_roots(messages: Sequence[Message], parent: Parent) -> dict[str, str]:
    """Return the root of each message's thread. Messages that are not here are looked up only if they tell more."""
    here = {message.id: message for message in messages}
    tops = {message.id: [*conversations.upwards(message, here.get)][-1] for message in messages}
    absent = {top.thread for top in tops.values() if top.thread is not None}
    if len(absent) > 1:
        tops = {one: [*conversations.upwards(top, parent)][-1] for one, top in tops.items()}
    return {one: top.thread or top.id for one, top in tops.items()}


def _rows(items: Sequence[Item]) -> list[Row]:
    rows: list[Row] = []
    for item in items:
        if rows and _repeats(item, rows[-1][0]):
            rows[-1] = (*rows[-1], item)
        else:
            rows.append((item,))
    return rows


def _repeats(item: Item, before: Item) -> bool:
    """Return whether a message says nothing but the few words of another one, to the same end."""
    one, other = item.message, before.message
    is_bare = one.type == other.type == "message" and not (one.ack or other.ack or one.subject or other.subject)
    brings = (one.attachments, one.references, other.attachments, other.references)
    is_alike = (one.content, one.thread, one.priority) == (other.content, other.thread, other.priority)
    is_short = len(one.content) <= _SHORT and len(one.content.splitlines()) == 1
    return is_bare and is_alike and is_short and not any(brings)
