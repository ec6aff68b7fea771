"""JSON with comments, changed in its own text: what nobody changed keeps every byte.

Belongs here: where each value is in a text, and the few places that a change of the settings touches. For clients
that accept comments in their settings (``KnownClient.has_comments``). Pure: text in, text out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ...core.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_SCALAR = re.compile(r'"(?:\\.|[^"\\])*"|[^\s,\]}]+')
_SPACE = re.compile(r"\s*")


class Value(Record):
    """A value in the text, from ``start`` to ``end``. ``parts``: those of an object by key, or of an array by number,
    each behind the place where it begins with its key."""

    start: int
    end: int
    parts: Mapping[Any, tuple[int, Value]]


def blanked(text: str) -> str:
    """Return the text with a space for each character of a comment, so that all else stays where it is."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else re.sub(r"[^\n\r]", " ", found[0])

    return _COMMENT.sub(blank, text)


def edited(text: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the text of the settings ``old`` changed into ``new``: only values that differ are written again."""
    plain = blanked(text)
    edits: list[tuple[int, int, str]] = []
    _compare(plain, _value(plain, _end_of(_SPACE, plain, 0)), old, new, edits)
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _compare(plain: str, value: Value, old: Any, new: Any, edits: list[tuple[int, int, str]]) -> None:
    """Add the edits that make of a value of the text another one."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        stays = [key for key in old if key in new]
        for key in stays:
            _compare(plain, value.parts[key][1], old[key], new[key], edits)
        more = [f"{_written(key)}: {_written(one)}" for key, one in new.items() if key not in old]
    elif isinstance(old, list) and isinstance(new, list) and old and new[: len(old)] == old:
        end = value.parts[len(old) - 1][1].end
        edits.append((end, end, "".join(f", {_written(one)}" for one in new[len(old) :])))
        return
    elif isinstance(old, list) and isinstance(new, list) and [one for one in old if one in new] == new:
        stays, more = [number for number, one in enumerate(old) if one in new], []
    else:
        edits.append((value.start, value.end, _written(new)))
        return
    _cut(plain, value, stays, edits)
    if more:
        edits.append((value.start + 1, value.start + 1, ", ".join(more) + (", " if stays else "")))


def _cut(plain: str, value: Value, stays: Sequence[Any], edits: list[tuple[int, int, str]]) -> None:
    """Take all other parts out: each with the comma behind it, and the last ones with the comma before them."""
    keys = [*value.parts]
    last = max((number for number, key in enumerate(keys) if key in stays), default=-1)
    for key in keys[: last + 1]:
        if key not in stays:
            after = plain.index(",", value.parts[key][1].end) + 1
            edits.append((value.parts[key][0], after + (plain[after : after + 1] == " "), ""))
    if keys[last + 1 :]:
        start = value.parts[keys[0]][0] if last < 0 else plain.index(",", value.parts[keys[last]][1].end)
        edits.append((start, value.parts[keys[-1]][1].end, ""))


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _end_of(pattern: re.Pattern[str], plain: str, at: int) -> int:
    """Return where the pattern ends that begins at a place: the text was read as JSON before, so it does."""
    found = pattern.match(plain, at)
    assert found is not None, at
    return found.end()


def _value(plain: str, at: int) -> Value:
    """Return the value that begins at a place."""
    opening = plain[at]
    if opening not in "{[":
        return Value(at, _end_of(_SCALAR, plain, at), {})
    parts: dict[Any, tuple[int, Value]] = {}
    place = _end_of(_SPACE, plain, at + 1)
    while plain[place] not in "}]":
        start, key = place, len(parts)
        if opening == "{":
            end = _end_of(_SCALAR, plain, place)
            key = json.loads(plain[place:end])
            place = _end_of(_SPACE, plain, plain.index(":", end) + 1)
        part = _value(plain, place)
        parts[key] = (start, part)
        place = _end_of(_SPACE, plain, part.end)
        if plain[place] == ",":
            place = _end_of(_SPACE, plain, place + 1)
    return Value(at, place + 1, parts)
