"""A record takes each of its fields once, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.core.records import Record


class Pair(Record):
    """Two fields, one with a default."""

    first: int
    second: int = 2


@pytest.mark.parametrize(
    "pair", [Pair(1), Pair(1, 2), Pair(1, second=2), Pair(second=2, first=1), Pair(0).replace(first=1)]
)
def test_fields_come_in_order_or_by_name(pair: Pair) -> None:
    """Defaults stand in for the rest."""
    assert (pair.first, pair.second) == (1, 2)
    assert pair == Pair(1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        ((1, 2, 3), {}),
        ((1, 2), {"second": 2}),
        ((1,), {"first": 1}),
        ((1,), {"first": 1, "second": 2}),
        ((1,), {"third": 3}),
        ((1, 2), {"third": 3}),
        ((), {"first": 1, "third": 3}),
        ((), {"second": 2}),
    ],
)
def test_missing_surplus_doubled_and_unknown_arguments_are_refused(
    given: tuple[int, ...], named: dict[str, Any]
) -> None:
    """A record refuses missing, surplus, doubled and unknown arguments, as a dataclass does."""
    with pytest.raises(TypeError):
        Pair(*given, **named)


def test_a_change_of_an_unknown_field_is_refused() -> None:
    """``replace`` makes no field."""
    with pytest.raises(TypeError):
        Pair(1).replace(third=3)
