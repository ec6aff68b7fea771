"""The projection of a mailbox's mail: questions to a database that is caught up with the logs first.

Belongs here: when the file is used, and when not. ``projection_file`` has the file, ``intake`` takes lines in. Polling
does without. It does not know who may see a message: a question gets *places* (a log and a position, ``index_keys``). A
line is read back and decoded by the codec, and the core judges the message. So a table may offer too much, but must
never hold back. Without the projection everything is read: without SQLite, FTS5, a writable directory, or the lock.

Each log is known by its mark (``cache``). If a mark does not hold, that log is read again from its start. A line that
the steward moved keeps its entry and gets its new place. A file that names a changed line is built again. Many new
lines are taken in by slices: each is a commit, and others may use the file in between.
"""

from __future__ import annotations

from ..log.logs import OpenLogs
from . import projection_file
from .intake import Intake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..archive.archive import Archive
    from ..log.logs import Logs
    from .projection_file import Connection, OpenProjection

    T = TypeVar("T")


def ask(
    logs: Logs,
    question: Callable[[Connection, OpenLogs], T],
    archive: Archive | None = None,
    *,
    patience: float | None = None,
    most: int | None = None,
) -> T | None:
    """Return the answer from tables caught up with the logs, built again if need be; None if there are none.

    ``archive``: the tables are also of what is archived, and have the words of each message. ``patience``: the seconds
    to wait for another process; None: as for any lock. ``most``: None comes, too, if more bytes of logs than that would
    have to be taken in, or the file built again.
    """

    def turn(opened: OpenProjection) -> tuple[T] | None:
        with OpenLogs(logs) as live:
            intake = Intake(opened.db, live, archive)
            if intake.catch_up(most):
                opened.save(is_sound=intake.is_sound())
            return (question(opened.db, live),) if intake.is_whole else None

    if not logs.derives:
        return None
    return projection_file.use(logs.derived, turn, logs.wait if patience is None else patience, builds=most is None)
