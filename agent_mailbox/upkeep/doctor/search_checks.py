"""Check the projection against the logs; questions trust its seal.

Belongs here: comparing every entry with its line, and every line with the entries. Read-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ...core import codec
from ...core.findings import REMOVE_DERIVED, Problem
from ...core.records import BadLine
from ...errors import MailboxError
from ...store.files import small_files, system
from ...store.files.lines import lines_of
from ...store.locks.lock import FileLock
from ...store.log.logs import OpenLogs
from ...store.projection import index_keys, projection_file
from ...store.projection.index_keys import number_of
from ...store.projection.intake import sources
from ...store.projection.projection_file import sqlite3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...mailbox.mailbox import Mailbox
    from ...store.projection.intake import IndexSource
    from ...store.projection.projection_file import Connection

UNSOUND = "changed since its last use (another program wrote, or a writer was killed); the next search rebuilds it"


def check_projection(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the problem of the projection; nothing if there is none, or a question is updating it."""
    path = mailbox.logs.cache(index_keys.FILE)
    if sqlite3 is None or not system.exists(path):
        return
    try:
        lock = FileLock(mailbox.logs.cache(index_keys.LOCK), 0).take()
    except MailboxError:
        return
    with lock:
        try:
            db = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)
            try:
                found = _why_unsound(db, path) or _describe_drift(db, mailbox)
            finally:
                db.close()
        except (sqlite3.Error, OSError, ValueError):
            found = UNSOUND
    if found is not None:
        drifted = not found.endswith("rebuilds it")
        yield Problem(path, None, found, REMOVE_DERIVED if drifted else None, note=not drifted)


def _why_unsound(db: Connection, path: str) -> str | None:
    """Return why the next search would rebuild the file; None if it would use it."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != projection_file.VERSION:
        return f"of another version ({version}); the next search rebuilds it"
    if db.execute("SELECT stamp FROM seal").fetchone() != (system.stat(path).st_mtime_ns,):
        return UNSOUND
    return None


def _describe_drift(db: Connection, mailbox: Mailbox) -> str | None:
    """Return how it differs from the logs, as far as it has read them; None if it agrees."""
    known = {name: at for name, *at in db.execute("SELECT * FROM sources")}
    with OpenLogs(mailbox.logs) as live:
        for source in sources(live, mailbox.archive):
            at = known.get(source.name)
            if source.fd is None or source.reads or at is None or not small_files.holds_mark(source.fd, at[:3]):
                continue  # the next search reads it again
            wrong = _first_difference(db, source, at[1])
            if wrong is not None:
                return f"disagrees with the line at byte {wrong} of the {source.name} log"
    return None


def _first_difference(db: Connection, source: IndexSource, end: int) -> int | None:
    """Return the offset of the first line, or entry, that has no equal on the other side; None if all agree."""
    assert source.fd is not None
    rows = iter(
        db.execute(
            "SELECT place, line FROM messages WHERE place >= ? AND place < ? ORDER BY place",
            (source.first, source.first + end),
        )
    )
    row = next(rows, None)
    for position, line in lines_of(source.fd, 0, end):
        if row == (source.first + position, number_of(line)):
            row = next(rows, None)
        elif row is not None and row[0] <= source.first + position:
            return int(row[0]) - source.first
        elif not isinstance(codec.message(line), BadLine):
            return position
    return None if row is None else int(row[0]) - source.first
