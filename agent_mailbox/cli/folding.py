"""Mail at a terminal: a line that is wider, folded behind its bar, and what is left out of a long thread.

Belongs here: where a line is folded, and the line in the place of what a thread leaves out, with the command that shows
it. A terminal breaks a long line by itself, and begins the rest at its left edge. There it would read like a line of
the frame:

    | the build is green                                       what a body says
    0bc9f3d7  user (the person) → you, 2026-03-16 14:30Z       its rest, after enough spaces
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from ..core.frame import BAR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fold = Callable[[str], str]

INDENT = "    "
"""The beginning of what continues any other line."""
ATTACHED = "Attached: "
LEAST = 20
"""Columns of a terminal that is too narrow to fold for."""
LONG, KEPT = 16, 10
"""Lines of a text from which on it is folded, and those that stay."""
MANY, FIRST, LAST = 12, 2, 8
"""Messages of a thread from which on some are left out, and those that stay at both ends."""


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


def fold_thread(blocks: Sequence[Sequence[str]], words: Sequence[str], fold: Fold, complete: Fold) -> str:
    """Return the messages of a thread as a terminal shows them. ``blocks``: the lines of each, ``words``: its id,
    ``fold``: folds the lines of one, ``complete``: completes the commands that show more."""
    shown = [_fold_block(block, word, fold, complete) for block, word in zip(blocks, words, strict=True)]
    if len(shown) > MANY:
        command = complete(f"thread {words[0]} --full")
        shown[FIRST:-LAST] = [f"({len(shown) - FIRST - LAST} messages left out: `{command}`)"]
    return "\n\n".join(shown) + "\n"


def _fold_block(block: Sequence[str], word: str, fold: Fold, complete: Fold) -> str:
    lines = fold("\n".join(block)).split("\n")
    text = [at for at, line in enumerate(lines) if line.startswith(BAR)]
    if len(text) > LONG:
        command = complete(f"show {word}")
        rest = {*text[KEPT:]}
        lines[text[KEPT]] = f"({len(rest)} more lines: `{command}`)"
        lines = [line for at, line in enumerate(lines) if at not in rest or at == text[KEPT]]
    return "\n".join(lines)
