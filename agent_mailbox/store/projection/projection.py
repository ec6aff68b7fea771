"""The projection's file: a derived database, never the truth, unused by polling.

Belongs here: the file, its tables, and why it may be trusted. ``intake`` catches it up with the logs. It does not
know who may see a message: a question gets *places* (a log and a position, ``index_keys``). A line is read back and
decoded by the codec, and the core judges the message. So a table may offer too much, but must never hold back. Without
the projection everything is read: no SQLite, no FTS5, no writable directory, no lock.

**Why its answers can be trusted.** One process at a time uses the file, under its lock. Every commit writes a random
stamp into it and sets the file's time to that stamp, decades in the past. A foreign write moves the time to now, and so
does a killed writer of ours. A file is built again if its time or its version is another, or if SQLite
complains about it. So is one that names a changed line. It is never synced, so one that is older than the machine's
start is built again, too.

Each log is known by its mark (``cache``). If a mark does not hold, that log is read again from its start. A line that
the steward moved keeps its entry and gets its new place. Many new lines are taken in by slices: each is a commit, and
others may use the file in between.
"""

from __future__ import annotations

from ...errors import Busy, MailboxError
from ..files import system
from ..locks.lock import FileLock
from .index_keys import LIVE, Doubt
from .intake import Intake
from .sqlite import connect, sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..archive.archive import Archive
    from ..log.logs import Logs, OpenLogs
    from .sqlite import Connection

    T = TypeVar("T")

FILE, LOCK = "projection.sqlite", "projection.lock"
VERSION = 4
"""Changes with the schema, with ``words.folded`` and with ``index_keys``; a file of another version is built again."""
CACHE_KIB = 32 << 10
HASH_SIZE = 16 << 20
"""Bytes FTS5 may gather before it writes a segment; its default of 1 MiB makes building take half as long again."""
PAUSE = 0.002
"""Seconds between two slices, in which another process takes the lock."""

_SCHEMA = f"""
BEGIN;
CREATE TABLE seal (stamp INTEGER, next INTEGER, worded INTEGER, ready INTEGER);
INSERT INTO seal VALUES (0, 1, 1, 0);
CREATE TABLE sources (name TEXT PRIMARY KEY, inode INTEGER, position INTEGER, checksum INTEGER, tail INTEGER);
CREATE TABLE addresses (address INTEGER PRIMARY KEY, word TEXT, hours INTEGER, UNIQUE (word, hours));
CREATE TABLE messages (n INTEGER PRIMARY KEY, timestamp INTEGER, place INTEGER, line INTEGER, id INTEGER, start BLOB,
  sender INTEGER, address INTEGER, asks INTEGER, state INTEGER);
CREATE INDEX moving ON messages (line) WHERE place IS NULL;
CREATE INDEX asked ON messages (sender) WHERE asks AND place >= {LIVE};
CREATE TABLE terms (term INTEGER, timestamp INTEGER, n INTEGER, PRIMARY KEY (term, timestamp, n)) WITHOUT ROWID;
CREATE TABLE reads (message INTEGER, place INTEGER, reader INTEGER, kind INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('hashsize', {HASH_SIZE});
PRAGMA user_version = {VERSION};
COMMIT;
"""


class Projection:
    """The database file of a mailbox; ``archive``: also of what is archived, and with the words of each message."""

    def __init__(self, logs: Logs, archive: Archive | None = None) -> None:
        self._logs = logs
        self._archive = archive
        self._path = logs.cache(FILE)

    def ask(
        self, question: Callable[[Connection, OpenLogs], T], *, patience: float | None = None, most: int | None = None
    ) -> T | None:
        """Return the answer from tables caught up with the logs, built again if need be; None if there are none.

        ``patience``: the seconds to wait for another process; None: as for any lock. ``most``: None comes, too, if more
        bytes of logs than that would have to be taken in, or the file built again.
        """
        if sqlite3 is None or not self._logs.derives:
            return None
        fresh = was_fresh = False
        while True:
            try:
                lock = self._locked(self._logs.wait if patience is None else patience)
            except (OSError, MailboxError):
                return None
            with lock:
                try:
                    with self._logs.open() as live:
                        found = self._turn(question, live, fresh, most)
                    if found is not None:
                        return found[0]
                    fresh = False
                except (sqlite3.Error, OSError, Doubt):
                    if was_fresh or most is not None:
                        return None
                    fresh = was_fresh = True
                except (ValueError, TypeError, ArithmeticError, LookupError):
                    # A damaged file may raise anything: SQLite quotes even a schema that is no text. With a fresh file
                    # it is our defect.
                    if was_fresh:
                        raise
                    if most is not None:
                        return None
                    fresh = was_fresh = True
            system.sleep(PAUSE)

    def _locked(self, patience: float) -> FileLock:
        path = self._logs.cache(LOCK)
        try:
            return FileLock(path, patience).take()
        except Busy:
            raise
        except MailboxError:  # the first of all derived files
            system.make_directory(system.dirname(path))
            return FileLock(path, patience).take()

    def _turn(
        self, question: Callable[[Connection, OpenLogs], T], live: OpenLogs, fresh: bool, most: int | None
    ) -> tuple[T] | None:
        """Take in a slice of what is new; return the answer if nothing is left of it."""
        fd = self._file(fresh)
        try:
            db = connect(self._path)
            try:
                self._prepare(db, fd, fresh)
                intake = Intake(db, live, self._archive)
                if intake.catch_up(most):
                    _seal(db, fd)
                return (question(db, live),) if intake.is_whole else None
            finally:
                db.close()
        finally:
            system.close(fd)

    def _file(self, fresh: bool) -> int:
        flags = system.O_RDWR | system.O_NOFOLLOW | system.O_NONBLOCK | system.O_CLOEXEC
        if not fresh:
            return system.open(self._path, flags)
        for suffix in ("", "-journal", "-wal", "-shm"):
            try:
                system.unlink(self._path + suffix)
            except FileNotFoundError:
                pass
        return system.open(self._path, flags | system.O_CREAT | system.O_EXCL, 0o600)

    def _prepare(self, db: Connection, fd: int, fresh: bool) -> None:
        """Check the seal *after* the first read, which would play back a journal that another program left."""
        for pragma in ("synchronous=OFF", f"cache_size=-{CACHE_KIB}", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        # A killed writer leaves a file without its seal; a failed one begins again.
        db.execute(f"PRAGMA journal_mode={'OFF' if fresh else 'MEMORY'}")
        if fresh:
            db.executescript(_SCHEMA)
            return
        sealed = db.execute("PRAGMA user_version").fetchone() == (VERSION,) and db.execute("SELECT stamp FROM seal")
        here, there = system.fstat(fd), system.stat(self._path)
        if not sealed or sealed.fetchone() != (here.st_mtime_ns,) or here.st_mode & system.S_IFMT != system.S_IFREG:
            raise Doubt("not as we left it")
        if here.st_ctime_ns < system.booted():
            raise Doubt("a power failure may have torn it")
        if (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev):
            raise Doubt("replaced meanwhile")


def _seal(db: Connection, fd: int) -> None:
    """Commit, and mark the file as ours: an even second, which every file system can hold, within 1970 to 1987."""
    stamp = (int.from_bytes(system.urandom(4), "big") >> 4) * 2_000_000_000
    db.execute("UPDATE seal SET stamp = ?", (stamp,))
    db.execute("COMMIT")
    system.utime(fd, ns=(stamp, stamp))
