"""A message's text in a list: its first lines, the rest folded, and open where a search found something.

Belongs here: how much of a text a list has. ``markup`` makes its HTML, ``text_splitting`` counts its lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ..core import words
from ..core.records import Message, Record
from ..core.text import clipped, visible
from . import markup, text_splitting

LONG = 4000
"""Characters of a body in a list, folded; the opened message shows all."""
MOST_AROUND = 2
"""Lines before and behind what a search found in the part of a text that a list leaves out."""


class Fold(Record):
    """The folded rest of a long text: its HTML, its lines, and what is said of a text that shows nothing yet.

    ``cut``: the opened message alone has all of it. ``is_open``: a search found something here; ``excerpt``: the lines
    around that, in what is cut."""

    rest: Markup
    lines: int
    begins: str
    cut: bool
    is_open: bool = False
    excerpt: str = ""


def fold_body(message: Message, whole: bool, sought: Sequence[str]) -> tuple[Markup | str, Fold | None]:
    """Return a body's first lines, and the folded rest."""
    text = message.content
    if whole:
        return markup.html_of(text), None
    shown = text if len(text) <= LONG else text[:LONG].rpartition("\n")[0] or text[:LONG]
    left, folded = text[len(shown) :].lstrip("\n"), markup.fold_long(shown)
    if not left and not folded.rest:
        return folded.first, None
    excerpt = "" if _holds(shown, sought) else _excerpt_of(left, sought)
    begins = "" if folded.first else clipped(visible(" ".join(text[:400].split())), 80)
    lines = folded.lines + text_splitting.count_text_lines(left)
    is_open = bool(excerpt) or _holds(folded.words, sought)
    return folded.first, Fold(folded.rest, lines, begins, bool(left), is_open, excerpt)


def _holds(text: str, sought: Sequence[str]) -> bool:
    """Return whether a phrase that was searched for is in a text."""
    return bool(text) and any(words.is_in(text, phrase) for phrase in sought)


def _excerpt_of(text: str, sought: Sequence[str]) -> str:
    """Return the first line in which a phrase is, and some around it; empty if there is none."""
    lines = text.splitlines() if _holds(text, sought) else []
    for at, line in enumerate(lines):
        if _holds(line, sought):
            return "\n".join(visible(one[:300]) for one in lines[max(at - MOST_AROUND, 0) : at + MOST_AROUND + 1])
    return ""
