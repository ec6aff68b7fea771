"""Starting a cursor in large logs without decoding them: which lines can matter to one reader.

Belongs here: the logs, a stretch at a time; ``core.line_search`` knows their lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.line_search import ReadSearch, WantedMail, add_messages
from ..files.lines import CHUNK, line_chunks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.address import Reader
    from ...core.line_search import Lines, Places
    from ...core.roster import Roster
    from .logs import OpenLogs


def lines(logs: OpenLogs, reader: Reader, roster: Roster, now: int, ttls: Mapping[str, float | None]) -> Lines:
    """Return the lines that may make a message unread by the reader at ``now``, and all reads of those messages."""
    wanted = WantedMail(reader, roster, now, ttls)
    messages: dict[bytes, Places] = {}
    if logs.messages is not None:
        for start, chunk in line_chunks(logs.messages, logs.messages_end, size=CHUNK // 2):
            add_messages(start, chunk, wanted, messages)
    reads = ReadSearch(messages)
    if logs.reads is not None and messages:
        for start, chunk in line_chunks(logs.reads, logs.reads_end, size=CHUNK // 2):
            reads.add(start, chunk)
    for message_id in reads.claimed - reads.released:
        del messages[message_id], reads.places[message_id]
    positions = sorted(position for places, _ in messages.values() for position in places)
    return positions, sorted(position for places in reads.places.values() for position in places)
