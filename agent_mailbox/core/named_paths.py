"""Paths that a text names, such as a task or a note: the words of it that may be one.

Belongs here: finding such words. Pure: whether there is such a file, the caller asks.
"""

from __future__ import annotations

import re

MOST = 20
"""Paths of one text that are looked up."""
_WORD = re.compile(r"(?<![\w/.:@-])(?:\./)?[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*/?(?![\w/]|:/)")


def find_paths(text: str) -> list[str]:
    """Return the words of a text that may be the path of a file or directory within a project, each once."""
    found = (match.group().rstrip(".") for match in _WORD.finditer(text))
    likely = (word.removeprefix("./") for word in found if "/" in word or "." in word.strip("."))
    return list(dict.fromkeys(word for word in likely if ".." not in word.split("/")))[:MOST]
