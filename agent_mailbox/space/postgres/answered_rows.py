"""The rows that a database answers, each with the columns that it must have, or the answer counts for nothing.

Belongs here: that check, for every answer of a space's tables and functions. Their owner may have changed them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..order.order import of_another_form

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT, NUMBER, BYTES = (str,), (int,), (bytes,)
MAYBE_TEXT, MAYBE_NUMBER = (str, type(None)), (int, type(None))
"""Kinds of a column."""


def rows_of(rows: Sequence[Any], *kinds: tuple[type, ...]) -> list[tuple[Any, ...]]:
    """Return the rows, each with columns of these kinds; raise ``Unavailable`` for others."""
    for row in rows:
        if len(row) != len(kinds) or not all(map(isinstance, row, kinds)):
            raise of_another_form()
    return [*rows]


def row_of(rows: Sequence[Any], *kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the only row; raise ``Unavailable`` if there is another number of them, or it has other columns."""
    if len(rows) != 1:
        raise of_another_form()
    return rows_of(rows, *kinds)[0]


def value_of(rows: Sequence[Any], kind: tuple[type, ...]) -> Any:
    """Return the only column of the only row; raises as ``row_of`` does."""
    return row_of(rows, kind)[0]
