"""Notes as text and as JSON.

Belongs here: how a note and a list of notes are shown. A note's words are other people's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import frame, instant, proofs
from ..core.keeping import notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.keeping.notes import Note
    from ..core.roster import Roster
    from .context import Context


def note_json(note: Note, *, whole: bool = False) -> dict[str, Any]:
    """Return a note as programs see it; ``whole``: with its text."""
    m, ended = note.message, note.ended_by
    value: dict[str, Any] = {
        "id": note.id,
        "message_id": m.id,
        "on": list(m.recipients),
        "title": m.subject,
        "author": m.sender,
        "written": instant.text(m.timestamp),
        "replaces": notes.replaced_by(m) or None,
        "state": "current" if ended is None else "dropped" if notes.is_drop(ended) else "replaced",
        "proof": str(m.proof) if m.proof is not None and proofs.proves(m.proof) else None,
    }
    if ended is not None and not notes.is_drop(ended):
        value["replaced_by"] = notes.PREFIX + ended.id[:8]
    return {**value, "body": m.content} if whole else value


def _author(note: Note, roster: Roster) -> str:
    doubt = "" if note.message.proof is not None and proofs.proves(note.message.proof) else " (unverified)"
    return frame.name_of(note.message.sender, roster) + doubt


def _tags(note: Note) -> str:
    return ", ".join(map(frame.word, note.message.recipients))


def list_text(app: Context, those: Sequence[Note], roster: Roster) -> str:
    """Return notes, a line each."""
    lines = [
        f'{app.painter(one.id, "id")}  {_tags(one)}: "{frame.title(one.message)}", {_author(one, roster)}, '
        f"{frame.when(one.message.timestamp)}"
        for one in those
    ]
    return "\n".join(lines or ["no notes"]) + "\n"


def kept_text(old: Note, new: Note) -> str:
    """Return why a note that was to replace an ``old`` one did not; empty if it did, or if nothing was left."""
    if old.ended_by is None:
        return f"{old.id} stays on the list: nothing proves who wrote {new.id}"
    if old.ended_by.id == new.message.id or notes.is_drop(old.ended_by):
        return ""
    other = notes.PREFIX + old.ended_by.id[:8]
    return f"{other} had replaced {old.id} before: now {other} and {new.id} are both on the list, so drop one"


def note_text(app: Context, note: Note, roster: Roster) -> str:
    """Return a note with its words behind the bar, and what took its place."""
    m, ended = note.message, note.ended_by
    lines = [f"{app.painter(note.id, 'id')}  {_tags(note)}, {_author(note, roster)}, {frame.when(m.timestamp)}"]
    if ended is not None and notes.is_drop(ended):
        lines.append(f"dropped by {frame.name_of(ended.sender, roster)}, {frame.when(ended.timestamp)}")
    elif ended is not None:
        lines.append(f"replaced: {app.complete_command(f'note show {notes.PREFIX}{ended.id[:8]}')}")
    lines += [line for text in dict.fromkeys((m.subject or "", m.content)) for line in frame.barred(text)]
    return "\n".join(lines) + "\n"
