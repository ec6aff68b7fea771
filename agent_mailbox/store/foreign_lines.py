"""Lines that another program appended to the messages log: are their ids new?

Belongs here: that question. If they are, each session reads on from where it stood. If an id stands twice, a session
may have dropped the message that counts, and all of them begin again (``poll``).
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine
from . import system
from .lines import lines_of
from .prefilter import may_be_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .logs import Logs


NEAR = 64 << 10
"""Bytes of a log that are read about as fast as the table of ids is opened."""


def are_new(logs: Logs, fd: int, start: int, end: int) -> bool:
    """Return whether each message between two positions of the open log has an id that no other line of the log has.

    The answer is no if it would take long to tell, for others wait for the log's lock.
    """
    if start and system.pread(fd, 1, start - 1) != b"\n":
        return False
    found = list(_ids(line for _, line in lines_of(fd, start, end)))
    wanted = set(found)
    if len(wanted) < len(found):
        return False
    if start <= NEAR:
        return wanted.isdisjoint(_ids(line for _, line in _before(fd, start, wanted)))
    from . import id_table  # which a short log does without

    with id_table.IdTable(logs, fd) as table:
        if table.lag(start) > id_table.LAG:
            return False
        table.catch_up(start)
        return not table.may_have_before(start, found) and table.is_sound()


def prepare(logs: Logs, fd: int, end: int) -> None:
    """Keep the table of ids up with an open log that is not short: so the next foreign lines cost what they are."""
    if end > NEAR:
        from . import id_table  # likewise

        id_table.keep_up(logs, fd, end)


def _before(fd: int, end: int, ids: set[str]) -> Iterator[tuple[int, bytes]]:
    wanted = {message_id.encode() for message_id in ids}
    return (at for at in lines_of(fd, 0, end) if may_be_message(at[1], wanted))


def _ids(lines: Iterable[bytes]) -> Iterator[str]:
    messages = map(codec.message, lines)
    return (message.id for message in messages if not isinstance(message, BadLine))
