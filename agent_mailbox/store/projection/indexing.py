"""Catching the search index up with the logs: new lines go in, stale entries go out.

Belongs here: the logs there are, how far each was taken in (its mark, see ``cache``), and the rows of a message. Must
not know the questions to the index (``lookup``), nor who uses the file when (``index``).
"""

from __future__ import annotations

from ...core import codec
from ...core.records import BadLine, Record
from ...core.words import folded, quick_folding
from ..files import cache, system
from ..files.lines import boundary, lines_of
from .index_keys import (
    LIVE,
    NEVER,
    PARENT,
    PARTY,
    POSITION,
    Doubt,
    first_place,
    key_of,
    number_of,
    term_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ...core.exact_lines import Fields
    from ..archive.archive import Archive
    from ..log.logs import OpenLogs

BATCH = 4 << 20
"""Bytes of log lines taken in one go: some thousand messages, and no more memory however long they are."""
MANY = 1 << 20
"""Bytes of a log from which reading our usual spelling by itself (``exact_lines``) is worth its import."""
_WORDS = "words (rowid, text)"
_INDEXES = (
    "INDEX {} moving ON messages (line) WHERE place IS NULL",
    "INDEX {} times ON messages (timestamp, place)",
    "INDEX {} keys ON messages (key)",
    "UNIQUE INDEX {} about ON reads (message, place)",
)
"""Made behind the first intake: sorting all entries at once takes a fraction of inserting each at its place."""
_MOST_TERMS = 1 << 14
# Orphaned entries of ``terms`` and ``words`` stay and lead nowhere: an ``n`` is never used again.


class IndexSource(Record):
    """One log the index is made of: its name there, its first place, the open file and where to stop in it."""

    name: str
    first: int
    reads: bool
    fd: int | None
    end: int


def sources(live: OpenLogs, archive: Archive) -> Iterator[IndexSource]:
    """Yield every log. The live ones were opened before the archive is looked at: the steward moves mail that way."""
    for month in archive.months():
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
    """One run that catches the open index up with the logs."""

    def __init__(self, db: sqlite3.Connection, live: OpenLogs, archive: Archive) -> None:
        self._db = db
        self._live = live
        self._archive = archive
        self._loose = False
        self._next: int = db.execute("SELECT next FROM seal").fetchone()[0]
        self._new: dict[str, list[Any]] = {table: [] for table in ("messages", "terms", _WORDS)}
        self._parties: dict[str, int] = {}
        self._folded: Callable[[str], str] = folded
        self._fields: Callable[[bytes], Fields | None] = _fields

    def catch_up(self, most: int | None = None) -> bool:
        """Take in new lines and forget stale ones; return True if that leaves a transaction to commit.

        Raises ``Doubt`` for more than ``most`` bytes of new lines.
        """
        known = {name: at for name, *at in self._db.execute("SELECT * FROM sources")}
        held = {source.name: source.end for source in sources(self._live, self._archive) if self._holds(source, known)}
        lost = known.keys() - held.keys()
        if not lost and held == {name: at[1] for name, at in known.items()}:
            return False
        if most is not None and sum(held.values()) - sum(known[name][1] for name in held if name in known) > most:
            raise Doubt("too far behind")
        self._db.execute("BEGIN IMMEDIATE")
        for name in lost:
            self._forget(name)
            del known[name]
        tails = [(at[3],) for at in known.values() if at[3]]
        self._db.executemany("UPDATE messages SET place = NULL WHERE n = ?", tails)
        self._loose = bool(lost or tails)
        for source in sources(self._live, self._archive):
            _, position, _, tail = known.get(source.name, (0, 0, 0, 0))
            if source.fd is not None and (source.name not in known or source.end > position or tail):
                self._take(source, source.fd, position)
        if self._loose:
            self._db.execute("DELETE FROM messages WHERE place IS NULL")
        for index in _INDEXES:
            self._db.execute(f"CREATE {index.format('IF NOT EXISTS')}")
        self._db.execute("UPDATE seal SET next = ?", (self._next,))
        return True

    def _holds(self, source: IndexSource, known: dict[str, list[int]]) -> bool:
        if source.name not in known:
            return source.fd is not None
        return source.fd is not None and cache.holds(source.fd, known[source.name][:3])

    def _forget(self, name: str) -> None:
        """Forget a changed log: its messages have no place until they are met again, anywhere."""
        month, _, reads = name.partition(" ")
        first = LIVE if month == "live" else first_place(month)
        what = "DELETE FROM reads" if reads else "UPDATE messages SET place = NULL"
        self._db.execute(f"{what} WHERE place BETWEEN ? AND ?", (first, first | POSITION))
        self._db.execute("DELETE FROM sources WHERE name = ?", (name,))

    def _take(self, source: IndexSource, fd: int, start: int) -> None:
        """Read a log on from a position. A last line without newline is taken in, and looked at again next time."""
        if source.end - start > MANY:
            self._hurry()
        edge = boundary(fd, source.end)
        lines = ((source.first | at, line) for at, line in lines_of(fd, start, source.end))
        last = self._take_reads(lines) if source.reads else self._take_messages(lines)
        tail = last[1] if last[0] >= source.first | edge else 0
        self._db.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)", (source.name, *cache.mark(fd, edge), tail)
        )

    def _hurry(self) -> None:
        """Prepare for many lines: most are in our usual spelling."""
        from ...core.exact_lines import ExactLines

        usual = ExactLines().fields
        self._fields = lambda line: usual(line) or _fields(line)
        self._folded = quick_folding()

    def _take_reads(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        rows = []
        for place, line in lines:
            about = _read_about(line)
            if about is not None:
                rows.append((number_of(about), place))
            if len(rows) * 100 > BATCH:
                self._store("reads", rows)
        self._store("reads", rows)
        return NEVER, 0  # a read that is met again is the same row

    def _take_messages(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        """Return the place and the number of the last message."""
        last, size = (NEVER, 0), 0
        for place, line in lines:
            fields = self._fields(line)
            if fields is None:
                continue
            number = number_of(line)
            last = place, self._moved(place, number) or self._add(fields, place, number)
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

    def _add(self, fields: Fields, place: int, number: int) -> int:
        message_id, sender, recipients, at, subject, content, thread = fields
        n = self._next
        self._next += 1
        terms = {self._party(sender), *map(self._party, recipients)}
        if thread is not None:
            terms.add(term_of(PARENT, thread))
        self._new["messages"].append((n, at, place, number, key_of(message_id)))
        self._new["terms"] += [(term, at, n) for term in terms]
        self._new[_WORDS].append((n, self._folded(f"{subject or ''} {content} {sender}")))
        return n

    def _party(self, name: str) -> int:
        found = self._parties.get(name)
        if found is None:
            if len(self._parties) >= _MOST_TERMS:
                self._parties.clear()
            found = self._parties[name] = term_of(PARTY, name)
        return found

    def _flush(self) -> None:
        for table, rows in self._new.items():
            self._store(table, rows)

    def _store(self, table: str, rows: list[Any]) -> None:
        """Insert the rows, in an order that a B-tree likes, and empty the list."""
        if rows:
            rows.sort()
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
            rows.clear()


def _fields(line: bytes) -> Fields | None:
    """Return the fields of a message in any spelling; None if the line is none."""
    m = codec.message(line)
    if isinstance(m, BadLine):
        return None
    return m.id, m.sender, m.recipients, m.timestamp, m.subject, m.content, m.thread


def _read_about(line: bytes) -> bytes | None:
    """Return the id that a reads line is about, if it is one; our own spelling is not decoded (a bad line may pass)."""
    if line.startswith(b'{"message_id":"') and line.count(b'"message_id"') == 1 and b"\\" not in line:
        return line[15:].partition(b'"')[0]
    record = codec.read(line)
    return None if isinstance(record, BadLine) else record.message_id.encode()
