"""A search index over live and archived mail: derived, in SQLite (FTS5), never the truth and never needed for polling.

Belongs here: the index file, catching it up with the logs, and finding candidates in it. Must not know who may
see what: a candidate is a *place* (which log, where in it) whose line is read back and decoded by the codec, and the
caller judges the message. So the index may offer too much, and must not hold back; ``Library`` scans where none can
be had (no SQLite, no FTS5, a directory that cannot be written, a lock that is not to be had).

**Why its answers can be trusted.** One process at a time uses the file, under ``index.lock``. Every commit puts a
random stamp into it and sets the file's time to that stamp, decades in the past: whoever else writes into the file
moves its time to now, and so does one of ours that was killed. A file whose time is not its stamp is built anew, as is
one of another version, one SQLite complains about, and one that names a line which is no longer the one it saw.
Each log is known by its mark (``cache``); where a mark does not hold, that log is read again from its start, and a
line seen before, the steward having moved it, keeps its entry and gets its new place.
"""

from __future__ import annotations

import os
import stat
import zlib
from heapq import merge

from ..core import codec
from ..core.claims import Reads
from ..core.records import BadLine, Record
from ..core.words import folded
from ..errors import MailboxError
from . import cache
from .lock import FileLock
from .log import boundary, line_at, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from ..core.records import Message, Read
    from .archive import Archive
    from .logs import Logs, OpenLogs

    T = TypeVar("T")
    Row = tuple[int, int, int]
    """Of a candidate: timestamp, place, checksum of its line."""
else:
    try:
        import _sqlite3 as sqlite3  # the C part: what ``sqlite3`` adds is ``datetime``, at half the cost of a query
    except ImportError:  # an interpreter built without it
        sqlite3 = None

FILE, LOCK = "index.sqlite", "index.lock"
VERSION = 1
"""Changes with the schema, with ``words.folded`` and with ``_term``; a file of another version is built anew."""
BATCH = 4 << 20
"""Bytes of log lines taken in one go: some thousand messages, and no more memory however long they are."""
CACHE_KIB = 32 << 10
HASH_SIZE = 16 << 20
"""Bytes FTS5 may gather before it writes a segment: with its default of 1 MiB building takes half as long again."""
MAX_PHRASES = 32
"""Phrases of a query that narrow; beyond them the caller's judgement does it alone."""

# -- the file ---------------------------------------------------------------------------------------------------------

_SCHEMA = f"""
BEGIN;
CREATE TABLE seal (stamp INTEGER, next INTEGER);
INSERT INTO seal VALUES (0, 1);
CREATE TABLE sources (name TEXT PRIMARY KEY, inode INTEGER, position INTEGER, checksum INTEGER, tail INTEGER);
CREATE TABLE messages (n INTEGER PRIMARY KEY, timestamp INTEGER, place INTEGER, checksum INTEGER);
CREATE TABLE terms (term INTEGER, timestamp INTEGER, n INTEGER, PRIMARY KEY (term, timestamp, n)) WITHOUT ROWID;
CREATE TABLE reads (message INTEGER, place INTEGER, PRIMARY KEY (message, place)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (subject, content, sender, content='', columnsize=0, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('hashsize', {HASH_SIZE});
PRAGMA user_version = {VERSION};
COMMIT;
"""
_WORDS = "words (rowid, subject, content, sender)"
# Entries of ``terms`` and ``words`` whose message is gone stay, and lead nowhere: an ``n`` is never used again.


class Doubt(Exception):
    """The index is not what the logs say, or not what we left."""


