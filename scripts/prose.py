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
"""Words of a docstring's sentence, at most."""
SHORT = 20
"""Words of a page's sentence, at most; a page for contributors may have longer ones."""
UNSAID = re.compile(
    r"\b(?:rung|dear(?:er|est)?|undone|bears|heirs?|stands|anew|by (?:your|its|his|her|their) word)\b", re.IGNORECASE
)
"""Words that nobody says."""
QUOTED = re.compile(r"``[^`]*``|`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”")
"""Names and quotations within a text."""
REFERENCE = ("commands", "configuration", "file-format")
"""Pages to look something up in."""
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


def is_long(sentence: str, most: int = LONG) -> bool:
    """Return whether a sentence has more words than that."""
    return len(sentence.split()) > most


def unsaid_words(text: str) -> list[str]:
    """Return the words of a text that nobody says; names and quotations are none."""
    return UNSAID.findall(QUOTED.sub("", text))


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
    found = page_sentences(page.read_text(encoding="utf-8"))
    most = LONG if page.parent.name == "internals" else SHORT
    return [one for one in found if begins_oddly(one) or is_long(one, most)]


def user_words(root: Path) -> int:
    """Return how many words the pages for users have, README too: neither the reference, nor what a program writes."""
    pages = [root / "README.md", *(page for page in (root / "docs").glob("*.md") if page.stem not in REFERENCE)]
    return sum(len(GENERATED.sub("", page.read_text(encoding="utf-8")).split()) for page in pages)
