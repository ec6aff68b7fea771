"""The order of a space, and its files, in the tables of a PostgreSQL database.

Belongs here: the mapping of both to the tables and functions of ``space_tables``, and the troubles that the server
tells every role of itself. A position is ``log.pos``. A file has a row for each part, and the machine that shipped it.
"""

from __future__ import annotations

import time

from ...core.proofs import is_machine
from ...errors import Refused
from ..order import order as orders
from ..order.order import HeldUp, Moved, Ordered, Taken
from . import space_tables
from .postgres_connection import BYTES, NULL, NUMBER, TEXT, PostgresConnection, row_of, rows_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

LOOKS = 5.0
"""Seconds after which a waiting machine looks, whatever it heard."""
_HOLDERS = """SELECT usename::text, a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.relation = %s::text::regclass AND l.mode <> 'AccessShareLock' AND l.granted
    AND NOT EXISTS (SELECT FROM pg_locks waited WHERE waited.pid = l.pid AND NOT waited.granted)"""
"""It gives who keeps the row that every append locks, and waits for nobody."""
WANTED = {"fsync": "on", "full_page_writes": "on"}
"""The settings without which a power failure takes what was acknowledged."""
APART = 2.0
"""Seconds that two clocks may differ: mail of two machines is sorted by their times."""
_AT_ONCE = 10_000
"""Records that are removed at once."""


