"""Check the logs and the archive line by line: bad records, duplicate ids, orphaned reads.

Belongs here: the order of reading, and findings about one record. ``id_index`` and ``clock_checks`` compare many.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ...core import codec, instant, space_seals
from ...core.findings import Problem
from ...core.records import BadLine
from ...store.archive.manifest import Manifest
from ...store.files import system
from ...store.files.line_numbers import newlines, numbered, numbered_in
from ...store.log.logs import OpenLogs
from .clock_checks import Clock
from .id_index import CheckedLog, IdIndex, find_duplicates
from .torn_lines import bad_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...mailbox.mailbox import Mailbox
    from ...store.log.log import Log


def check_logs(mailbox: Mailbox, *, archived: bool, at_work: Callable[[], bool]) -> Iterator[Problem]:
    """Yield the problems of the records, without ``archived`` only of the live logs.

    ``at_work`` returns whether a steward is moving mail now.
    """
    # Archived reads, then the live logs, then archived messages: a message is written before its reads, and moves into
    # the archive before them, never back. So each read seen here precedes its message.
    archive = mailbox.archive
    reads = {month: _size_of(archive.reads_log(month)) for month in archive.months()} if archived else {}
    with OpenLogs(mailbox.logs) as live:
        yield from _check_all(mailbox, live, reads if archived else None, at_work)


def _size_of(log: Log) -> int:
    try:
        return system.stat(log.path).st_size
    except OSError:
        return 0


def _check_all(
    mailbox: Mailbox, live: OpenLogs, archived: Mapping[str, int] | None, at_work: Callable[[], bool]
) -> Iterator[Problem]:
    logs, archive, now = mailbox.logs, mailbox.archive, mailbox.now()
    months = archive.months() if archived is not None else []
    manifest = Manifest(archive)
    ids = IdIndex()
    newest = _checked_open_log(logs.messages, live.messages, live.messages_end)
    yield from _check_messages(newest, ids.hashes_of(newest), now)
    for month in months:
        old = _checked_archived_log(archive.log(month), manifest, month)
        yield from _check_messages(old, ids.hashes_of(old), None)
    ids.sort_hashes()
    yield from find_duplicates(ids, lambda: not logs.messages.is_at_path(live.messages) or at_work())
    yield from _check_reads(
        _checked_open_log(logs.reads, live.reads, live.reads_end), None if archived is None else ids, now
    )
    for month, end in (archived or {}).items():
        yield from _check_reads(_checked_archived_log(archive.reads_log(month), manifest, month, end), ids, None)
    yield from _check_roster(_checked_open_log(logs.roster, live.roster, live.roster_end), now)
    if archived is not None:
        yield from _check_roster(_checked_archived_log(archive.roster_log(), manifest), None)


def _checked_open_log(log: Log, fd: int | None, end: int) -> CheckedLog:
    return CheckedLog(log.path, lambda: iter(()) if fd is None else numbered_in(fd, end))


def _checked_archived_log(log: Log, manifest: Manifest, month: str | None = None, end: int | None = None) -> CheckedLog:
    fd = log.open()
    if fd is None:
        return CheckedLog(log.path, lambda: iter(()), month)
    try:
        sealed = newlines(fd, 0, manifest.sealed(system.basename(log.path)))
    finally:
        system.close(fd)
    return CheckedLog(log.path, lambda: numbered(log, end), month, sealed)


def _check_messages(source: CheckedLog, ids: array[int], now: int | None) -> Iterator[Problem]:
    clock = Clock(source.path, now)
    for number, line in source.lines():
        message = codec.message(line)
        if isinstance(message, BadLine):
            yield bad_line(source, number, line, message)
            continue
        ids.append(hash(message.id))
        clock.take_timestamp(number, message.timestamp)
        if source.month is not None and instant.month(message.timestamp) != source.month:
            what = f"the message is of {instant.month(message.timestamp)}: move the line into that month's file"
            yield Problem(source.path, number, what)
    yield from clock.clock_notes()


def _check_reads(source: CheckedLog, ids: IdIndex | None, now: int | None) -> Iterator[Problem]:
    clock, lost, astray = Clock(source.path, now), CheckTally(), CheckTally()
    for number, line in source.lines():
        record = codec.read(line)
        if space_seals.is_ignored(line):  # `engine doctor` counts these
            continue
        if isinstance(record, BadLine):
            yield bad_line(source, number, line, record)
            continue
        clock.take_timestamp(number, record.timestamp)
        if ids is None:
            continue
        homes = [home.month for home in ids.logs_with(record.message_id)]
        if not homes:
            lost.count_finding(number, record.message_id)
        elif source.month is not None and source.month not in homes and None not in homes:
            astray.count_finding(number, record.message_id)
    if lost:
        what = f"{lost} of a missing message: another program wrote this, or the message is lost; look in a backup"
        yield Problem(source.path, lost.line, what)
    if astray:
        yield Problem(
            source.path, astray.line, f"{astray} of a message in another month: move the lines into that month's file"
        )
    yield from clock.clock_notes()


def _check_roster(source: CheckedLog, now: int | None) -> Iterator[Problem]:
    clock = Clock(source.path, now)
    for number, line in source.lines():
        event = codec.roster_event(line)
        if space_seals.is_ignored(line):
            continue
        if isinstance(event, BadLine):
            yield bad_line(source, number, line, event)
        elif event.timestamp:
            clock.take_timestamp(number, event.timestamp)
    yield from clock.clock_notes()


class CheckTally:
    """The count of a kind of finding, and the first of them."""

    def __init__(self) -> None:
        self.count, self.line, self.first = 0, 0, ""

    def count_finding(self, line: int, message_id: str) -> None:
        """Count one."""
        if not self.count:
            self.line, self.first = line, message_id
        self.count += 1

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        return f"{self.count} read{'s' if self.count > 1 else ''} (the first is of {self.first[:60]})"
