"""What an examination finds, as values: each thing in one line, with its place and what to do about it.

Belongs here: the shape. A *problem* needs somebody: something is lost, hidden, open to others, or read wrong. A *note*
does not: it passes by itself, or is no damage. Only problems make the doctor's exit code 3.
"""

from __future__ import annotations

from ...core.records import Record

CHMOD, REMOVE_TORN, REMOVE_DERIVED = "chmod", "remove torn line", "remove derived file"
"""The repairs there are."""


class Problem(Record):
    """One thing that was found: the file, the line number (1 is the first; None: the file as such), what and what to
    do, the repair that ``doctor --repair`` makes (None where a person must decide), and whether it is just a note."""

    file: str
    line: int | None
    what: str
    repair: str | None = None
    note: bool = False
