"""The file of the person's marks: among the user's own records, outside every project.

Belongs here: reading and changing it. A mailbox without such records keeps no marks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import marks
from ...core.marks import Marks
from ..files.small_files import read_file, replace_file
from ..locks.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..log.logs import Logs

FILE = "seen.json"


def load(logs: Logs) -> Marks | None:
    """Return the marks; None if there are none."""
    if logs.custody is None:
        return None
    content = read_file(logs.custody.path(FILE))
    return None if content is None else marks.read(content)


def change(logs: Logs, act: Callable[[Marks | None], Marks]) -> None:
    """Keep what ``act`` makes of the marks; raise ``StorageFailed`` or ``Busy``.

    Two consoles of a mailbox change the same file, so the lock is on that file: who waited for it looks at the new one.
    """
    if logs.custody is None:
        return
    path = logs.custody.path(FILE)
    with FileLock(path, logs.wait):
        replace_file(path, marks.written(act(load(logs))))
