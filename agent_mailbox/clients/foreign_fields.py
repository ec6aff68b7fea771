"""Values in files that another program wrote; invalid ones are reported, never raised. Read only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import codec
from ..core.records import BadLine, Record
from ..store.files.small_files import read_if_possible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_SETTINGS = 4 << 20
"""Bytes read of a settings file: a person wrote it."""


def read_object(path: str, most: int = MAX_SETTINGS) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read, has more than ``most`` bytes, or has another form."""
    found = codec.parse(read_if_possible(path, most, through_links=True) or b"", most, ours=False)
    return {} if isinstance(found, BadLine) else found


def rules_of(settings: Mapping[str, Any], key: str) -> list[Any]:
    """Return the rules by which a client's settings allow or ask; none if they have another shape."""
    permissions = settings.get("permissions")
    rules = permissions.get(key) if isinstance(permissions, dict) else None
    return rules if isinstance(rules, list) else []


class Unfit(Record):
    """An invalid part: its place in the array (None: the whole file), and why."""

    place: int | None
    reason: str


def list_unfit(unfit: tuple[Unfit, ...]) -> Iterator[str]:
    """Yield a line for each invalid part."""
    for one in unfit:
        yield one.reason if one.place is None else f"entry {one.place + 1}: {one.reason}"


def refuse_constant(word: str) -> Any:
    """Refuse, for ``json``, the constants of Python that JSON lacks (``NaN``, ``Infinity``)."""
    raise ValueError(f"{word} is not JSON")


def kind_of(value: Any) -> str:
    """Return a value's type, in words."""
    if value is None:
        return "null"
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "something else")


def text_under(value: Mapping[str, Any], key: str) -> str | None:
    """Return the text under a key; a value of another type counts as absent."""
    found = value.get(key)
    return clean_text(found) or None if isinstance(found, str) else None


def clean_text(text: str) -> str:
    """Return text that UTF-8 can hold: JavaScript's may have half surrogates. NUL, which our mail never has, goes,
    too."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
