"""Whether a name was never used in a mailbox, beside what its roster knows.

Belongs here: the look at the logs' lines. A compacted roster forgets a name that its bearer gave up, and mail may wait
for a name that nobody has yet. ``core.given_names`` chooses.
"""

from __future__ import annotations

from ..core.line_forms import has_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .open_mailbox import OpenMailbox


def is_unused(desk: OpenMailbox, name: str) -> bool:
    """Return whether no event of the roster has the name, live or archived, and no live mail went to it."""
    places = (desk.logs.roster, name), (desk.archive.roster_log(), name), (desk.logs.messages, f"role:{name}")
    return not any(has_word(line, word) for log, word in places for _, line in log.lines())
