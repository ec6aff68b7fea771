"""Decimal numbers of more digits than a float keeps.

Belongs here: such a number, for ``codec``, which few lines ask for one.
"""

from __future__ import annotations

from decimal import Decimal


class ExactNumber(float):
    """A decimal number, and the text that it is written as: the one that was read."""

    text: str


def exact(text: str, value: float) -> float:
    """Return the float if it keeps all digits of the text, else an exact number."""
    if Decimal(text) == Decimal(repr(value)):
        return value
    number = ExactNumber(value)
    number.text = text
    return number
