"""The answers of the search index: candidates, newest first, and the messages at their places.

Belongs here: queries of the index, and reading back the lines they name. Must not know who may see a message.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice, pairwise

from ...core import address, codec
from ...core.message_reads import Reads
from ...core.records import BadLine
from ..files.lines import boundary, line_at
from ..files.small_files import OpenFile
from ..log.logs import parse_reads
from ..log.proof_view import weigh_message
from . import projection
from .index_keys import (
    EVER,
    LIVE,
    NEVER,
    NEWS,
    PARENT,
    PARTY,
    POSITION,
    Doubt,
    month_of,
    number_of,
    number_of_id,
    rank,
    starts_from,
    term_of,
    term_of_answer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from ...core.records import Message, Read
    from ..archive.archive import Archive
    from ..log.logs import Logs, OpenLogs
    from .index_keys import Row
    from .projection_file import Connection

    T = TypeVar("T")

    Where = tuple[int, int, tuple[int, ...]]
    """The inode of the live reads log, a position in it, and where lines about a message stand before that."""

MAX_PHRASES = 32
"""Phrases of a query that narrow; the caller judges the others."""
WINDOW = 4000
"""Matches of a query that are sorted at once, and messages of the first span of time for more."""


def ask_index(
    logs: Logs, archive: Archive, question: Callable[[IndexLookup], T], *, at_once: bool = False, patience: float = 0.0
) -> T | None:
    """Return the answer from an index caught up with the logs, built again if need be; None if there is no index.

    ``at_once``: also None if the answer would wait longer than ``patience`` (seconds) for another process, or for more
    than ``NEWS`` bytes of logs.
    """
    return projection.ask(
        logs,
        lambda db, live: question(IndexLookup(db, live, archive)),
        archive,
        patience=patience if at_once else None,
        most=NEWS if at_once else None,
    )


class IndexLookup:
    """The index, opened and caught up, beside its logs."""

    def __init__(self, db: Connection, live: OpenLogs, archive: Archive) -> None:
        self._db = db
        self._live = live
        self._archive = archive
        self._views = live.views()
        self._counting: dict[str, int] = {}

    # -- candidates, newest first -------------------------------------------------------------------------------------

    def with_words(self, wanted: Sequence[str], until: int | None = None) -> Iterator[Row]:
        """Return the rows that may match all phrases. These are words and spaces alone, and a last ``*`` for a
        beginning: they hold no quote and no operator."""
        terms = [f'"{phrase[:-1]}" *' if phrase.endswith("*") else f'"{phrase}"' for phrase in wanted[:MAX_PHRASES]]
        asked, end = " AND ".join(terms), EVER if until is None else until
        few = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        if self._db.execute(few, (asked, WINDOW + 1)).fetchone()[0] > WINDOW:
            return self._in_windows(asked, end)
        return self._matching(asked, NEVER, end, "")

    def _matching(self, asked: str, since: int, until: int, within: str, *rows: int) -> Iterator[Row]:
        return self._db.execute(
            "SELECT m.timestamp, m.place, m.line FROM words CROSS JOIN messages m ON m.n = words.rowid"
            f" WHERE words MATCH ? AND m.timestamp BETWEEN ? AND ? {within} ORDER BY m.timestamp DESC, m.place DESC",
            (asked, since, until, *rows),
        )

    def _in_windows(self, asked: str, end: int) -> Iterator[Row]:
        """Yield what matches common words by growing spans of time: who takes the newest does not wait for all."""
        size = WINDOW
        while True:
            span = "SELECT timestamp FROM messages WHERE timestamp <= ? ORDER BY timestamp DESC LIMIT 1 OFFSET ?"
            edge = self._db.execute(span, (end, size)).fetchone()
            since = NEVER if edge is None else edge[0]
            numbers = "SELECT n FROM messages WHERE timestamp BETWEEN ? AND ?"
            runs = _runs([n for (n,) in self._db.execute(numbers, (since, end))])
            within = "AND words.rowid BETWEEN ? AND ?"
            yield from merge(*(self._matching(asked, since, end, within, *run) for run in runs), reverse=True)
            if edge is None:
                return
            end, size = since - 1, size * 4

    def between(self, groups: Iterable[Iterable[str]], since: int | None, until: int | None = None) -> Iterator[Row]:
        """Return the rows that may be from or to one of the parties in each group (no group: everything).

        ``since`` and ``until`` are instants in ms, both included.
        """
        rows: Iterator[Row] | None = None
        for parties in groups:
            terms = {term_of(PARTY, party) for party in parties}
            group = merge(*(self._listed(term, since, until) for term in terms), reverse=True)
            rows = group if rows is None else _common(rows, group)
        if rows is not None:
            return rows
        return self._db.execute(
            "SELECT timestamp, place, line FROM messages WHERE timestamp BETWEEN ? AND ?"
            " ORDER BY timestamp DESC, place DESC",
            (NEVER if since is None else since, EVER if until is None else until),
        )

    def _listed(self, term: int, since: int | None = None, until: int | None = None) -> Iterator[Row]:
        return self._db.execute(
            "SELECT t.timestamp, m.place, m.line FROM terms t CROSS JOIN messages m ON m.n = t.n"
            " WHERE t.term = ? AND t.timestamp BETWEEN ? AND ? ORDER BY t.timestamp DESC, m.place DESC",
            (term, NEVER if since is None else since, EVER if until is None else until),
        )

    def conversation(
        self, parties: Iterable[str], before: tuple[int, str] | None, most: int
    ) -> tuple[list[Row], list[Row]]:
        """Return the newest ``most`` rows that may be from or to one of the parties, and with them the answers below.

        Both are newest first; of the answers, too, no more than ``most`` are looked for. ``before``: the instant (ms)
        and the id of the message that all of them precede.
        """
        known = None if before is None else self._standing(before[1])
        until = (EVER, EVER) if before is None else (before[0], known[0][1] if known else 0)
        direct: set[tuple[Row, int]] = set()
        for term in {term_of(PARTY, party) for party in parties}:
            direct.update(self._with_ids(term, until, most))
        newest = sorted(direct, reverse=True)[:most]
        found, pending = dict(newest), [number for _, number in newest]
        left = most
        while pending and left > 0:
            answers = [at for at in self._with_ids(term_of_answer(pending.pop()), until, left) if at[0] not in found]
            found.update(answers)
            pending += [number for _, number in answers]
            left -= len(answers)
        return [row for row, _ in newest], sorted(found, reverse=True)

    def _with_ids(self, term: int, until: tuple[int, int], most: int) -> list[tuple[Row, int]]:
        rows = self._db.execute(
            "SELECT t.timestamp, m.place, m.line, m.id FROM terms t CROSS JOIN messages m ON m.n = t.n"
            " WHERE t.term = ? AND t.timestamp <= ? AND (t.timestamp < ? OR m.place < ?)"
            " ORDER BY t.timestamp DESC, m.place DESC LIMIT ?",
            (term, until[0], until[0], until[1], most),
        )
        return [((timestamp, place, line), number) for timestamp, place, line, number in rows]

    def newer(self, parties: Iterable[str], since: int, until: int, most: int) -> list[Row]:
        """Return the newest ``most`` rows that may be from or to one of the parties, sent after ``since`` (ms)."""
        return list(islice(self.between([parties], since + 1, until), most))

    # -- answers ------------------------------------------------------------------------------------------------------

    def newest(
        self, candidates: Iterable[Row], wanted: Callable[[Message], bool], limit: int
    ) -> tuple[list[Message], Reads]:
        """Return the newest ``limit`` (0: all) of the candidates that are wanted, newest last, with their reads."""
        found = self.chosen(candidates, wanted, limit)
        return found, Reads(self.records(found))

    def chosen(self, candidates: Iterable[Row], wanted: Callable[[Message], bool], limit: int) -> list[Message]:
        """Return the same messages without their reads."""
        found: list[Message] = []
        before = None
        for row in candidates:
            if row == before:
                continue
            before = row
            message = self._message(row)
            if wanted(message) and self._counts(row, message):
                found.append(message)
                if len(found) == limit:
                    break
        found.reverse()
        return found

    def hours(self, since: int, until: int, hour: int) -> dict[int, int]:
        """Return how many messages each hour has, by the instant (ms) it begins at; ``hour`` in ms. Twins count."""
        query = "SELECT timestamp / ? * ?, count(*) FROM messages WHERE timestamp BETWEEN ? AND ? GROUP BY 1"
        return dict(self._db.execute(query, (hour, hour, since, until)))

    def ids(self, wanted: str, *, prefix: bool) -> set[str]:
        """Return the ids equal to the wanted text, else (if ``prefix``) those that begin with it; case is ignored."""
        query = "SELECT timestamp, place, line FROM messages WHERE start BETWEEN ? AND ?"
        rows = self._db.execute(query, starts_from(wanted, prefix=prefix))
        wanted = wanted.casefold()
        found = {self._message(row).id for row in rows}
        begin = {i for i in found if i.casefold() == wanted or (prefix and i.casefold().startswith(wanted))}
        return {*address.meant_ids(wanted, begin)}

    def found(self, message_id: str) -> tuple[Message, tuple[Read, ...], int | None, Where] | None:
        """Return a message, the records about it, and its position in the live log (None: archived).

        The last value tells where the live records are. None says that no message has the id.
        """
        known = self._standing(message_id)
        if known is None:
            return None
        (_, place, _), message = known
        fd, (inode, end) = self._live.reads, self._live.ends[1]
        end = 0 if fd is None else boundary(fd, end)
        positions = (place & POSITION for place in self._places(message) if place >= LIVE)
        where = inode, end, tuple(position for position in positions if position < end)
        return message, tuple(dict.fromkeys(self.records([message]))), _position(place), where

    def related(self, message_id: str) -> tuple[dict[str, Message], Reads]:
        """Return every message connected to one by replies, in order, with the reads; the core makes the thread of
        them."""
        found: dict[str, tuple[Row, Message]] = {}
        met, pending = {message_id}, [message_id]
        while pending:
            known = self._standing(wanted := pending.pop())
            if known is None:
                continue
            found[wanted] = known
            answers = [m.id for m in map(self._message, self._listed(term_of(PARENT, wanted))) if m.thread == wanted]
            fresh = {i for i in (*answers, known[1].thread) if i is not None} - met
            met |= fresh
            pending += fresh
        ordered = [message for _, message in sorted(found.values(), key=lambda pair: pair[0])]
        return {message.id: message for message in ordered}, Reads(self.records(ordered))

    def message(self, message_id: str) -> Message | None:
        """Return the message of an id; None if there is none."""
        known = self._standing(message_id)
        return known[1] if known else None

    def stored_line(self, message_id: str) -> bytes | None:
        """Return the line of the message of an id as it is in its log; None if there is none."""
        known = self._standing(message_id)
        return self._line(known[0][1], False) if known else None

    def archived_lines(self, message_ids: Iterable[str]) -> list[bytes]:
        """Return the archived lines of the messages that may have one of the ids."""
        rows = [row for message_id in message_ids for row in self._with_id(message_id) if row[1] < LIVE]
        lines = [self._line(row[1], False) for row in rows]
        if any(number_of(line) != row[2] for line, row in zip(lines, rows, strict=True)):
            raise Doubt("the line is another")
        return lines

    def _counts(self, row: Row, message: Message) -> bool:
        """Return whether the message counts among its twins, as in ``_standing``; one row in a million has twins."""
        place = self._counting.get(message.id)
        if place is None:
            rows = list(self._with_id(message.id))
            if len(rows) == 1:
                return True
            standing = self._of(message.id, rows)
            place = self._counting[message.id] = standing[0][1] if standing else row[1]  # else each asks for all again
        return place == row[1]

    def _standing(self, message_id: str) -> tuple[Row, Message] | None:
        """Return the message of an id: of twins the one that counts."""
        return self._of(message_id, self._with_id(message_id))

    def _with_id(self, message_id: str) -> Iterator[Row]:
        query = "SELECT timestamp, place, line FROM messages WHERE id = ?"
        return self._db.execute(query, (number_of_id(message_id),))

    def _of(self, message_id: str, rows: Iterable[Row]) -> tuple[Row, Message] | None:
        known = ((row, self._message(row)) for row in sorted(rows, key=lambda row: rank(row[1])))
        return next(((row, message) for row, message in known if message.id == message_id), None)

    def records(self, messages: Iterable[Message]) -> Iterator[Read]:
        """Yield the read records about the messages, each message's in the order of the logs."""
        for message in messages:
            lines = [(_position(place), self._line(place, True)) for place in self._places(message)]
            yield from (read for read in parse_reads(lines, self._views[1]) if read.message_id == message.id)

    def _places(self, message: Message) -> list[int]:
        """Return the places of the reads lines that may be about the message, in the order of the logs."""
        query = "SELECT place FROM reads WHERE message = ? ORDER BY place"
        return [place for (place,) in self._db.execute(query, (number_of(message.id.encode()),))]

    def replies(self, message_id: str) -> int:
        """Return how many messages answer this one directly (twins and texts that share a number count)."""
        query = "SELECT count(*) FROM terms WHERE term = ?"
        found: int = self._db.execute(query, (term_of(PARENT, message_id),)).fetchone()[0]
        return found

    # -- reading back -------------------------------------------------------------------------------------------------

    def _message(self, row: Row) -> Message:
        line = self._line(row[1], False)
        message = codec.message(line)
        if number_of(line) != row[2] or isinstance(message, BadLine):
            raise Doubt("the line is another")
        return weigh_message(message, self._views[0], line, _position(row[1]))

    def _line(self, place: int, reads: bool) -> bytes:
        if place >= LIVE:
            fd = self._live.reads if reads else self._live.messages
            return b"" if fd is None else line_at(fd, place & POSITION)
        month = month_of(place)
        fd = (self._archive.reads_log(month) if reads else self._archive.log(month)).open()
        if fd is None:
            raise Doubt(f"the log of {month} is gone")
        with OpenFile(fd):
            return line_at(fd, place & POSITION)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run without a wide gap: of a span of time mostly one, or two."""
    numbers.sort()
    gap = WINDOW + len(numbers)
    ends = [at for at, (one, other) in enumerate(pairwise(numbers), 1) if other - one > gap]
    return [(numbers[a], numbers[b - 1]) for a, b in pairwise((0, *ends, len(numbers))) if b > a]


def _position(place: int) -> int | None:
    """Return a place's position in the live log; None in the archive."""
    return place & POSITION if place >= LIVE else None


def _common(these: Iterable[Row], those: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows that are in both, each of which is newest first."""
    other = next(those, None)
    for row in these:
        while other is not None and other > row:
            other = next(those, None)
        if row == other:
            yield row
