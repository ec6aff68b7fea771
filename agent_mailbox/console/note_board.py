"""The notes' page: what everyone with a tag should know, and the forms that add, replace and drop a note.

Belongs here: the facade's notes in words; a form's fields as one call.
"""

from __future__ import annotations

from typing import Any

from ..core import proofs
from ..core.records import USER
from ..core.text import visible_text
from ..mailbox.noting import Noting
from . import presenters
from .desk import Looking, Params

MOST = 200
"""Notes of a page, the newest; the rest is only counted."""


def view_notes(now: Looking, params: Params) -> dict[str, Any]:
    """Return the current notes, of one tag or of all, the newest first."""
    on, roster, clock = params.get("on", ""), now.roster, now.mailbox.now()
    everything = now.notes.list_current(roster)
    found = [one for one in everything if not on or on in one.message.recipients]
    living = presenters.living_agents(roster)
    tags = {tag for agent in living for tag in agent.tags} | {t for one in everything for t in one.message.recipients}
    return {
        "title": "Notes",
        "notes": [
            {
                "id": one.id,
                "title": presenters.one_line(one.message.subject or one.id),
                "body": visible_text(one.message.content),
                "tags": ", ".join(map(presenters.channel_label, one.message.recipients)),
                "author": presenters.party_name(one.message.sender, roster),
                "is_proven": one.message.proof is not None and proofs.proves(one.message.proof),
                "at": one.message.timestamp,
                "moment": presenters.local_moment(one.message.timestamp, clock),
                "message_id": one.message.id,
            }
            for one in found[::-1][:MOST]
        ],
        "more": max(len(found) - MOST, 0),
        "tags": sorted((presenters.channel_label(tag), tag) for tag in tags),
        "on": on,
    }


def add(now: Looking, fields: Params) -> str:
    """Add a note as the person, or replace one. A form that is sent twice adds one note."""
    title, body = fields.get("subject", "").strip(), fields.get("body", "").replace("\r\n", "\n").strip()
    to = fields.get("to", "").strip()
    made = Noting(now.mailbox).add_note(
        USER,
        [to] if to else [],
        title,
        body or title,
        fields.get("note", ""),
        message_id=fields.get("message_id") or None,
    )
    return f"{made.id} is on the board."


def drop(now: Looking, fields: Params) -> str:
    """Take a note from the board."""
    ended, was_off = Noting(now.mailbox).drop_note(USER, fields.get("note", ""))
    if was_off:
        return presenters.Unchanged(f"{ended.id} is off the board already.")
    return f"{ended.id} is off the board. It stays in the log."
