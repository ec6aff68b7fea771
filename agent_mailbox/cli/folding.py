"""Lines of mail that are wider than a terminal, folded behind their bar.

Belongs here: where a line is folded. A terminal breaks a long line by itself, and begins the rest at its left edge.
There it would read like a line of the frame:

    | the build is green                                       what a body says
    0bc9f3d7  user (the person) → you, 2026-03-16 14:30Z       its rest, after enough spaces
"""

from __future__ import annotations

from unicodedata import east_asian_width

from ..core.frame import BAR

INDENT = "    "
"""The beginning of what continues any other line."""
ATTACHED = "Attached: "
LEAST = 20
"""Columns of a terminal that is too narrow to fold for."""


def fold_lines(text: str, columns: int) -> str:
    """Return lines with each that is wider than ``columns`` in several: those of a body behind their bar, the others
    indented. A line is folded behind a space, if it has one in its second half."""
    if columns < LEAST:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _split_line(line, columns))


def _split_line(line: str, columns: int) -> list[str]:
    if line.isascii() and len(line) <= columns:
        return [line]
    head, mark, path = line.rpartition(": /")
    if line.startswith(ATTACHED) and mark and path.isascii() and path.isprintable() and " " not in path:
        return [*_split_line(f"{head}:", columns), f"{INDENT}/{path}"]  # whole, to be copied
    again = BAR if line.startswith(BAR) else INDENT
    found, start, width, at, space = list[str](), 0, 0, 0, 0
    while at < len(line):
        if line[at] == "\x1b":  # a style of ours: mail has none (``core.text``)
            at = line.index("m", at) + 1
            continue
        wide = _width_of(line[at])
        if width + wide > columns:
            cut = space if space > start + columns // 2 else at
            found.append(line[start:cut])
            start, width, at = cut, len(again), cut
            continue
        width, at = width + wide, at + 1
        if line[at - 1] == " ":
            space = at
    return [found[0], *(again + piece for piece in (*found[1:], line[start:]))] if found else [line]


def _width_of(char: str) -> int:
    """Return how many columns a character takes at most."""
    if char.isascii():
        return 1
    return 2 if east_asian_width(char) in "WFA" else 1
