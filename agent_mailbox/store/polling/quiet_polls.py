"""Polls of a process that stays: where no log changed since a poll that found nothing, there is nothing.

Belongs here: what tells that. It takes three looks instead of opening the logs, the cursor and their marks. A log's
times, size and inode tell every change but one within the tick of the last. File systems count in milliseconds, some in
two seconds. So a log that changed lately tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..files import system

if TYPE_CHECKING:
    from ..files.small_files import Mark
    from ..log.logs import Ends, Logs

    File = tuple[int, int, int, int, int]
    Files = tuple[File, File, File, tuple[int, int, int, int] | None]

LATELY = 3_000_000_000
"""Nanoseconds within which two changes may bear one time."""
_MISSING = (0, 0, 0, 0, 0)


def files(logs: Logs) -> Files:
    """Return what identifies the content of the three logs, with the note about the messages (``StampFiles.ended``)."""
    messages, reads, roster = logs.messages.path, logs.reads.path, logs.roster.path
    return _file(messages), _file(reads), _file(roster), logs.stamp_files.ended(messages)


def _file(path: str) -> File:
    try:
        at = system.stat(path)
    except FileNotFoundError:
        return _MISSING
    return at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns


def are_settled(before: Files, marks: tuple[Mark, Mark, Mark], ends: Ends) -> bool:
    """Return whether the files from ``before`` a poll are the logs that it read to these ends, and tell each later
    change."""
    seen = tuple(file[1:3] for file in before[:3])
    newest = max(max(file[3:]) for file in before[:3])
    read = tuple(mark[:2] for mark in marks)
    return read == seen == ends and before[3] is not None and newest + LATELY < system.time_ns()
