"""Whether a name was never used in a mailbox, beside what its roster knows.

Belongs here: the look at the logs' lines. A compacted roster forgets a name that its bearer gave up, and mail may wait
for a name that nobody has yet. ``core.given_names`` chooses.
"""

from __future__ import annotations

from ..core.line_forms import has_word
from ..store.files import system
from ..store.files.lines import line_chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.log.log import Log
    from .open_mailbox import OpenMailbox


def is_unused(desk: OpenMailbox, name: str) -> bool:
    """Return whether no event of the roster has the name, live or archived, and no live mail went to it."""
    places = (desk.logs.roster, name), (desk.archive.roster_log(), name), (desk.logs.messages, f"role:{name}")
    return not any(_has_word(log, word) for log, word in places)


def _has_word(log: Log, word: str) -> bool:
    """Return whether a line has the word. A roster of two years has 10 MB: its lines one by one take half a second."""
    if (fd := log.open()) is None:
        return False
    try:
        return any(has_word(part, word) for _, part in line_chunks(fd, system.fstat(fd).st_size))
    finally:
        system.close(fd)
