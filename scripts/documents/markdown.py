"""Text of the program as Markdown.

Belongs here: escapes, tables and anchors that a Git host and the site read alike.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 120
_SPAN = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"[*<>|\[\]\\]|(?<!\w)_|_(?!\w)")
_CODE = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|AGENT_[A-Z_]+)(?![\w-])")


def plain(text: str) -> str:
    """Return text that Markdown shows as it is: options become code, what is code already stays."""
    parts = _SPAN.split(text)
    parts[::2] = [_CODE.sub(r"`\1`", _SPECIAL.sub(r"\\\g<0>", part)) for part in parts[::2]]
    return "".join(parts)


def paragraph(text: str) -> str:
    """Return one paragraph, wrapped."""
    words = " ".join(plain(text).split())
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)


def code(text: str) -> str:
    """Return a code span that may be in a table."""
    return "`" + text.replace("|", "\\|") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def anchor(heading: str) -> str:
    """Return the anchor that Git hosts and MyST give a heading."""
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
