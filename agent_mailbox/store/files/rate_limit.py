"""The limit on messages a minute from one sender: an agent in a loop stops here.

Belongs here: counting a sender's last messages, from the log's end alone, and refusing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import codec
from ...core.instant import MINUTE
from ...core.proofs import STEWARD
from ...core.records import USER, Message
from ...errors import Refused
from . import system
from .lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = 1 << 16
"""Bytes read first; doubled until they begin before the moments in question."""


def check(fd: int, senders: Sequence[str], most: int, now: int) -> None:
    """Raise ``Refused`` if a sender, but for the person and the steward, would have more than ``most`` messages in the
    last minute.

    ``fd``: the open messages log; ``senders``: one for each new message; ``now`` in ms."""
    for sender in {*senders} - {USER, STEWARD}:
        lately = count(fd, sender, now - MINUTE, now)
        if lately + senders.count(sender) > most:
            raise Refused(
                f"{sender} sent {lately} messages in the last minute; this mailbox allows {most} a minute",
                "wait a minute, or send one message",
                code="rate_limited",
            )


def count(fd: int, sender: str, since: int, until: int) -> int:
    """Return how many of the sender's messages the open messages log holds between two instants (ms, both included).

    A clock that was set back leaves messages from the future there; they do not count.
    """
    size = system.fstat(fd).st_size
    window = WINDOW
    while True:
        start = max(size - window, 0)
        messages = [m for m in (codec.message(line) for _, line in lines_of(fd, start)) if isinstance(m, Message)]
        if start == 0 or (messages and messages[0].timestamp < since):
            return sum(m.sender == sender and since <= m.timestamp <= until for m in messages)
        window *= 2
