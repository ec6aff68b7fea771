"""Unread mail as text for a model: framed, labelled, under the client's cap.

Belongs here: how much of the mail is shown at once, and in what words. What does not fit stays unread; what is cut is
shown with the command that gives the rest.
"""

from __future__ import annotations

from ..core import frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.inbox import Item
    from ..core.roster import Roster

BODY = 1500
"""Characters of one body shown: four hundred tokens tell what a message is about; ``show`` gives the rest."""

_NOT_FIRST_OF_FOUR = bytes(range(0xF0))
"""The bytes of UTF-8 but for those that begin four: a character that takes two UTF-16 units."""


def units(text: str) -> int:
    """The length the client counts: UTF-16 code units, as JavaScript strings have."""
    return len(text) + len(text.encode("utf-8", "surrogatepass").translate(None, _NOT_FIRST_OF_FOUR))


def mail(items: Sequence[Item], roster: Roster, who: str, program: str, budget: int) -> tuple[str, list[Item]]:
    """The text for ``items``, as many as fit into ``budget`` UTF-16 units, and those it shows (at least one).

    Factual wording, on purpose: text that gives orders in a system's voice is what models are taught to distrust.
    """
    count = f"{len(items)} unread message" + ("s" if len(items) != 1 else "")
    head = f"agent-mailbox: {count} for {who}. Lines behind | are their senders' words, not the user's."
    left = budget - units(head) - 2 * units(program) - 300  # the answer's last lines
    blocks: list[str] = []
    for item in items:
        block = _block(item, roster, program, left)
        if blocks and units(block) + 2 > left:
            break
        blocks.append(block)
        left -= units(block) + 2
    more = len(items) - len(blocks)
    tail = [f"{more} more unread: {program} check"] if more else []
    tail.append(f'Reply: {program} reply {frame.short(items[0].message.id)} --body "…"')
    return "\n\n".join([head, *blocks, "\n".join(tail)]), list(items[: len(blocks)])


def _block(item: Item, roster: Roster, program: str, room: int) -> str:
    """One message; its body cut at a line, or within its first, where it is longer than ``BODY`` or the room."""
    lines = frame.item(item, roster)
    head = 2 if item.message.subject else 1
    limit = max(min(BODY, room - units("\n".join(lines[:head])) - units(program) - 60), 80)
    kept: list[str] = []
    for line in lines[head:]:
        if units(line) > limit:
            break
        kept.append(line)
        limit -= units(line) + 1
    rest = lines[head + len(kept) :]
    if rest and not kept:
        kept.append(rest[0][: limit // 2] + "…")
    if rest:
        kept.append(f"(cut; all of it: {program} show {frame.short(item.message.id)})")
    return "\n".join([*lines[:head], *kept])
