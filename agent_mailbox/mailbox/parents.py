"""The message that another one answers.

Belongs here: looking it up among live and archived mail, by the index if there is one.
"""

from __future__ import annotations

from ..store.projection import lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.records import Message
    from .open_mailbox import OpenMailbox


def find_in(desk: OpenMailbox) -> Callable[[str], Message | None]:
    """Return what looks up the message of an id in an opened mailbox."""

    def look(message_id: str) -> Message | None:
        found = lookup.ask_index(desk.logs, desk.archive, lambda index: (index.message(message_id),))
        return desk.state().messages.get(message_id) if found is None else found[0]

    return look
