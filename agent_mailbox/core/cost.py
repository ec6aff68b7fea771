"""The cost of mail to its readers: the tokens that hooks spent on showing it, by sender and mode.

Belongs here: the sum. The delivery counts the tokens and writes them into the read records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .address import ALL, BROADCAST, DIRECT, ROLE, TAG
from .records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .records import Message, Read


class Cost(Record):
    """Messages of one sender that were delivered in one mode, and the tokens that took."""

    sender: str
    mode: str
    messages: int
    tokens: int


def costs(records: Iterable[Read], messages: Mapping[str, Message]) -> list[Cost]:
    """Return the sums, the most expensive first. A message that was offered twice cost twice."""
    sums: dict[tuple[str, str], list[int]] = {}
    for record in records:
        message = messages.get(record.message_id)
        if record.tokens is not None and message is not None:
            entry = sums.setdefault((message.sender, _mode(record)), [0, 0])
            entry[0] += 1
            entry[1] += record.tokens
    found = [Cost(sender, mode, count, tokens) for (sender, mode), (count, tokens) in sums.items()]
    return sorted(found, key=lambda cost: -cost.tokens)


def _mode(record: Read) -> str:
    via = record.via or record.session_id
    if via == ALL:
        return BROADCAST
    return ROLE if via.startswith("role:") else TAG if ":" in via else DIRECT
