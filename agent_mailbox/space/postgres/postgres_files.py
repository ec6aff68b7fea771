"""The files of a space in a table of its database.

Belongs here: the mapping of files to ``space_tables``: a row for each part, and the
machine that shipped it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..order.space_files import MOST_PARTS, parts_of
from .answered_rows import BYTES, NUMBER, TEXT, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .postgres_order import PostgresOrder


class PostgresFiles:
    """One machine's way to the files of a space in PostgreSQL; see ``space.order.space_files.SpaceFiles``."""

    def __init__(self, order: PostgresOrder) -> None:
        self._order = order

    def make_unless_there(self) -> None:
        """Do nothing: the table came with the space."""

    def ship_file(self, digest: str, data: bytes) -> None:
        """Give a file to the space; its first part comes last."""
        parts = parts_of(data)
        for number in reversed(range(len(parts))):
            words = self._order.machine, digest, number, len(parts), parts[number]
            self._order.query_rows("SELECT SPACE.ship(%s, %s, %s, %s, %s)", *words)

    def take_back(self, digest: str) -> None:
        """Remove the file that this machine shipped."""
        self._order.query_rows("SELECT SPACE.take_back(%s, %s)", self._order.machine, digest)

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        """Yield what machines shipped as that file."""
        where = "SELECT machine, parts FROM SPACE.file WHERE digest = %s AND part = 0 ORDER BY machine"
        for machine, count in rows_of(self._order.query_rows(where, digest), TEXT, NUMBER):
            if count > MOST_PARTS:
                continue
            parts = [part for n in range(count) for part in self._get_part(digest, machine, n, count)]
            if len(parts) == count:
                yield b"".join(parts)

    def _get_part(self, *words: object) -> list[bytes]:
        where = "SELECT data FROM SPACE.file WHERE digest = %s AND machine = %s AND part = %s AND parts = %s"
        return [data for (data,) in rows_of(self._order.query_rows(where, *words), BYTES)]
