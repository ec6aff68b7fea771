"""The notes, followed: each look reads what was appended since the last one.

Belongs here: the place of that reader. ``mailbox.noting`` reads all of the log, which a page cannot each time.
"""

from __future__ import annotations

from ..core.keeping import notes
from ..core.keeping.notes import Note
from ..core.line_forms import may_be_note
from ..core.records import Message
from ..core.roster import Roster
from ..mailbox.noting import parse_notes
from ..store.log.growing_log import GrowingLog
from ..store.log.logs import Logs


class FollowedNotes:
    """The notes of the live log, and how far it was read."""

    def __init__(self, logs: Logs) -> None:
        self._log = GrowingLog(logs.messages)
        self._found: list[Message] = []

    def list_current(self, roster: Roster) -> list[Note]:
        """Return the current notes, the newest last."""
        with self._log.news() as (begins_again, lines):
            if begins_again:
                self._found.clear()
            self._found += parse_notes((at for at in lines if may_be_note(at[1])), self._log.log.view())
        return [one for one in notes.fold(self._found, roster).values() if one.is_current]
