"""The file of the person's marks: among the user's own records, outside every project.

Belongs here: reading and replacing it. A mailbox without such records keeps no marks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import marks
from ...core.marks import Marks
from ..files.small_files import read_file, replace_file

if TYPE_CHECKING:
    from ..log.logs import Logs

FILE = "seen.json"


def load(logs: Logs) -> Marks | None:
    """Return the marks; None if there are none."""
    if logs.custody is None:
        return None
    content = read_file(logs.custody.path(FILE))
    return None if content is None else marks.read(content)


def save(logs: Logs, value: Marks) -> None:
    """Keep the marks; raise ``StorageFailed``."""
    if logs.custody is not None:
        replace_file(logs.custody.path(FILE), marks.written(value))
