"""A search index over live and archived mail: derived, in SQLite (FTS5), never the truth, unused by polling.

Belongs here: the index file, and why it may be trusted. ``indexing`` catches it up with the logs, ``lookup`` finds
candidates in it. None knows who may see a message: a candidate is a *place* (a log and a position, ``index_keys``). Its
line is read back and decoded by the codec, and the caller judges the message. So the index may offer too much, but must
never hold back. ``Library`` scans if there is no index: no SQLite, no FTS5, no writable directory, no lock.

**Why its answers can be trusted.** One process at a time uses the file, under ``index.lock``. Every commit writes a
random stamp into it and sets the file's time to that stamp, decades in the past. A foreign write moves the time to now,
and so does a killed writer of ours. A file is built again if its time or version is another. So is one that SQLite
complains about, or that names a changed line.

Each log is known by its mark (``cache``). If a mark does not hold, that log is read again from its start. A line that
the steward moved keeps its entry and gets its new place.
"""

from __future__ import annotations

from ...errors import MailboxError
from ..files import system
from ..locks.lock import FileLock
from .index_keys import NEWS, Doubt
from .indexing import Intake
from .lookup import IndexView

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import TypeVar

    from ..archive.archive import Archive
    from ..log.logs import Logs, OpenLogs

    T = TypeVar("T")
else:
    try:
        import _sqlite3 as sqlite3  # the C part: ``sqlite3`` adds ``datetime``, at half the cost of a query
    except ImportError:  # this interpreter was built without it
        sqlite3 = None

FILE, LOCK = "index.sqlite", "index.lock"
VERSION = 3
"""Changes with the schema, with ``words.folded`` and with ``index_keys``; a file of another version is built again."""
CACHE_KIB = 32 << 10
HASH_SIZE = 16 << 20
"""Bytes FTS5 may gather before it writes a segment; its default of 1 MiB makes building take half as long again."""

_SCHEMA = f"""
BEGIN;
CREATE TABLE seal (stamp INTEGER, next INTEGER);
INSERT INTO seal VALUES (0, 1);
CREATE TABLE sources (name TEXT PRIMARY KEY, inode INTEGER, position INTEGER, checksum INTEGER, tail INTEGER);
CREATE TABLE messages (n INTEGER PRIMARY KEY, timestamp INTEGER, place INTEGER, line INTEGER, key BLOB);
CREATE TABLE terms (term INTEGER, timestamp INTEGER, n INTEGER, PRIMARY KEY (term, timestamp, n)) WITHOUT ROWID;
CREATE TABLE reads (message INTEGER, place INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('hashsize', {HASH_SIZE});
PRAGMA user_version = {VERSION};
COMMIT;
"""


class MailIndex:
    """The index file of a mailbox."""

    def __init__(self, logs: Logs, archive: Archive) -> None:
        self._logs = logs
        self._archive = archive
        self._path = logs.cache(FILE)

    def ask(self, question: Callable[[IndexView], T], *, at_once: bool = False, patience: float = 0.0) -> T | None:
        """Return the answer from an index caught up with the logs, rebuilt if need be; None if there is no index.

        ``at_once``: also None if the answer would wait longer than ``patience`` (seconds) for another process, or for
        more than ``NEWS`` bytes of logs.
        """
        if sqlite3 is None or not self._logs.derives:
            return None
        try:
            system.make_directory(system.dirname(self._path))
            lock = FileLock(self._logs.cache(LOCK), patience if at_once else self._logs.wait).__enter__()
        except (OSError, MailboxError):
            return None
        try:
            with self._logs.open() as live:
                for fresh in (False,) if at_once else (False, True):
                    try:
                        return self._answer(question, live, fresh, NEWS if at_once else None)
                    except (sqlite3.Error, OSError, Doubt):
                        continue
                    except (ValueError, TypeError, ArithmeticError, LookupError):
                        # A damaged file may raise anything: SQLite quotes even a schema that is no text. With a fresh
                        # file it is our defect.
                        if fresh:
                            raise
            return None
        finally:
            lock.__exit__(None, None, None)

    def _answer(self, question: Callable[[IndexView], T], live: OpenLogs, fresh: bool, most: int | None) -> T:
        fd = self._file(fresh)
        try:
            db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            try:
                self._prepare(db, fd, fresh)
                if Intake(db, live, self._archive).catch_up(most):
                    _seal(db, fd)
                return question(IndexView(db, live, self._archive))
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

    def _prepare(self, db: sqlite3.Connection, fd: int, fresh: bool) -> None:
        """Check the seal *after* the first read, which would play back a journal that another program left."""
        for pragma in ("synchronous=OFF", f"cache_size=-{CACHE_KIB}", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        # A killed writer leaves a file without its seal; a failed one begins again. Sorting takes files, not memory.
        db.execute(f"PRAGMA journal_mode={'OFF' if fresh else 'MEMORY'}")
        db.execute(f"PRAGMA temp_store={'FILE' if fresh else 'MEMORY'}")
        if fresh:
            db.executescript(_SCHEMA)
            return
        sealed = db.execute("PRAGMA user_version").fetchone() == (VERSION,) and db.execute("SELECT stamp FROM seal")
        here, there = system.fstat(fd), system.stat(self._path)
        if not sealed or sealed.fetchone() != (here.st_mtime_ns,) or here.st_mode & system.S_IFMT != system.S_IFREG:
            raise Doubt("not as we left it")
        if (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev):
            raise Doubt("replaced meanwhile")


def _seal(db: sqlite3.Connection, fd: int) -> None:
    """Commit, and mark the file as ours: an even second, which every file system can hold, within 1970 to 1987."""
    stamp = (int.from_bytes(system.urandom(4), "big") >> 4) * 2_000_000_000
    db.execute("UPDATE seal SET stamp = ?", (stamp,))
    db.execute("COMMIT")
    system.utime(fd, ns=(stamp, stamp))
