"""Sentences that are hard to read, and where the Markdown pages have some.

Belongs here: the rules for a sentence, and which text of a page is prose. Code, headings and generated parts are not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ODD = ("What", "Who", "Whoever", "Whose", "Whom", "Of", "How", "Where", "Which", "Nobody")
"""Words with which a sentence does not begin here."""
LINKING = (
    *("And", "Also", "As", "At", "But", "By", "Even", "For"),
    *("From", "In", "Nor", "Not", "On", "Or", "So", "To", "With"),
)
"""Words with which a docstring does not begin: its sentence would lean on the name above it."""
LONG = 25
"""Words of a sentence, at most."""
CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"<!-- (matrix): begin -->.*?<!-- \1: end -->|<!-- `scripts/docs` writes.*", re.DOTALL)
NO_PROSE = re.compile(r"<!--.*?-->|^#.*$", re.MULTILINE)
BLOCK_END = re.compile(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|\n(?=\|)|\|")
"""Where a paragraph, an item of a list, a row or a cell ends."""


def begins_oddly(sentence: str) -> bool:
    """Return whether a sentence begins with one of the ``ODD`` words."""
    return sentence.split(" ")[0].strip("`,") in ODD


def is_fragment(docstring: str) -> bool:
    """Return whether a docstring begins with one of the ``ODD`` or the ``LINKING`` words."""
    return docstring.split()[0].strip("`,:") in (*ODD, *LINKING)


def is_long(sentence: str) -> bool:
    """Return whether a sentence has more than ``LONG`` words."""
    return len(sentence.split()) > LONG


def written_pages(root: Path) -> list[Path]:
    """Return the pages for readers: README, CONTRIBUTING, SECURITY and all of docs/."""
    return [
        *(root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *sorted((root / "docs").rglob("*.md")),
    ]


def page_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page's paragraphs, lists and cells; a span of code is one word, a link its text."""
    text = NO_PROSE.sub("", GENERATED.sub("", CODE.sub("", text)))
    text = re.sub(r"`[^`\n]+`", lambda span: re.sub(r"[\s|.]", "_", span[0]), text)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    for block in BLOCK_END.split(text):
        plain = re.sub(r"^(?:[-*]|\d+\.) ", "", " ".join(block.replace("**", "").split()))
        yield from filter(None, re.split(r"(?<=[.!?])[)\"']*\s+(?=[^a-z])", plain))


def hard_page_sentences(page: Path) -> list[str]:
    """Return the sentences of a page that begin oddly or are too long."""
    return [one for one in page_sentences(page.read_text(encoding="utf-8")) if begins_oddly(one) or is_long(one)]
