"""A long thread at a terminal: the beginnings of its long texts, its first messages and its last ones.

Belongs here: what is left out, and the line in its place, which names the command that shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.frame import BAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .context import Context

LONG, KEPT = 16, 10
"""Lines of a text from which on it is folded, and those that stay."""
MANY, FIRST, LAST = 12, 2, 8
"""Messages of a thread from which on some are left out, and those that stay at both ends."""


def fold_thread(app: Context, blocks: Sequence[Sequence[str]], words: Sequence[str]) -> str:
    """Return the messages of a thread as this terminal shows them. ``blocks``: the lines of each, ``words``: its id."""
    shown = [_fold_block(app, block, word) for block, word in zip(blocks, words, strict=True)]
    if len(shown) > MANY:
        command = app.complete_command(f"thread {words[0]} --full")
        shown[FIRST:-LAST] = [f"({len(shown) - FIRST - LAST} messages left out: `{command}`)"]
    return "\n\n".join(shown) + "\n"


def _fold_block(app: Context, block: Sequence[str], word: str) -> str:
    lines = app.fold_framed("\n".join(block)).split("\n")
    text = [at for at, line in enumerate(lines) if line.startswith(BAR)]
    if len(text) > LONG:
        command = app.complete_command(f"show {word}")
        rest = {*text[KEPT:]}
        lines[text[KEPT]] = f"({len(rest)} more lines: `{command}`)"
        lines = [line for at, line in enumerate(lines) if at not in rest or at == text[KEPT]]
    return "\n".join(lines)