class Index:
    """The index file of a mailbox."""

    def __init__(self, logs: Logs, archive: Archive) -> None:
        self._logs = logs
        self._archive = archive
        self._path = logs.cache(FILE)

    def ask(self, question: Callable[[View], T]) -> T | None:
        """The answer from an index caught up with the logs, mended if need be; None where none can be had."""
        if sqlite3 is None or not self._logs.derives:
            return None
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            lock = FileLock(self._logs.cache(LOCK), self._logs.wait).__enter__()
        except (OSError, MailboxError):
            return None
        try:
            with self._logs.open() as live:
                for fresh in (False, True):
                    try:
                        return self._answer(question, live, fresh)
                    except (sqlite3.Error, OSError, Doubt):
                        continue
                    except (ValueError, TypeError, ArithmeticError, LookupError):
                        # Of a damaged file anything may come: SQLite quotes a schema that is not even text. Of a fresh
                        # one it would be a defect of ours.
                        if fresh:
                            raise
            return None
        finally:
            lock.__exit__(None, None, None)

    def _answer(self, question: Callable[[View], T], live: OpenLogs, fresh: bool) -> T:
        fd = self._file(fresh)
        try:
            db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            try:
                self._prepare(db, fd, fresh)
                view = View(db, live, self._archive)
                if view.catch_up():
                    _seal(db, fd)
                return question(view)
            finally:
                db.close()
        finally:
            os.close(fd)

    def _file(self, fresh: bool) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if not fresh:
            return os.open(self._path, flags)
        for suffix in ("", "-journal", "-wal", "-shm"):
            try:
                os.unlink(self._path + suffix)
            except FileNotFoundError:
                pass
        return os.open(self._path, flags | os.O_CREAT | os.O_EXCL, 0o600)

    def _prepare(self, db: sqlite3.Connection, fd: int, fresh: bool) -> None:
        """Look at the seal *after* the first read: a journal someone left there would be played back by it."""
        for pragma in ("synchronous=OFF", "temp_store=MEMORY", f"cache_size=-{CACHE_KIB}", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("PRAGMA journal_mode=MEMORY")  # a writer that is killed leaves a file without its seal
        if fresh:
            db.executescript(_SCHEMA)
            return
        sealed = db.execute("PRAGMA user_version").fetchone() == (VERSION,) and db.execute("SELECT stamp FROM seal")
        here, there = os.fstat(fd), os.stat(self._path)
        if not sealed or sealed.fetchone() != (here.st_mtime_ns,) or not stat.S_ISREG(here.st_mode):
            raise Doubt("not as we left it")
        if (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev):
            raise Doubt("replaced meanwhile")


def _seal(db: sqlite3.Connection, fd: int) -> None:
    """Commit, and mark the file as ours: an even second, which every file system can hold, within 1970 to 1987."""
    stamp = (int.from_bytes(os.urandom(4), "big") >> 4) * 2_000_000_000
    db.execute("UPDATE seal SET stamp = ?", (stamp,))
    db.execute("COMMIT")
    os.utime(fd, ns=(stamp, stamp))


# -- places and terms -------------------------------------------------------------------------------------------------

_BITS = 43
_POSITION = (1 << _BITS) - 1
_LIVE = (1 << 20) - 1 << _BITS
"""A place is one number, the log's in its upper bits: archives in the order of their months, then the live log."""
_NEVER, _EVER = -(1 << 62), 1 << 62
_ID, _PARENT, _PARTY, _EVERYONE = range(4)


def _first_place(month: str) -> int:
    digits = month[:4] + month[5:]
    if not (digits.isascii() and digits.isdigit()):
        raise Doubt(f"{month} is no month")
    return int(digits) << _BITS


def _rank(place: int) -> tuple[bool, int]:
    """Of records with the same id the live one counts, else the first written; the lowest rank wins."""
    return place < _LIVE, place


def _term(kind: int, text: str = "") -> int:
    """What a message can be looked up by, as a number; several texts may share one."""
    return kind << 56 | zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _id_term(message_id: str, pad: bytes = b"\0") -> int:
    """The beginning of an id, so that ids with a common prefix stand together; case does not count."""
    return int.from_bytes(message_id.casefold().encode("utf-8", "surrogatepass")[:7].ljust(7, pad), "big")


def _read_about(line: bytes) -> bytes | None:
    """The id a reads line is about, if it is one; our own spelling without decoding it (a bad line may slip in)."""
    if line.startswith(b'{"message_id":"') and line.count(b'"message_id"') == 1 and b"\\" not in line:
        return line[15:].partition(b'"')[0]
    record = codec.read(line)
    return None if isinstance(record, BadLine) else record.message_id.encode()


def _common(these: Iterable[Row], those: Iterator[Row]) -> Iterator[Row]:
    """The rows that stand in both, each of which is newest first."""
    other = next(those, None)
    for row in these:
        while other is not None and other > row:
            other = next(those, None)
        if row == other:
            yield row


class Source(Record):
    """One log the index is made of: its name there, its first place, the open file and where to stop in it."""

    name: str
    first: int
    reads: bool
    fd: int | None
    end: int


class View:
    """The index, opened, beside the logs it speaks of."""

    def __init__(self, db: sqlite3.Connection, live: OpenLogs, archive: Archive) -> None:
        self._db = db
        self._live = live
        self._archive = archive
        self._loose = False
        self._next: int = db.execute("SELECT next FROM seal").fetchone()[0]
        self._new: dict[str, list[Any]] = {table: [] for table in ("messages", "terms", _WORDS)}

    # -- catching up --------------------------------------------------------------------------------------------------

    def sources(self) -> Iterator[Source]:
        """Every log. The live ones were opened before the archive is looked at: the steward moves mail that way."""
        for month in self._archive.months():
            first = _first_place(month)
            for name, log in ((month, self._archive.log(month)), (f"{month} reads", self._archive.reads_log(month))):
                fd = log.open()
                try:
                    end = 0 if fd is None else os.fstat(fd).st_size
                    yield Source(name=name, first=first, reads=name != month, fd=fd, end=end)
                finally:
                    if fd is not None:
                        os.close(fd)
        live = self._live
        yield Source(name="live", first=_LIVE, reads=False, fd=live.messages, end=live.messages_end)
        yield Source(name="live reads", first=_LIVE, reads=True, fd=live.reads, end=live.reads_end)

    def catch_up(self) -> bool:
        """Take in what is new and forget what no longer holds; True if that leaves a transaction to be committed."""
        known = {name: at for name, *at in self._db.execute("SELECT * FROM sources")}
        held = {source.name: source.end for source in self.sources() if self._holds(source, known)}
        lost = known.keys() - held.keys()
        if not lost and held == {name: at[1] for name, at in known.items()}:
            return False
        self._db.execute("BEGIN IMMEDIATE")
        for name in lost:
            self._forget(name)
            del known[name]
        tails = [(at[3],) for at in known.values() if at[3]]
        self._db.executemany("UPDATE messages SET place = NULL WHERE n = ?", tails)
        self._loose = bool(lost or tails)
        for source in self.sources():
            _, position, _, tail = known.get(source.name, (0, 0, 0, 0))
            if source.fd is not None and (source.name not in known or source.end > position or tail):
                self._take(source, source.fd, position)
        if self._loose:
            self._db.execute("DELETE FROM messages WHERE place IS NULL")
        self._db.execute("UPDATE seal SET next = ?", (self._next,))
        return True

    def _holds(self, source: Source, known: dict[str, list[int]]) -> bool:
        if source.name not in known:
            return source.fd is not None
        return source.fd is not None and cache.holds(source.fd, known[source.name][:3])

    def _forget(self, name: str) -> None:
        """A log is not what it was: its messages hang loose until they are met again, at whatever place."""
        month, _, reads = name.partition(" ")
        first = _LIVE if month == "live" else _first_place(month)
        what = "DELETE FROM reads" if reads else "UPDATE messages SET place = NULL"
        self._db.execute(f"{what} WHERE place BETWEEN ? AND ?", (first, first | _POSITION))
        self._db.execute("DELETE FROM sources WHERE name = ?", (name,))

    def _take(self, source: Source, fd: int, start: int) -> None:
        """Read a log on from a position. A last line without newline is taken in, and looked at again next time."""
        edge = boundary(fd, source.end)
        lines = ((source.first | at, line) for at, line in lines_of(fd, start, source.end))
        last = self._take_reads(lines) if source.reads else self._take_messages(lines)
        tail = last[1] if last[0] >= source.first | edge else 0
        self._db.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)", (source.name, *cache.mark(fd, edge), tail)
        )

    def _take_reads(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        rows = []
        for place, line in lines:
            about = _read_about(line)
            if about is not None:
                rows.append((zlib.crc32(about), place))
            if len(rows) * 100 > BATCH:
                self._store("reads", rows)
        self._store("reads", rows)
        return _NEVER, 0  # a read that is met again is the same row

    def _take_messages(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        """Returns the place and the number of the last message."""
        last, size = (_NEVER, 0), 0
        for place, line in lines:
            message = codec.message(line)
            if isinstance(message, BadLine):
                continue
            checksum = zlib.crc32(line)
            last = place, self._moved(message, place, checksum) or self._add(message, place, checksum)
            size += len(line)
            if size > BATCH:
                self._flush()
                size = 0
        self._flush()
        return last

    def _moved(self, message: Message, place: int, checksum: int) -> int:
        """The number of an entry that hung loose and has its place again; 0 if there was none."""
        if not self._loose:
            return 0
        found = self._db.execute(
            "SELECT m.n FROM terms t CROSS JOIN messages m ON m.n = t.n"
            " WHERE t.term = ? AND m.place IS NULL AND m.checksum = ? LIMIT 1",
            (_id_term(message.id), checksum),
        ).fetchone()
        if found is None:
            return 0
        n: int = found[0]
        self._db.execute("UPDATE messages SET place = ? WHERE n = ?", (place, n))
        return n

    def _add(self, message: Message, place: int, checksum: int) -> int:
        n, at = self._next, message.timestamp
        self._next += 1
        terms = {_id_term(message.id), _term(_EVERYONE), _term(_PARTY, message.sender)}
        terms.update([_term(_PARTY, address) for address in message.recipients])
        if message.thread is not None:
            terms.add(_term(_PARENT, message.thread))
        self._new["messages"].append((n, at, place, checksum))
        self._new["terms"] += [(term, at, n) for term in terms]
        self._new[_WORDS].append((n, folded(message.subject or ""), folded(message.content), folded(message.sender)))
        return n

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

    # -- candidates, newest first -------------------------------------------------------------------------------------

    def with_words(self, wanted: Sequence[str], until: int | None = None) -> Iterator[Row]:
        """What may match all phrases. They are words and spaces alone: no quote ends them, no operator stands out."""
        return self._db.execute(
            "SELECT m.timestamp, m.place, m.checksum FROM words CROSS JOIN messages m ON m.n = words.rowid"
            " WHERE words MATCH ? AND m.timestamp <= ? ORDER BY m.timestamp DESC, m.place DESC",
            (" AND ".join(f'"{phrase}"' for phrase in wanted[:MAX_PHRASES]), _EVER if until is None else until),
        )

    def between(self, groups: Iterable[Iterable[str]], since: int | None, until: int | None = None) -> Iterator[Row]:
        """What may be from or to one of the parties in each group (no group: everything), between two instants in ms,
        both included."""
        rows: Iterator[Row] | None = None
        for parties in groups:
            terms = {_term(_PARTY, party) for party in parties}
            group = merge(*(self._listed(term, since, until) for term in terms), reverse=True)
            rows = group if rows is None else _common(rows, group)
        return self._listed(_term(_EVERYONE), since, until) if rows is None else rows

    def _listed(self, term: int, since: int | None = None, until: int | None = None) -> Iterator[Row]:
        return self._db.execute(
            "SELECT t.timestamp, m.place, m.checksum FROM terms t CROSS JOIN messages m ON m.n = t.n"
            " WHERE t.term = ? AND t.timestamp BETWEEN ? AND ? ORDER BY t.timestamp DESC, m.place DESC",
            (term, _NEVER if since is None else since, _EVER if until is None else until),
        )

    # -- answers ------------------------------------------------------------------------------------------------------

    def newest(
        self, candidates: Iterable[Row], wanted: Callable[[Message], bool], limit: int
    ) -> tuple[list[Message], Reads]:
        """The newest ``limit`` (0: all) of the candidates that are wanted, newest last, with their reads."""
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
        return found, self._reads_of(found)

    def ids(self, wanted: str, *, prefix: bool) -> set[str]:
        """The ids that are, else (if ``prefix``) those that begin with, what is wanted; case does not count."""
        rows = self._db.execute(
            "SELECT m.timestamp, m.place, m.checksum FROM terms t CROSS JOIN messages m ON m.n = t.n"
            " WHERE t.term BETWEEN ? AND ?",
            (_id_term(wanted), _id_term(wanted, b"\xff" if prefix else b"\0")),
        )
        wanted = wanted.casefold()
        found = {self._message(row).id for row in rows}
        return {i for i in found if i.casefold() == wanted} or {
            i for i in found if prefix and i.casefold().startswith(wanted)
        }

    def related(self, message_id: str) -> tuple[dict[str, Message], Reads]:
        """Every message connected to one by replies, in order, with the reads; what the thread is of them, the core
        knows."""
        found: dict[str, tuple[Row, Message]] = {}
        pending = [message_id]
        while pending:
            known = self._standing(wanted := pending.pop())
            if known is None or wanted in found:
                continue
            found[wanted] = known
            pending += [m.id for m in map(self._message, self._listed(_term(_PARENT, wanted))) if m.thread == wanted]
            if known[1].thread is not None:
                pending.append(known[1].thread)
        ordered = [message for _, message in sorted(found.values(), key=lambda pair: pair[0])]
        return {message.id: message for message in ordered}, self._reads_of(ordered)

    def message(self, message_id: str) -> Message | None:
        """The message of an id; None where there is none."""
        known = self._standing(message_id)
        return known[1] if known else None

    def _counts(self, row: Row, message: Message) -> bool:
        """Is it of its twins the one that counts? (That of ``_standing``, where one row in a million has company.)"""
        others = [other for other in self._listed(_id_term(message.id)) if _rank(other[1]) < _rank(row[1])]
        return all(self._message(other).id != message.id for other in others)

    def _standing(self, message_id: str) -> tuple[Row, Message] | None:
        """The message of an id: of twins the one that counts."""
        rows = sorted(self._listed(_id_term(message_id)), key=lambda row: _rank(row[1]))
        known = ((row, self._message(row)) for row in rows)
        return next(((row, message) for row, message in known if message.id == message_id), None)

    def _reads_of(self, messages: Iterable[Message]) -> Reads:
        """The reads of the messages, folded in the order of their logs."""
        return Reads(self.records(messages))

    def records(self, messages: Iterable[Message]) -> Iterator[Read]:
        """What was recorded about the messages, of each in the order of the logs."""
        for message in messages:
            key = zlib.crc32(message.id.encode())
            places = self._db.execute("SELECT place FROM reads WHERE message = ? ORDER BY place", (key,))
            for record in [codec.read(self._line(place, True)) for (place,) in places]:
                if not isinstance(record, BadLine) and record.message_id == message.id:
                    yield record

    def replies(self, message_id: str) -> int:
        """How many messages answer this one directly (twins and texts that share a number count)."""
        query = "SELECT count(*) FROM terms WHERE term = ?"
        found: int = self._db.execute(query, (_term(_PARENT, message_id),)).fetchone()[0]
        return found

    # -- reading back -------------------------------------------------------------------------------------------------

    def _message(self, row: Row) -> Message:
        line = self._line(row[1], False)
        message = codec.message(line)
        if zlib.crc32(line) != row[2] or isinstance(message, BadLine):
            raise Doubt("the line is another")
        return message

    def _line(self, place: int, reads: bool) -> bytes:
        if place >= _LIVE:
            fd = self._live.reads if reads else self._live.messages
            return b"" if fd is None else line_at(fd, place & _POSITION)
        month = f"{(place >> _BITS) // 100:04}-{(place >> _BITS) % 100:02}"
        fd = (self._archive.reads_log(month) if reads else self._archive.log(month)).open()
        if fd is None:
            raise Doubt(f"the log of {month} is gone")
        try:
            return line_at(fd, place & _POSITION)
        finally:
            os.close(fd)
