"""The projection's file: a derived database, never the truth.

Belongs here: the file, its tables, and why it may be trusted. There are two such files. ``projection`` catches the
mailbox's up with the logs; it is in ``.cache``. The one in the user's record is for what decides (``control_table``).

**Why its answers can be trusted.** One process at a time uses the file, under its lock. Every commit writes a random
stamp into it and sets the file's time to that stamp, decades in the past. A foreign write moves the time to now, and so
does a killed writer of ours. A file is built again if its time or its version is another, or if SQLite complains about
it. It is never synced, so one that is older than the machine's start is built again, too.

**Nothing is saved before all that it was derived from is known to be sound.** ``OpenProjection.save`` alone saves. It
takes the answer of whoever read the logs.

**What SQLite costs.** Its C part alone costs a fifth of a bare start; ``sqlite3`` adds ``datetime``. It imports
``functools`` for one name, which with its own imports costs twice as much as SQLite. So that name is given to it.
"""

from __future__ import annotations

from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]
from sys import modules

from ...errors import MailboxError
from ..files import system
from ..files.small_files import OpenFile, remove_file
from ..locks.lock import FileLock
from .index_keys import FILE, LIVE, LOCK, Doubt

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as module
    from collections.abc import Callable
    from typing import Any, TypeVar

    Connection = module.Connection
    T = TypeVar("T")

VERSION = 6
"""Changes with the schema, with ``words.folded`` and with ``index_keys``; a file of another version is built again."""
CACHE_KIB = 32 << 10
HASH_SIZE = 16 << 20
"""Bytes FTS5 may gather before it writes a segment; its default of 1 MiB makes building take half as long again."""
_NEEDED = "functools"
PAUSE = 0.002
"""Seconds between two slices, in which another process takes the lock."""

_SCHEMA = f"""
BEGIN;
CREATE TABLE seal (stamp INTEGER, next INTEGER, worded INTEGER, ready INTEGER);
INSERT INTO seal VALUES (0, 1, 1, 0);
CREATE TABLE sources (name TEXT PRIMARY KEY, inode INTEGER, position INTEGER, checksum INTEGER, tail INTEGER,
  counted BLOB);
CREATE TABLE addresses (address INTEGER PRIMARY KEY, word TEXT, hours INTEGER, UNIQUE (word, hours));
CREATE TABLE messages (n INTEGER PRIMARY KEY, timestamp INTEGER, place INTEGER, line INTEGER, id INTEGER, start BLOB,
  sender INTEGER, address INTEGER, asks INTEGER, state INTEGER);
CREATE INDEX moving ON messages (line) WHERE place IS NULL;
CREATE INDEX asked ON messages (sender) WHERE asks AND place >= {LIVE};
CREATE TABLE terms (term INTEGER, timestamp INTEGER, n INTEGER, PRIMARY KEY (term, timestamp, n)) WITHOUT ROWID;
CREATE TABLE reads (message INTEGER, place INTEGER, reader INTEGER, kind INTEGER);
CREATE TABLE control (kind INTEGER, word INTEGER, place INTEGER, sender INTEGER, proven INTEGER,
  PRIMARY KEY (kind, word, place)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('hashsize', {HASH_SIZE});
PRAGMA user_version = {VERSION};
COMMIT;
"""


def _imported() -> Any:
    """Return the module; None in an interpreter that was built without it."""
    stands_in = _NEEDED not in modules
    if stands_in:
        modules[_NEEDED] = type(modules["sys"])(_NEEDED)
        modules[_NEEDED].lru_cache = lambda size: lambda ask: _lru_cache_wrapper(ask, size, False, tuple)  # type: ignore[attr-defined]
    try:
        import _sqlite3
    except ImportError:
        return None
    finally:
        if stands_in:
            del modules[_NEEDED]
    return _sqlite3


sqlite3 = _imported()


def connect(path: str) -> Connection:
    """Return an open database. The simulation replaces this: SQLite does its own input and output."""
    found: Connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    return found


