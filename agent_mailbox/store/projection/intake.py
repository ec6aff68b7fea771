"""Catching the projection up with the logs: new lines go in, stale entries go out.

Belongs here: the logs there are, how far each was taken in (its mark, see ``cache``), and the rows of their lines.
Must not know the questions (``lookup``, ``open_ends``), nor who uses the file when (``projection``).

A message's row says what its line says, and its ``state``: did anybody take it? That follows from all lines and records
of its id. So it is made again for each id that new lines are about. The words of messages go in behind their rows, for
a search alone: they take longer than all the rest.
"""

from __future__ import annotations

from ...core.records import Record
from ...core.words import folded, quick_folding
from ..files import small_files, system
from ..files.lines import boundary, lines_of
from . import line_facts
from .index_keys import (
    DOUBTFUL,
    DOUBTS,
    LIVE,
    MARKED,
    NEVER,
    OF_ASK,
    PARENT,
    PARTY,
    POSITION,
    TAKES,
    Doubt,
    first_place,
    number_of,
    number_of_id,
    start_of,
    term_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...core.exact_lines import Fields
    from ..archive.archive import Archive
    from ..log.logs import OpenLogs
    from .line_facts import Facts
    from .projection_file import Connection

BATCH = 4 << 20
"""Bytes of log lines taken in one go: some thousand messages, and no more memory however long they are."""
SLICE = 16 << 20
"""Bytes of log lines behind which what was taken in is saved."""
MANY = 1 << 20
"""Bytes of a log from which reading our usual spelling by itself (``exact_lines``) is worth its import."""
_WORDS = "words (rowid, text)"
_STATE = f"""CASE
  WHEN address IS NULL OR (SELECT count(*) FROM messages t WHERE t.id = messages.id AND t.place >= {LIVE}) > 1
    THEN {DOUBTFUL}
  ELSE (SELECT CASE WHEN coalesce(max(kind & {DOUBTS}), 0) THEN {DOUBTFUL} ELSE coalesce(max(kind & {TAKES}), 0) END
    FROM reads r WHERE r.message = messages.id AND r.place >= {LIVE}) END"""
_INDEXES = (
    "INDEX {} ids ON messages (id)",
    f"INDEX {{}} lonely ON messages (address, timestamp, place) WHERE state = 0 AND place >= {LIVE}",
    f"INDEX {{}} sent ON messages (sender, address, timestamp, place) WHERE state = 0 AND place >= {LIVE}",
    f"INDEX {{}} doubtful ON messages (place, id) WHERE state = {DOUBTFUL} AND place >= {LIVE}",
    "UNIQUE INDEX {} about ON reads (message, place)",
    f"INDEX {{}} marked ON reads (reader) WHERE kind & {MARKED}",
    f"INDEX {{}} debts ON reads (reader) WHERE kind & {OF_ASK}",
)
_SEARCHED = (
    "INDEX {} times ON messages (timestamp, place)",
    "INDEX {} starts ON messages (start)",
)
"""Made behind the first intake: sorting all entries at once takes a fraction of inserting each at its place."""
_MOST_NUMBERS = 1 << 14
_TOUCHED = 500
# Orphaned entries of ``terms`` and ``words`` stay and lead nowhere: an ``n`` is never used again.


class IndexSource(Record):
    """One log the projection is made of: its name there, its first place, the open file and where to stop in it."""

    name: str
    first: int
    reads: bool
    fd: int | None
    end: int


def sources(live: OpenLogs, archive: Archive | None) -> Iterator[IndexSource]:
    """Yield every log. The live ones were opened before the archive is looked at: the steward moves mail that way."""
    for month in archive.months() if archive is not None else ():
        assert archive is not None
        first = first_place(month)
        for name, log in ((month, archive.log(month)), (f"{month} reads", archive.reads_log(month))):
            fd = log.open()
            try:
                end = 0 if fd is None else system.fstat(fd).st_size
                yield IndexSource(name=name, first=first, reads=name != month, fd=fd, end=end)
            finally:
                if fd is not None:
                    system.close(fd)
    yield IndexSource(name="live", first=LIVE, reads=False, fd=live.messages, end=live.messages_end)
    yield IndexSource(name="live reads", first=LIVE, reads=True, fd=live.reads, end=live.reads_end)


class Intake:
    """One run that catches the open projection up with the logs; without an ``archive`` with the live ones alone.

    ``is_whole``: nothing is left to take in.
    """

    def __init__(self, db: Connection, live: OpenLogs, archive: Archive | None) -> None:
        self._db = db
        self._live = live
        self._archive = archive
        self._loose = False
        numbers: tuple[int, int, int] = db.execute("SELECT next, worded, ready FROM seal").fetchone()
        self._next, self._worded, self._ready = numbers
        self._left = SLICE
        self._is_cut = False
        self._new: dict[str, list[Any]] = {table: [] for table in ("messages", "terms", "reads", _WORDS)}
        self._numbers: dict[bytes | str, int] = {}
        self._addresses: dict[tuple[str, int], int] = {}
        self._touched: set[int] = set()
        self._marks: list[tuple[int, Sequence[int]]] = []
        """The open live logs, and what was taken in of each."""
        self._folded: Callable[[str], str] = folded
        self._facts: Callable[[bytes], Facts | None] = line_facts.facts_of
        self._fields: Callable[[bytes], Fields | None] = line_facts.fields_of
        self._record: Callable[[bytes], tuple[bytes, bytes, int] | None] = line_facts.record_of
        self.is_whole = False

    def catch_up(self, most: int | None = None) -> bool:
        """Take in new lines and forget stale ones, a slice at most; return True if that leaves a transaction to commit.

        Raises ``Doubt`` for more than ``most`` bytes of new lines.
        """
        marks = "SELECT name, inode, position, checksum, tail FROM sources"
        known = {name: at for name, *at in self._db.execute(marks)}
        if self._archive is None:
            known = {name: at for name, at in known.items() if name.startswith("live")}
        held = {source.name: source.end for source in sources(self._live, self._archive) if self._holds(source, known)}
        lost = known.keys() - held.keys()
        unworded = self._archive is not None and self._worded < self._next
        is_same = not lost and held == {name: at[1] for name, at in known.items()}
        if is_same and self._ready and not unworded:
            self.is_whole = True
            return False
        news = sum(end - (known[name][1] if name in known else 0) for name, end in held.items())
        if most is not None and (news > most or (unworded and (self._next - self._worded) << 8 > most)):
            raise Doubt("too far behind")
        self._db.execute("BEGIN IMMEDIATE")
        for name in lost:
            self._forget(name)
            del known[name]
        self._loosen(known)
        for source in sources(self._live, self._archive):
            _, position, _, tail = known.get(source.name, (0, 0, 0, 0))
            if source.fd is not None and (source.name not in known or source.end > position or tail):
                self._take(source, source.fd, position)
        if self._ready:
            touched = [*self._touched]
            for begin in range(0, len(touched), _TOUCHED):
                self._judge(touched[begin : begin + _TOUCHED])
        if not self._is_cut:
            self._finish()
        self._db.execute("UPDATE seal SET next = ?, worded = ?, ready = ?", (self._next, self._worded, self._ready))
        return True

    def is_sound(self) -> bool:
        """Return whether the live logs still hold what was taken in of them, now and before."""
        return all(small_files.holds_mark(fd, mark) for fd, mark in self._marks)

    def _holds(self, source: IndexSource, known: dict[str, list[int]]) -> bool:
        if source.name not in known:
            return source.fd is not None
        at = known[source.name][:3]
        is_held = source.fd is not None and small_files.holds_mark(source.fd, at)
        if is_held:
            self._note(source, at)
        return is_held

    def _note(self, source: IndexSource, mark: Sequence[int]) -> None:
        if source.fd is not None and source.first == LIVE:  # no log of the archive stays open
            self._marks.append((source.fd, mark))

    def _forget(self, name: str) -> None:
        """Forget a changed log: its messages have no place until they are met again, anywhere."""
        month, _, reads = name.partition(" ")
        first = LIVE if month == "live" else first_place(month)
        what = "DELETE FROM reads" if reads else "UPDATE messages SET place = NULL"
        self._db.execute(f"{what} WHERE place BETWEEN ? AND ?", (first, first | POSITION))
        self._db.execute("DELETE FROM sources WHERE name = ?", (name,))
        self._ready = 0  # any state may be another now

    def _loosen(self, known: dict[str, list[int]]) -> None:
        """Take their places from last lines without a newline: they may have become others."""
        for name, at in known.items():
            if at[3]:
                table, column = ("reads", "message") if name.endswith("reads") else ("messages", "id")
                self._touched.update(*self._db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (at[3],)))
                what = "DELETE FROM reads" if table == "reads" else "UPDATE messages SET place = NULL"
                self._db.execute(f"{what} WHERE rowid = ?", (at[3],))
        loose = "SELECT 1 FROM messages INDEXED BY moving WHERE place IS NULL LIMIT 1"  # else it reads all of them
        self._loose = self._db.execute(loose).fetchone() is not None

    def _take(self, source: IndexSource, fd: int, start: int) -> None:
        """Read a log on from a position. A last line without newline is taken in, and looked at again next time."""
        if self._left <= 0 and start < source.end:
            self._is_cut = True
            return
        end = source.end
        if end - start > self._left and (cut := boundary(fd, start + self._left)) > start:
            end = cut
        self._is_cut |= end < source.end
        if end - start > MANY:
            self._hurry()
        edge = boundary(fd, end)
        mark = small_files.mark_log(fd, edge)
        self._left -= edge - start
        lines = ((source.first | at, line) for at, line in lines_of(fd, start, end))
        last = self._take_reads(lines) if source.reads else self._take_messages(lines)
        if not small_files.holds_mark(fd, mark):
            raise Doubt("a log changed while it was read")
        self._note(source, mark)
        tail = last[1] if last[0] >= source.first | edge else 0
        if tail and source.reads:
            (tail,) = self._db.execute("SELECT rowid FROM reads WHERE message = ? AND place = ?", last[::-1]).fetchone()
        self._db.execute(
            "INSERT OR REPLACE INTO sources (name, inode, position, checksum, tail) VALUES (?, ?, ?, ?, ?)",
            (source.name, *mark, tail),
        )

    def _hurry(self) -> None:
        """Prepare for many lines: most are in our usual spelling."""
        self._facts, self._record, self._fields = line_facts.hurried()
        self._folded = quick_folding()

    def _take_reads(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        """Return the place of the last record, and the number of its message."""
        rows, last = self._new["reads"], (NEVER, 0)
        for place, line in lines:
            found = self._record(line)
            if found is None:
                continue
            message = number_of(found[0])
            rows.append((message, place, self._number(found[1]), found[2]))
            last = place, message
            self._touched.add(message)
            if len(rows) * 100 > BATCH:
                self._flush()
        self._flush()
        return last

    def _take_messages(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        """Return the place and the number of the last message."""
        last, size = (NEVER, 0), 0
        for place, line in lines:
            facts = self._facts(line)
            if facts is None:
                continue
            number = number_of(line)
            last = place, self._moved(place, number) or self._add(facts, place, number)
            self._touched.add(number_of_id(facts[0]))
            size += len(line)
            if size > BATCH:
                self._flush()
                size = 0
        self._flush()
        return last

    def _moved(self, place: int, number: int) -> int:
        """Return the number of an entry that had lost its place and got this one; 0 if there was none."""
        if not self._loose:
            return 0
        found = self._db.execute(
            "SELECT n FROM messages WHERE place IS NULL AND line = ? LIMIT 1", (number,)
        ).fetchone()
        if found is None:
            return 0
        n: int = found[0]
        self._db.execute("UPDATE messages SET place = ? WHERE n = ?", (place, n))
        return n

    def _add(self, facts: Facts, place: int, number: int) -> int:
        message_id, sender, at, thread, word, hours, asks = facts
        n = self._next
        self._next += 1
        if thread is not None:
            self._new["terms"].append((term_of(PARENT, thread), at, n))
        address = None if word is None else self._address(word, hours)
        row = n, at, place, number, number_of_id(message_id), start_of(message_id), self._number(sender), address, asks
        self._new["messages"].append((*row, None))
        return n

    def _number(self, name: bytes | str) -> int:
        """Return the number of a name that many lines have."""
        found = self._numbers.get(name)
        if found is None:
            if len(self._numbers) >= _MOST_NUMBERS:
                self._numbers.clear()
            found = self._numbers[name] = number_of_id(name) if isinstance(name, str) else number_of(name)
        return found

    def _address(self, word: str, hours: int) -> int:
        found = self._addresses.get((word, hours))
        if found is None:
            self._db.execute("INSERT OR IGNORE INTO addresses (word, hours) VALUES (?, ?)", (word, hours))
            query = "SELECT address FROM addresses WHERE word = ? AND hours = ?"
            number: int = self._db.execute(query, (word, hours)).fetchone()[0]
            self._addresses[word, hours] = found = number
        return found

    def _finish(self) -> None:
        """Make what follows from all lines, once all were taken in; then go on with the words of messages."""
        if self._loose and self._archive is not None:
            self._db.execute("DELETE FROM messages WHERE place IS NULL")
        for index in _INDEXES if self._archive is None else (*_INDEXES, *_SEARCHED):
            self._db.execute(f"CREATE {index.format('IF NOT EXISTS')}")
        if not self._ready:
            self._judge(None)
            self._ready = 1
        if self._archive is not None:
            self._add_words(self._archive)
        self.is_whole = not self._is_cut

    def _judge(self, ids: Sequence[int] | None) -> None:
        """Set the state of the messages with these ids (None: of all), and mark the records of those that ask."""
        some = "" if ids is None else f" IN ({','.join('?' * len(ids))})"
        one = f"id{some} AND " if some else ""
        asking = f"SELECT id FROM messages WHERE {one}asks"
        self._db.execute(f"UPDATE reads SET kind = kind | {OF_ASK} WHERE message IN ({asking})", ids or ())
        self._db.execute(f"UPDATE messages SET state = {_STATE} WHERE {one}place >= {LIVE}", ids or ())

    def _add_words(self, archive: Archive) -> None:
        """Take in the words and the parties of the messages that have none, up to the end of the slice."""
        if (self._next - self._worded) << 8 > MANY:
            self._hurry()
        rows = self._db.execute("SELECT n, timestamp, place FROM messages WHERE n >= ? ORDER BY n", (self._worded,))
        lines, size = line_facts.Lines(self._live, archive), 0
        try:
            for n, at, place in rows.fetchall():
                line = lines.at(place)
                fields = self._fields(line)
                if fields is None:
                    raise Doubt("the line is another")
                _, sender, recipients, _, subject, content, _ = fields
                terms = {term_of(PARTY, name) for name in (sender, *recipients)}
                self._new["terms"] += [(term, at, n) for term in terms]
                self._new[_WORDS].append((n, self._folded(f"{subject or ''} {content} {sender}")))
                size += len(line)
                self._left -= len(line)
                if size > BATCH:
                    self._flush()
                    size = 0
                if self._left <= 0:
                    self._worded, self._is_cut = n + 1, True
                    break
            else:
                self._worded = self._next
        finally:
            lines.close()
        self._flush()

    def _flush(self) -> None:
        """Insert the new rows, in an order that a B-tree likes."""
        for table, rows in self._new.items():
            if rows:
                rows.sort()
                marks = ", ".join("?" * len(rows[0]))
                self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
                rows.clear()
