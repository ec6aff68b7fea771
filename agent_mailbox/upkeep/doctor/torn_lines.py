"""Lines that are no records: the remains of a write of ours, which a repair takes out, or somebody's own."""

from __future__ import annotations

import json

from ...core.codec import MAX_LINE
from ...core.records import BadLine
from .findings import REMOVE_TORN, Problem
from .id_index import CheckedLog


def bad_line(source: CheckedLog, number: int, line: bytes, reason: BadLine) -> Problem:
    """What to say of a line that is no record. What was torn before it was archived and sealed harms nobody."""
    if is_torn(line):
        if number <= source.sealed:
            return Problem(
                source.path, number, f"torn ({reason.reason}) when it was archived; nothing to do", note=True
            )
        return Problem(source.path, number, f"torn: {reason.reason}", REMOVE_TORN)
    what = f"not a record: {reason.reason}; readers skip it: remove the line if nobody needs it"
    return Problem(source.path, number, what)


def is_torn(line: bytes) -> bool:
    """Is the line provably the remains of one of our own writes: a record cut short, or a hole of zeros?

    Cut short means that JSON was still expected where the line ends. A whole line that is no record is somebody's.
    """
    whole = line.rstrip(b"\0")
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
    return len(whole) < len(line)
