"""The doctor's findings as values: one line each, with its place and what to do.

Belongs here: their shape. A *problem* needs action: data is lost, hidden, open to others or misread, or cannot be
added to. A *note* does not: it is harmless or passes by itself. Only problems make the doctor's exit code 3.
"""

from __future__ import annotations

from .records import Record

CHMOD, REMOVE_TORN, REMOVE_DERIVED = "chmod", "remove torn line", "remove derived file"
"""The kinds of repair."""


class Problem(Record):
    """One finding. ``line`` counts from 1 (None: the whole file); ``what`` says the problem and what to do.

    ``repair`` is what ``doctor --repair`` does (None: a person must decide); ``note`` marks a note.
    """

    file: str
    line: int | None
    what: str
    repair: str | None = None
    note: bool = False


class Repaired(Record):
    """One thing that a repair changed: its file, what was done, and the file that keeps what was cut (None: nothing
    was)."""

    file: str
    done: str
    kept: str | None = None
