"""Putting a fresh log in the place of one that is locked.

Belongs here: the swap, whenever its process is killed, and the lines that must outlive it. ``rotation``,
``roster_compaction`` and the person's repairs decide which lines go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.records import Record
from ..files import system
from ..files.lines import lines_of
from ..files.paths import ROSTER
from ..files.small_files import OpenFile, Storing, tail_checksum
from ..locks.lock import WAIT
from .proof_view import counted
from .stamps import EVERYONE, new_epoch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .custody import Kept, LogEnd
    from .log import HeldLog
    from .proof_view import Place

_FRESH = ".new"
"""The suffix of a fresh log before it takes the old one's place."""


class Replaced(Record):
    """A fresh log in the place of an old one. ``places`` are its lines: the position in the old one (-1: none), and the
    length."""

    path: str
    inode: int
    places: tuple[tuple[int, int], ...]


def clear_leftover(log: HeldLog) -> None:
    """Remove a fresh log that never replaced the old one: of a killed run, or planted. A FIFO there would block."""
    path = log.path + _FRESH
    if system.exists(path):
        with Storing("remove", path):
            system.unlink(path)


def is_misplaced(log: HeldLog, place: Place) -> bool:
    """Return whether the line at that position was sealed by us, and written again elsewhere."""
    view, (position, line) = log.view(), place
    return view is not None and view.is_misplaced(line, position)


def put_back(log: HeldLog, kept: Sequence[Place], size: int, before: int | None = None) -> Replaced:
    """Put the kept lines in the log's place; sealed lines that were copied elsewhere come last. See ``replace``."""
    misplaced = {place for place in kept if is_misplaced(log, place)}
    placed, last = [at for at in kept if at not in misplaced], [at for at in kept if at in misplaced]
    inode = replace(log, (line for _, line in placed), size, [line for _, line in last], before=before)
    return Replaced(log.path, inode, tuple((at, len(line) + 1) for at, line in (*placed, *last)))


def replace(
    log: HeldLog, lines: Iterable[bytes], size: int, misplaced: Iterable[bytes] = (), *, before: int | None = None
) -> int:
    """Put a fresh log of ``lines`` (without newlines) in the place of a log, of which ``size`` bytes were read.

    Return its inode.

    Lines that an unlocked writer added meanwhile follow them. ``misplaced`` are lines that another program copied out
    of their places: they come last, where they still prove nothing. ``before`` is the record's new one (``LogEnd``);
    without it a roster is retold, and its lines count as those that they retell.
    """
    aside = log.path + _FRESH
    with Storing("replace", log.path):
        clear_leftover(log)
        fd = system.open(aside, system.O_WRONLY | system.O_CREAT | system.O_EXCL | system.O_CLOEXEC, 0o600)
        with system.stream(fd, "wb") as file:
            file.writelines(line + b"\n" for line in lines)
            base = file.tell()
            file.writelines(line + b"\n" for line in misplaced)
            file.flush()
            system.fsync(fd)
            there = system.fstat(fd)
        log.announce_replacement(size)
        entry = None if log.kept is None else _announced(log.kept, aside, there.st_ino, there.st_size, base, before)
        system.rename(aside, log.path)
        try:
            system.sync_directory(system.dirname(log.path))
            if log.kept is not None and entry is not None:
                log.kept.follow(entry)
            # Only now: the note also says that the log's name is durable.
            if log.stamp_files is not None and not log.is_undated:
                log.stamp_files.leave(log.path, there.st_ino, there.st_size, new_epoch())
                log.stamp_files.date(log.path, there.st_mtime_ns)
        finally:  # nobody else can: the old file has no name any more
            _fetch(log, size)
        return there.st_ino


def _announced(kept: Kept, aside: str, inode: int, size: int, base: int, before: int | None) -> LogEnd:
    """Announce the fresh log in the mailbox's record, and return its entry: the new content is ours."""
    with OpenFile(system.open(aside, system.O_RDONLY | system.O_CLOEXEC)) as fd:
        entry = counted(kept, lines_of(fd, 0, base), kept.entry().generation + 1, base)
        if before is None:  # a roster is retold in fewer events, which take the place of the old ones
            before = base if kept.name == ROSTER.removesuffix(".jsonl") else 0
        # The inode of an empty log is noted too: a writer of the old log may still note where that one ended.
        entry = entry.replace(before=before, inode=inode, size=size, checksum=tail_checksum(fd, size))
    kept.announce(entry)
    return entry


def _fetch(log: HeldLog, size: int) -> None:
    """Append what an unlocked writer added to the old log behind its ``size`` to the new one."""
    late = system.pread(log.fd, system.fstat(log.fd).st_size - size, size)
    if late:
        log.log.append([late if late.endswith(b"\n") else late + b"\n"], EVERYONE, patience=WAIT)