def use(
    directory: str, turn: Callable[[OpenProjection], tuple[T] | None], patience: float, *, builds: bool = True
) -> T | None:
    """Return what ``turn`` answers about the file in a directory; None if there is no file to be had.

    ``turn`` is called under the file's lock, once more for each slice until it answers. If it doubts the file, it is
    called with an empty one. ``patience``: the seconds to wait for another process. Not ``builds``: None comes for a
    file that is unsound.
    """
    if sqlite3 is None:
        return None
    fresh = was_fresh = False
    while True:
        try:
            if not system.exists(directory):  # the first of all derived files
                system.make_directory(directory)
            lock = FileLock(f"{directory}/{LOCK}", patience).take()
        except (OSError, MailboxError):
            return None
        with lock:
            try:
                found = _turn(f"{directory}/{FILE}", turn, fresh)
                if found is not None:
                    return found[0]
                fresh = False
            except Newer:
                return None
            except (sqlite3.Error, OSError, Doubt, ValueError, TypeError, ArithmeticError, LookupError) as error:
                # A damaged file may raise anything: SQLite quotes even a schema that is no text. With a fresh file it
                # is our defect.
                if was_fresh and not isinstance(error, sqlite3.Error | OSError | Doubt):
                    raise
                if was_fresh or not builds:
                    return None
                fresh = was_fresh = True
        system.sleep(PAUSE)


def _turn(path: str, turn: Callable[[OpenProjection], tuple[T] | None], fresh: bool) -> tuple[T] | None:
    with OpenFile(_opened(path, fresh)) as fd:
        db = connect(path)
        try:
            return turn(OpenProjection(db, fd, path, fresh))
        finally:
            db.close()


def _opened(path: str, fresh: bool) -> int:
    flags = system.O_RDWR | system.O_NOFOLLOW | system.O_NONBLOCK | system.O_CLOEXEC
    if not fresh:
        return system.open(path, flags)
    for suffix in ("", "-journal", "-wal", "-shm"):
        remove_file(path + suffix)
    return system.open(path, flags | system.O_CREAT | system.O_EXCL, 0o600)


class Newer(Exception):
    """An upgrade made the file while this process ran. Two versions would build each other's file again for ever."""


class OpenProjection:
    """The open file, its tables as they were saved; or empty (``is_fresh``)."""

    def __init__(self, db: Connection, fd: int, path: str, fresh: bool) -> None:
        self.db = db
        self.is_fresh = fresh
        self._fd = fd
        self._prepare(path)

    def _prepare(self, path: str) -> None:
        """Check the seal *after* the first read, which would play back a journal that another program left."""
        for pragma in ("synchronous=OFF", f"cache_size=-{CACHE_KIB}", "trusted_schema=OFF"):
            self.db.execute(f"PRAGMA {pragma}")
        # A killed writer leaves a file without its seal; a failed one begins again.
        self.db.execute(f"PRAGMA journal_mode={'OFF' if self.is_fresh else 'MEMORY'}")
        if self.is_fresh:
            self.db.executescript(_SCHEMA)
            return
        version = self.db.execute("PRAGMA user_version").fetchone()
        if version > (VERSION,):
            from ..user_state import replaced_program  # seldom

            if replaced_program.was_replaced():
                raise Newer
        sealed = version == (VERSION,) and self.db.execute("SELECT stamp FROM seal")
        here, there = system.fstat(self._fd), system.stat(path)
        if not sealed or sealed.fetchone() != (here.st_mtime_ns,) or here.st_mode & system.S_IFMT != system.S_IFREG:
            raise Doubt("not as we left it")
        if here.st_ctime_ns < system.booted():
            raise Doubt("a power failure may have torn it")
        if not system.is_same(here, there):
            raise Doubt("replaced meanwhile")

    def save(self, *, is_sound: bool) -> None:
        """Save what was taken in, if all that it was derived from ``is_sound``; else raise ``Doubt``.

        The file is marked as ours then: its time is an even second, which every file system can hold, within 1970 to
        1987.
        """
        if not is_sound:
            raise Doubt("a log changed while it was read")
        stamp = (int.from_bytes(system.urandom(4), "big") >> 4) * 2_000_000_000
        self.db.execute("UPDATE seal SET stamp = ?", (stamp,))
        self.db.execute("COMMIT")
        system.utime(self._fd, ns=(stamp, stamp))
