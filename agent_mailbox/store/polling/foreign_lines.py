"""Lines whose ids somebody gave, as another program does: are these new?

Belongs here: that question, and the note of its answer. If they are, each session reads on from where it stood. If an
id is there twice, a session may have dropped the message that counts, and all of them begin again (``poll``). So they
do if a record names the id: an earlier line was lost with the power, and sessions have passed its records.
"""

from __future__ import annotations

from ...core import codec
from ...core.line_forms import may_be_about, may_be_message
from ...core.records import BadLine
from ...errors import StorageFailed
from ..files import system
from ..files.lines import lines_of
from ..files.small_files import Storing
from ..locks.lock import SOON, Patience
from ..log.logs import OpenLogs, parse_reads
from ..log.stamps import EVERYONE, new_epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ..log.logs import Logs


NEAR = 64 << 10
"""Bytes of a log that are read about as fast as the projection is opened."""
LAG = 4 << 20
"""Bytes of the logs that the projection takes in while others wait for the lock."""


def adopt_messages(logs: Logs, live: OpenLogs) -> int:
    """Note what a foreign program may have written in the messages log; return the log's epoch: new ids leave it as it
    was. ``live``: the logs, opened before. Raises ``Busy``, ``StorageFailed``."""
    with Patience(SOON):
        epoch, is_taken_in = _adopt(logs)
        if not is_taken_in and max(live.messages_end, live.reads_end) > NEAR:  # else a new start needs no derived files
            from ..projection import open_ends  # which short logs do without

            open_ends.keep_up(logs)  # so the next foreign lines cost what they are
    return epoch


def _adopt(logs: Logs) -> tuple[int, bool]:
    """Return the epoch, and whether no question to the projection was left open."""
    with logs.messages.held() as log:
        at = system.fstat(log.fd)
        left = logs.stamp_files.ended(logs.messages.path)
        if left is not None and left[:2] == (at.st_ino, at.st_size):
            return left[2], True  # one of our writers was at work when it was asked
        with Storing("sync", logs.directory):
            system.sync_directory(logs.directory)  # the note also says that the log's name is durable
        start, epoch = logs.stamp_files.grown(logs.messages.path, at.st_ino, at.st_size) or (0, 0)
        is_new = not epoch or are_new(logs, log.fd, start, at.st_size)
        if not epoch or not is_new:
            epoch = new_epoch()
        try:
            logs.stamp_files.disturb(EVERYONE)
        except StorageFailed:
            return epoch, is_new  # without a note the guard believes no stamp that stays
        logs.stamp_files.leave(logs.messages.path, at.st_ino, at.st_size, epoch)
        logs.stamp_files.date(logs.messages.path, at.st_mtime_ns)
        return epoch, is_new


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
        from ..projection import open_ends  # likewise

        return open_ends.are_known(logs, wanted, start, LAG) is False
    keys = {message_id.encode() for message_id in wanted}
    is_new = wanted.isdisjoint(_ids(line for _, line in lines_of(fd, 0, start) if may_be_message(line, keys)))
    return is_new and not are_read(logs, wanted)


def are_read(logs: Logs, ids: Collection[str]) -> bool:
    """Return whether a live record names one of the ids."""
    with OpenLogs(logs) as live:
        if live.reads_end > NEAR:
            from ..projection import open_ends  # likewise

            known = open_ends.are_known(logs, ids, 0)
            if known is not None:
                return known
        about = {message_id.encode("utf-8", "surrogatepass") for message_id in ids}
        lines = lines_of(live.reads, 0, live.reads_end)
        return any(read.message_id in ids for read in parse_reads(at for at in lines if may_be_about(at[1], about)))


def _ids(lines: Iterable[bytes]) -> Iterator[str]:
    messages = map(codec.message, lines)
    return (message.id for message in messages if not isinstance(message, BadLine))
