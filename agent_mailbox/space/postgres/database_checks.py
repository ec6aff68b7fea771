"""The troubles of a space's database: what its server would lose, its clock, and who could read on the way.

Belongs here: judging what the server says of itself. It tells it to every role, but
not how full its disk is.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from .answered_rows import TEXT, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .postgres_order import PostgresOrder

WANTED = {"fsync": "on", "full_page_writes": "on"}
"""The settings without which a power failure takes what was acknowledged."""
APART = 2.0
"""Seconds that two clocks may differ: mail of two machines is sorted by their times."""


def database_problems(order: PostgresOrder) -> Iterator[str]:
    """Yield the troubles, each as a sentence without a full stop."""
    ask = order.connection.query_rows
    for name, value in WANTED.items():
        found = value_of(ask("SELECT current_setting(%s)", (name,)), TEXT)
        if found != value:
            yield f"server acknowledges what a power failure loses; set {name} to {value}, it is {found}"
    apart = float(value_of(ask("SELECT extract(epoch FROM clock_timestamp())::float8"), (float,))) - time()
    if abs(apart) > APART:
        yield f"server's clock differs by {apart:.0f} s"
    if not order.connection.is_private:
        yield "connection is not encrypted: add `?sslmode=verify-full` to the URL, or `--authority`"
    if not ask(f'SELECT 1 FROM "{order.schema}".speaker LIMIT 1'):
        yield "any machine may speak as another: `engine config --postgresql` writes a role for each"
