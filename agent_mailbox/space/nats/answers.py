"""The parts of what a NATS server answers: each has the form that it must have, or the answer counts for nothing.

Belongs here: that check, for every answer of JetStream. The server is trusted with the mail, and may be broken, or
another program. Then mail waits, as for one that is out of reach.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...errors import Unavailable
from ..order.order import of_another_form

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

FURTHEST = 1 << 63
"""No position of a stream is as far."""


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer; raise ``Unavailable`` if it is none."""
    found = codec.parse(data, len(data), ours=False)
    if not isinstance(found, dict):
        raise Unavailable("engine's answer is no JSON object", "is a NATS server there?")
    return found


def object_at(found: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object within an answer; empty if there is none."""
    return _part_at(found, key, dict, {})


def objects_at(found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of a list within an answer; empty if there is none."""
    objects = _part_at(found, key, list, [])
    if not all(isinstance(one, dict) for one in objects):
        raise of_another_form()
    return objects


def text_at(found: dict[str, Any], key: str) -> str:
    """Return a text within an answer; empty if there is none."""
    return _part_at(found, key, str, "")


def bytes_at(found: dict[str, Any], key: str) -> bytes:
    """Return the bytes that a text within an answer spells; empty if there is none."""
    try:
        return base64.b64decode(text_at(found, key))
    except ValueError:
        raise of_another_form() from None


def number_at(found: dict[str, Any], key: str, least: int = 0, nothing: int | None = None) -> int:
    """Return a number within an answer, no less than that; ``nothing`` if there is none and that is a number."""
    number = found.get(key, nothing)
    if type(number) is not int or not least <= number < FURTHEST:
        raise of_another_form()
    return number


def _part_at(found: dict[str, Any], key: str, kind: type[T], nothing: T) -> T:
    part = found.get(key)
    if part is None:
        return nothing
    if not isinstance(part, kind):
        raise of_another_form()
    return part
