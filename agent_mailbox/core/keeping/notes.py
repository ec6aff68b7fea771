"""Notes: what everyone with a tag should know. They are on a board, and in nobody's inbox.

Belongs here: a note as a value, and which of them are current, as the log has them. A note that another replaces or
drops leaves the board, and stays in the log. Only a proven record ends a proven note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import proofs
from ..control import authority
from ..records import USER, Message, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..roster import Roster

NOTE = "note"
REPLACES, DROPPED = "replaces", "dropped"
"""Keys of a note's record: the id of the one whose place it takes; true if it only takes that one away."""
PATHS, PROJECT = "paths", "project"
"""Keys of a note's record: the paths that it names, from the top of that project."""
PREFIX = "note-"
"""The beginning of a note's id as it is shown: a message's id follows."""


class Note(Record):
    """A note. ``message``: its record. ``ended_by``: the record that replaced or dropped it; None: it is current."""

    message: Message
    ended_by: Message | None = None

    @property
    def id(self) -> str:
        """Return the id as it is shown."""
        return PREFIX + self.message.id[:8]

    def covers(self, project: str, path: str) -> bool:
        """Return whether it names a file of a project, or a directory above it."""
        extra = self.message.extra or {}
        named = extra.get(PATHS) if extra.get(PROJECT) == project else None
        names = [one.rstrip("/") for one in named if isinstance(one, str)] if isinstance(named, list) else []
        return any(path == one or path.startswith(f"{one}/") for one in names)

    @property
    def has_paths(self) -> bool:
        """Return whether it names any path."""
        return bool((self.message.extra or {}).get(PATHS))

    @property
    def is_current(self) -> bool:
        """Return whether it is on the board."""
        return self.ended_by is None


def replaced_by(message: Message) -> str:
    """Return the id of the note that a record replaces or drops; empty if it does neither."""
    found = (message.extra or {}).get(REPLACES)
    return found if isinstance(found, str) else ""


def is_drop(message: Message) -> bool:
    """Return whether a record only takes a note away."""
    return (message.extra or {}).get(DROPPED) is True


def fold(messages: Iterable[Message], roster: Roster) -> dict[str, Note]:
    """Return every note of these records by its message's id, in log order. A copy of a record counts for nothing."""
    notes: dict[str, Note] = {}
    for message in messages:
        if message.id in notes:
            continue
        old = notes.get(replaced_by(message))
        if old is not None and old.is_current and may_end(message, old.message, roster):
            notes[old.message.id] = old.replace(ended_by=message)
        if not is_drop(message):
            notes[message.id] = Note(message)
    return notes


def past(messages: Iterable[Message], roster: Roster) -> set[str]:
    """Return the ids of the records that the board does not need: ended notes, and what ended them."""
    those = [message for message in messages if message.type == NOTE]
    current = {note.message.id for note in fold(those, roster).values() if note.is_current} if those else set()
    return {message.id for message in those if message.id not in current}


def may_end(message: Message, note: Message, roster: Roster) -> bool:
    """Return whether a record takes a note from the board. Anyone proven replaces a note: its text needs no other.
    Only its author, that one's lead or the person drops it."""
    if not proofs.proves(note.proof):
        return True
    speaker = proofs.speaker(message.proof, message.sender)
    return speaker is not None and (not is_drop(message) or may_drop(speaker, note, message.timestamp, roster))


def may_drop(speaker: str, note: Message, when: int, roster: Roster) -> bool:
    """Return whether an agent may drop a note."""
    own = authority.is_same(speaker, note.sender, when, roster)
    return speaker == USER or own or authority.commands(speaker, note.sender, when, roster)
