"""JSON as a person reads and edits it.

Belongs here: the layout. Nothing is hidden, and unprintable characters are escapes.
"""

from __future__ import annotations

import json
from typing import Any

from ..core import codec
from ..core.text import ascii_json


def pretty_json(value: Any, indent: str = "") -> str:
    """Return JSON for a person to read and edit, one short value per line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = [
            f"{inner}{ascii_json(codec.dumps(str(key)))}: {pretty_json(item, inner)}" for key, item in value.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + pretty_json(item, inner) for item in value) + f"\n{indent}]"
    return ascii_json(codec.dumps(value, -codec.MAX_DEPTH))


def place_of_error(text: str) -> str:
    """Return where a text stops being JSON, and why; empty if it is JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        return ""
    return ""
