"""Lines whose ids somebody gave, as another program does: are these new?

Belongs here: that question. If they are, each session reads on from where it stood. If an id is there twice, a session
may have dropped the message that counts, and all of them begin again (``poll``). So they do if a record names the id:
an earlier line was lost with the power, and sessions have passed its records.
"""

from __future__ import annotations

from ...core import codec
from ...core.line_forms import may_be_about, may_be_message
from ...core.records import BadLine
from ..files import system
from ..files.lines import lines_of
from ..log.logs import parse_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ..log.logs import Logs, OpenLogs


NEAR = 64 << 10
"""Bytes of a log that are read about as fast as the projection is opened."""
LAG = 4 << 20
"""Bytes of the logs that the projection takes in while others wait for the lock."""


def are_new(logs: Logs, fd: int, start: int, end: int) -> bool:
    """Return whether each message between two positions of the open log has an id that no other line of the log has,
    and no record.

    The answer is no if it would take long to tell, for others wait for the log's lock.
    """
    if start and system.pread(fd, 1, start - 1) != b"\n":
        return False
    found = list(_ids(line for _, line in lines_of(fd, start, end)))
    wanted = set(found)
    if len(wanted) < len(found):
        return False
    if start > NEAR or logs.ends()[1][1] > NEAR:
        from ..projection import open_ends  # which short logs do without

        return open_ends.are_known(logs, wanted, start, LAG) is False
    is_new = wanted.isdisjoint(_ids(line for _, line in _before(fd, start, wanted)))
    return is_new and not are_read(logs, wanted)


def are_read(logs: Logs, ids: Collection[str]) -> bool:
    """Return whether a live record names one of the ids."""
    with logs.open() as live:
        if live.reads_end > NEAR:
            from ..projection import open_ends  # likewise

            known = open_ends.are_known(logs, ids, 0)
            if known is not None:
                return known
        about = {message_id.encode("utf-8", "surrogatepass") for message_id in ids}
        lines = lines_of(live.reads, 0, live.reads_end) if live.reads is not None else ()
        return any(read.message_id in ids for read in parse_reads(at for at in lines if may_be_about(at[1], about)))


def prepare(logs: Logs, live: OpenLogs) -> None:
    """Keep the projection up with open logs that are not short: so the next foreign lines cost what they are."""
    if max(live.messages_end, live.reads_end) > NEAR:
        from ..projection import open_ends  # likewise

        open_ends.keep_up(logs)


def _before(fd: int, end: int, ids: set[str]) -> Iterator[tuple[int, bytes]]:
    wanted = {message_id.encode() for message_id in ids}
    return (at for at in lines_of(fd, 0, end) if may_be_message(at[1], wanted))


def _ids(lines: Iterable[bytes]) -> Iterator[str]:
    messages = map(codec.message, lines)
    return (message.id for message in messages if not isinstance(message, BadLine))
