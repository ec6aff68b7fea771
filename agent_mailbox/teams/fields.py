"""Values in files that another program wrote, and what in them is not valid: nothing here raises for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Unfit(Record):
    """What is no entry: where in the array (None: the whole file), and why."""

    place: int | None
    reason: str


def listed(unfit: tuple[Unfit, ...]) -> Iterator[str]:
    """What was not valid, a line each."""
    for one in unfit:
        yield one.reason if one.place is None else f"entry {one.place + 1}: {one.reason}"


def constant(word: str) -> Any:
    """For ``json``: refuse what Python takes and JSON does not have (``NaN``, ``Infinity``)."""
    raise ValueError(f"{word} is not JSON")


def kind(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "null"
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "something else")


def maybe(value: Mapping[str, Any], key: str) -> str | None:
    """The text under a key; a value of another type counts as absent."""
    found = value.get(key)
    return clean(found) or None if isinstance(found, str) else None


def clean(text: str) -> str:
    """Text that UTF-8 can hold: JavaScript's may have half surrogates, and NUL no mail of ours has."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
