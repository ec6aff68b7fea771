"""Live mail that asks for an ack or was offered, and ids that are known: found without reading the logs whole.

Belongs here: these questions to the projection, and how a question about live mail is asked. ``core.obligations``
judges what is found as it would judge everything. Without a projection everything is read.
"""

from __future__ import annotations

from ...core import codec
from ...core.inbox import InboxState
from ...core.line_forms import may_be_read_by
from ...core.message_reads import Reads
from ...core.records import BadLine
from ..files.lines import line_at
from ..log.logs import parse_messages, parse_reads
from .index_keys import HASTE, LIVE, MARKED, OF_ASK, PATIENCE, POSITION, number_of_id, term_of_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from ...core.records import Read
    from ..log.logs import Logs, OpenLogs
    from .projection_file import Connection

    T = TypeVar("T")

SHORT = 64 << 10
"""Bytes of both logs that are read about as fast as the projection is opened."""
_MANY = 500
"""Numbers in one query."""
IS_LIVE = f"place >= {LIVE}"
ROW = "m.place, m.id, m.state, m.address, m.timestamp, m.sender"
OF_IDS = f"SELECT {ROW} FROM messages m WHERE m.id IN (%s) AND m.{IS_LIVE}"
ANSWERS = f"SELECT {ROW} FROM terms t CROSS JOIN messages m ON m.n = t.n WHERE t.term IN (%s) AND m.{IS_LIVE}"
RECORDS = f"SELECT place FROM reads WHERE message IN (%s) AND {IS_LIVE}"


def read_asks(logs: Logs, session_id: str, ttls: Mapping[str, float | None]) -> InboxState:
    """Return the live mail that asks for an ack and concerns the session, with all answers and the reads that count."""

    def question(db: Connection, live: OpenLogs) -> InboxState:
        roster = logs.read_roster()
        numbers = [*map(number_of_id, roster.lineage(session_id))]
        sent = f"SELECT id FROM messages WHERE asks AND {IS_LIVE} AND sender IN (%s)"
        given = f"SELECT message FROM reads WHERE kind & {OF_ASK} AND {IS_LIVE} AND reader IN (%s)"
        asked = {one for query in (sent, given) for (one,) in rows_of(db, query, numbers)}
        answers = {row[1] for row in rows_of(db, ANSWERS, map(term_of_answer, asked))}
        messages = {row[0] for row in rows_of(db, OF_IDS, asked | answers)}  # all lines of an id tell which one counts
        reads = {place for (place,) in rows_of(db, RECORDS, asked)}
        views = live.views()
        return InboxState(
            messages=parse_messages(lines_at(live.messages, messages), views[0]),
            reads=Reads(parse_reads(lines_at(live.reads, reads), views[1])),
            roster=roster,
            ttls=ttls,
        )

    found = ask(logs, question)
    return logs.asking(ttls) if found is None else found


def read_offered(logs: Logs, session_id: str) -> list[Read]:
    """Return the session's records about the live messages that a hook offered it and that it may not have seen.

    Its other records settle more than those with a hook's nonce and the releases, never less. So these alone tell which
    messages to ask about, and all records of those tell the rest.
    """

    def question(db: Connection, live: OpenLogs) -> list[Read]:
        query = f"SELECT place FROM reads WHERE kind & {MARKED} AND {IS_LIVE} AND reader IN (%s)"
        marked = mine(live, rows_of(db, query, [number_of_id(session_id)]))
        standing = Reads(marked)
        unseen = {read.message_id for read in marked if standing.unseen(read.message_id)}
        found = mine(live, rows_of(db, RECORDS, map(number_of_id, unseen)))
        return [read for read in found if read.message_id in unseen]

    def mine(live: OpenLogs, places: Iterable[tuple[int]]) -> list[Read]:
        return [*_by(session_id, lines_at(live.reads, {place for (place,) in places}))]

    found = ask(logs, question)
    return [*_by(session_id, logs.reads.lines())] if found is None else found


def read_records(logs: Logs, session_id: str, ids: Iterable[str]) -> list[Read]:
    """Return the session's records about these live messages, in order."""
    wanted = {*ids}

    def question(db: Connection, live: OpenLogs) -> list[Read]:
        places = {place for (place,) in rows_of(db, RECORDS, map(number_of_id, wanted))}
        return [*_by(session_id, lines_at(live.reads, places))]

    found = ask(logs, question)
    records = _by(session_id, logs.reads.lines()) if found is None else found
    return [read for read in records if read.message_id in wanted]


def are_known(logs: Logs, ids: Iterable[str], before: int, most: int | None = None) -> bool | None:
    """Return whether a live record names one of the ids, or a message before a position has it.

    None comes if there is no projection that would tell at once, and with no more than ``most`` new bytes of logs."""

    def question(db: Connection, _: OpenLogs) -> bool:
        numbers = [*map(number_of_id, ids)]
        stands = f"SELECT 1 FROM messages WHERE id IN (%s) AND place BETWEEN {LIVE} AND {LIVE + before - 1}"
        is_read = f"SELECT 1 FROM reads WHERE message IN (%s) AND {IS_LIVE}"
        return any(True for query in (stands, is_read) for _ in rows_of(db, f"{query} LIMIT 1", numbers))

    from . import projection  # likewise

    return projection.ask(logs, question, patience=HASTE if most is not None else PATIENCE, most=most)


def keep_up(logs: Logs) -> None:
    """Take in the logs, however long it takes."""
    from . import projection  # likewise

    projection.ask(logs, lambda *_: True, patience=PATIENCE)


def ask(logs: Logs, question: Callable[[Connection, OpenLogs], T]) -> T | None:
    """Return the projection's answer about live mail; None if the logs are short, or there is no projection."""
    messages, reads, _ = logs.ends()
    if messages[1] + reads[1] <= SHORT:
        return None
    from . import projection  # SQLite, which short logs do without

    return projection.ask(logs, question, patience=PATIENCE)


def rows_of(db: Connection, query: str, numbers: Iterable[int]) -> Iterator[Any]:
    """Yield the rows of a query that has a list of numbers, in pieces of some hundred."""
    every = [*numbers]
    for begin in range(0, len(every), _MANY):
        some = every[begin : begin + _MANY]
        yield from db.execute(query % ",".join("?" * len(some)), some)


def lines_at(fd: int | None, places: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    """Return the lines at these places of an open live log, with their positions."""
    return ((at & POSITION, line_at(fd, at & POSITION)) for at in sorted(places)) if fd is not None else ()


def _by(session_id: str, lines: Iterable[tuple[int, bytes]]) -> Iterator[Read]:
    word = [session_id.encode("utf-8", "surrogatepass")]
    records = (codec.read(line) for _, line in lines if may_be_read_by(line, word))
    return (record for record in records if not isinstance(record, BadLine) and record.session_id == session_id)
