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
from .intake import Intake
from .projection_file import ProjectionFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..archive.archive import Archive
    from ..log.logs import Logs
    from .projection_file import OpenProjection
    from .sqlite import Connection

    T = TypeVar("T")


class Projection:
    """The projection of a mailbox; ``archive``: also of what is archived, and with the words of each message."""

    def __init__(self, logs: Logs, archive: Archive | None = None) -> None:
        self._logs = logs
        self._archive = archive
        self._file = ProjectionFile(logs.derived)

    def ask(
        self, question: Callable[[Connection, OpenLogs], T], *, patience: float | None = None, most: int | None = None
    ) -> T | None:
        """Return the answer from tables caught up with the logs, built again if need be; None if there are none.

        ``patience``: the seconds to wait for another process; None: as for any lock. ``most``: None comes, too, if more
        bytes of logs than that would have to be taken in, or the file built again.
        """

        def turn(opened: OpenProjection) -> tuple[T] | None:
            with OpenLogs(self._logs) as live:
                intake = Intake(opened.db, live, self._archive)
                if intake.catch_up(most):
                    opened.save(is_sound=intake.is_sound())
                return (question(opened.db, live),) if intake.is_whole else None

        if not self._logs.derives:
            return None
        return self._file.use(turn, self._logs.wait if patience is None else patience, builds=most is None)
