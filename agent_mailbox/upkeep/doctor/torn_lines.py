"""Bad lines: torn ones, which a repair removes, and other programs' lines."""

from __future__ import annotations

import json

from ...core.codec import BOM, MAX_LINE
from ...core.findings import REMOVE_TORN, Problem
from ...core.records import BadLine
from .id_index import CheckedLog


def bad_line(source: CheckedLog, number: int, line: bytes, reason: BadLine) -> Problem:
    """Return the finding about a bad line. A line torn before it was archived and sealed is a mere note."""
    if is_torn(line):
        if number <= source.sealed:
            return Problem(source.path, number, f"torn before it was archived ({reason.reason}); harmless", note=True)
        return Problem(source.path, number, f"torn: {reason.reason}", REMOVE_TORN)
    if reason.reason.startswith("unknown event"):
        what = f"{reason.reason}: a newer version may have written it, and reads it; leave it"
        return Problem(source.path, number, what, note=True)
    what = f"not a record: {reason.reason}; readers skip it: remove the line unless you need it"
    return Problem(source.path, number, what)


def is_torn(line: bytes) -> bool:
    """Return whether the line is provably the remains of our own write: a record cut short, or a hole of zeros.

    Cut short: the JSON is valid up to the line's end, but incomplete, as in ``{"id": "a1", "fr``.
    """
    whole = line.removeprefix(BOM).rstrip(b"\0")
    if not whole:
        return True
    if len(line) > MAX_LINE or not whole.startswith(b'{"'):
        return False
    try:
        json.loads(whole.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.pos >= len(error.doc) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return len(whole) < len(line.removeprefix(BOM))