class PostgresOrder:
    """One machine's way to a space in PostgreSQL; see ``space.order.order.SpaceOrder``."""

    def __init__(self, connection: PostgresConnection, space: str, machine: str) -> None:
        orders.check_names(space, machine)
        self.connection = connection
        self.space = space
        self.machine = machine
        self.schema = space_tables.schema_name(space)
        self._known = False
        self._since: object = None

    def make_unless_there(self) -> bool:
        """Make the space unless it is there; return whether it was made. Raises ``Refused`` for a newer one's."""
        question = "SELECT to_regnamespace(%s)::text"
        if value_of(self.connection.query_rows(question, (f'"{self.schema}"',)), TEXT + NULL) is not None:
            self.query_rows("SELECT 1")
            return False
        try:
            self.connection.query_rows(space_tables.creation_script(self.space))
        except Refused as error:
            raise Refused(
                f"space is not there, and cannot be made: {error.what}",
                "`engine config --postgresql URL` writes what the database's owner runs",
            ) from None
        return True

    def query_rows(self, query: str, *words: object) -> list[Any]:
        """Return the rows that answer a query, in which ``SPACE`` means the schema."""
        if not self._known:
            found = self.connection.query_rows(f'SELECT version FROM "{self.schema}".space')
            version = value_of(found, NUMBER)
            if version != space_tables.VERSION:
                raise Refused(f"space was made by another version of agent-mailbox: {version}", "bring this one up")
            self._known = True
        try:
            return self.connection.query_rows(query.replace("SPACE", f'"{self.schema}"'), words)
        except HeldUp:
            rows = self.connection.query_rows(_HOLDERS, (f'"{self.schema}".space',))
            for role, process in rows_of(rows, TEXT, NUMBER):  # whose transaction is open, if one is still
                raise HeldUp(
                    f"engine is held up by an open transaction of role {role}, process {process}",
                    f"end it there; the database's owner may run `SELECT pg_terminate_backend({process})`",
                ) from None
            raise

    def take_name(self, owner: str) -> str:
        return str(value_of(self.query_rows("SELECT SPACE.named(%s, %s)", self.machine, owner), TEXT))

    def joined_machines(self) -> list[str]:
        rows = rows_of(self.query_rows("SELECT name FROM SPACE.machine"), TEXT)
        return sorted(name for (name,) in rows if is_machine(name))

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        place = after
        where = "SELECT pos, log, line, machine, sum FROM SPACE.log WHERE log = %s AND pos > %s ORDER BY pos LIMIT 1000"
        while records := _records_from(self.query_rows(where, log, place), place):
            yield from (one for one in records if not one.damaged and one.log == log)
            place = records[-1].position

    def last_position(self) -> int:
        return int(value_of(self.query_rows("SELECT last FROM SPACE.space"), NUMBER))

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        orders.check_size(lines)
        if not lines:
            return self.last_position()
        digests = [orders.digest_of_id(one) for one in ids]
        words = [*lines], [orders.checksum_of(line) for line in lines], digests or None, expect
        question = "SELECT * FROM SPACE.append(%s, %s, %s::bytea[], %s::text[], %s::text[], %s::bigint)"
        rows = self.query_rows(question, self.machine, log, *words)
        said, place, taken = row_of(rows, TEXT, NUMBER + NULL, TEXT + NULL)
        if said == "moved":
            raise Moved(f"log has moved: {log}", "look again")
        if place is None or (said == "taken" and taken not in digests):
            raise orders.of_another_form()
        if said == "taken":
            raise Taken(ids[digests.index(taken)], place)
        return int(place)

    def read_after(self, after: int, most: int) -> list[Ordered]:
        where = "SELECT pos, log, line, machine, sum FROM SPACE.log WHERE pos > %s ORDER BY pos LIMIT %s"
        return _records_from(self.query_rows(where, after, most), after)

    def count_holes(self) -> int:
        question = "SELECT last - (SELECT count(*) FROM SPACE.log) FROM SPACE.space"
        return int(value_of(self.query_rows(question), NUMBER))

    def remove_records(self, positions: Sequence[int]) -> None:
        for start in range(0, len(positions), _AT_ONCE):
            self.query_rows("DELETE FROM SPACE.log WHERE pos = ANY(%s)", [*positions[start : start + _AT_ONCE]])

    def remove_through(self, log: str, position: int) -> None:
        rows = self.query_rows("SELECT min(pos) FROM SPACE.log WHERE log = %s", log)
        first = value_of(rows, NUMBER + NULL) or position
        for start in range(first, position + 1, _AT_ONCE):
            end = min(start + _AT_ONCE - 1, position)
            self.query_rows("DELETE FROM SPACE.log WHERE log = %s AND pos <= %s", log, end)

    def wait_for_record(self, after: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            if seconds > 0:
                self.connection.listen_on(self.schema)
            if self.last_position() > after:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.connection.has_heard(min(left, LOOKS))

    def tell_machines(self, word: bytes) -> None:
        self.query_rows("SELECT SPACE.tell(%s, %s)", self.machine, word)

    def latest_words(self) -> dict[str, bytes]:
        since, self._since = self._since, value_of(self.query_rows("SELECT clock_timestamp()"), (object,))
        if since is None:
            return {}
        rows = self.query_rows(
            "SELECT name, word FROM SPACE.machine WHERE told > %s AND told <= %s", since, self._since
        )
        return {name: word for name, word in rows_of(rows, TEXT, BYTES) if is_machine(name)}

    def ship_file(self, digest: str, data: bytes) -> None:
        """Give a file to the space; its first part comes last."""
        parts = orders.parts_of(data)
        for number in reversed(range(len(parts))):
            words = self.machine, digest, number, len(parts), parts[number]
            self.query_rows("SELECT SPACE.ship(%s, %s, %s, %s, %s)", *words)

    def take_back(self, digest: str) -> None:
        self.query_rows("SELECT SPACE.take_back(%s, %s)", self.machine, digest)

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        where = "SELECT machine, parts FROM SPACE.file WHERE digest = %s AND part = 0 ORDER BY machine"
        for machine, count in rows_of(self.query_rows(where, digest), TEXT, NUMBER):
            if count > orders.MOST_PARTS:
                continue
            parts = [part for n in range(count) for part in self._get_part(digest, machine, n, count)]
            if len(parts) == count:
                yield b"".join(parts)

    def _get_part(self, *words: object) -> list[bytes]:
        where = "SELECT data FROM SPACE.file WHERE digest = %s AND machine = %s AND part = %s AND parts = %s"
        return [data for (data,) in rows_of(self.query_rows(where, *words), BYTES)]

    def close(self) -> None:
        self.connection.close()


def open_order(
    url: str, space: str, machine: str, credential: str | None = None, authority: str | None = None, wait: float = 5.0
) -> PostgresOrder:
    return PostgresOrder(PostgresConnection(url, credential, authority, wait), space, machine)


def database_problems(order: PostgresOrder) -> Iterator[str]:
    """Yield the troubles, each as a sentence without a full stop."""
    ask = order.connection.query_rows
    for name, value in WANTED.items():
        found = value_of(ask("SELECT current_setting(%s)", (name,)), TEXT)
        if found != value:
            yield f"server acknowledges what a power failure loses; set {name} to {value}, it is {found}"
    apart = float(value_of(ask("SELECT extract(epoch FROM clock_timestamp())::float8"), (float,))) - time.time()
    if abs(apart) > APART:
        yield f"server's clock differs by {apart:.0f} s"
    if not order.connection.is_private:
        yield "connection is not encrypted: add `?sslmode=verify-full` to the URL, or `--authority`"
    if not ask(f'SELECT 1 FROM "{order.schema}".speaker LIMIT 1'):
        yield "any machine may speak as another: `engine config --postgresql` writes a role for each"


def _records_from(rows: Sequence[Any], after: int) -> list[Ordered]:
    """Return rows as records, which are behind a position: else nobody who reads on would end."""
    found = rows_of(rows, NUMBER, TEXT, BYTES, TEXT, TEXT)
    if found and found[-1][0] <= after:
        raise orders.of_another_form()
    return [
        Ordered(place, log, line, machine, known != orders.checksum_of(line))
        if is_machine(machine)
        else Ordered(place, "", b"", "")  # a stranger's
        for place, log, line, machine, known in found
    ]
