"""How one call, or one record, is told in a story.

Belongs here: words for values. Which calls a story tells is ``shorten``'s.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.simulation.open_files import OpenFile

READY = "all is prepared"
"""What a story of several machines has ahead of the first command: mailboxes are made, and sessions registered."""
PEACE = "nothing goes wrong any more"
"""What a story tells ahead of the last look at everything."""
BROKEN = "BROKEN: "
"""What a story puts ahead of a broken promise."""
LONG, SHORT, SEVERAL = 120, 60, 3
"""Characters of an answer and of a value that are told, and records of a write."""
QUIET = {"seal", "proof", "read_by", "nonce", "tokens", "version", "requestId"}
"""Keys of a record that hardly ever tell why a promise broke."""
IDS = {"id", "message_id", "reply_to"}


def told_value(word: Any, files: Mapping[int, OpenFile]) -> str:
    """Return a word of a call, or its answer; open ``files`` are told with their paths."""
    if isinstance(word, bytes):
        records = [told_record(line) for line in word.splitlines()[:SEVERAL]]
        return "; ".join(records) if all(records) and records else _told_bytes(word)
    if isinstance(word, int) and word in files and word > 2:
        return f"{word}:{files[word].path}"
    if isinstance(word, list) and word and hasattr(word[0], "position"):
        return f"[{', '.join(f'{one.position} {one.log}' for one in word)}]"
    return _cut(repr(word), LONG)


def _told_bytes(word: bytes) -> str:
    return f"{word[:60]!r}{f'… {len(word)} bytes' if len(word) > 60 else ''}"


def _cut(text: str, most: int) -> str:
    return text if len(text) < most else f"{text[:most]}…"


def told_record(line: bytes) -> str:
    """Return what a line of a log says, ids and times shortened; empty if it is no record."""
    try:
        record = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(record, dict):
        return ""
    said = (_told(key, value) for key, value in record.items() if key not in QUIET and value)
    return f"{{{', '.join(said)}}}"


def _told(key: str, value: Any) -> str:
    if key in IDS:
        return f"{key} {str(value)[:8]}"
    if key == "timestamp":
        return f"at {str(value)[11:23]}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{key} {told_record(text.encode()) or _cut(text, SHORT)}"


def first_sentence(function: Callable[..., object]) -> str:
    """Return what a function does, as its docstring says."""
    return " ".join((function.__doc__ or "").split()).partition(". ")[0].rstrip(".")
