"""Check the logs and the archive line by line: bad records, duplicate ids, orphaned reads, false times.

Belongs here: the order of reading, findings about one record, which line is torn, and clocks that jumped. ``id_index``
compares ids.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from typing import TYPE_CHECKING

from ...core import codec, instant, space_seals
from ...core.codec import BOM, MAX_LINE
from ...core.findings import REMOVE_TORN, Problem
from ...core.records import BadLine
from ...core.text import count_noun
from ...store.archive.manifest import Manifest
from ...store.files import system
from ...store.files.line_numbers import newlines, numbered, numbered_in
from ...store.files.small_files import OpenFile
from ...store.log.logs import OpenLogs
from .id_index import CheckedLog, IdIndex, find_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...mailbox.mailbox import Mailbox
    from ...store.log.log import Log

LOST = "of a missing message: another program wrote this, or the message is lost; look in a backup"
ASTRAY = "of a message in another month: move the lines into that month's file"
CLOCK_SLACK = 5 * 60_000
"""Milliseconds that a timestamp may be before an earlier line's, or in the future, without a note: processes wait for
locks, machines set their clocks."""


def check_logs(mailbox: Mailbox, *, archived: bool, at_work: Callable[[], bool]) -> Iterator[Problem]:
    """Yield the problems of the records, without ``archived`` only of the live logs.

    ``at_work`` returns whether a steward is moving mail now.
    """
    # Archived reads, then the live logs, then archived messages: a message is written before its reads, and moves into
    # the archive before them, never back. So each read seen here precedes its message.
    archive = mailbox.archive
    reads = {month: system.size(archive.reads_log(month).path) for month in archive.months()} if archived else {}
    with OpenLogs(mailbox.logs) as live:
        yield from _check_all(mailbox, live, reads if archived else None, at_work)


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
    # In this order: a steward that ends in between has replaced the log before.
    yield from find_duplicates(ids, lambda: at_work() or not logs.messages.is_at_path(live.messages))
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
    with OpenFile(fd):
        sealed = newlines(fd, 0, manifest.sealed(system.basename(log.path)))
    return CheckedLog(log.path, lambda: numbered(log, end), month, sealed)


def _check_messages(source: CheckedLog, ids: array[int], now: int | None) -> Iterator[Problem]:
    clock = _Clock(source.path, now)
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
    clock = _Clock(source.path, now)
    counted, first = Counter[str](), dict[str, tuple[int, str]]()
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
        is_astray = source.month is not None and source.month not in homes and None not in homes
        if is_astray or not homes:
            what = ASTRAY if homes else LOST
            counted[what] += 1
            first.setdefault(what, (number, record.message_id))
    for what in sorted(first, key=(LOST, ASTRAY).index):
        number, message_id = first[what]
        reads = f"{count_noun(counted[what], 'read')} (the first is of {message_id[:60]})"
        yield Problem(source.path, number, f"{reads} {what}")
    yield from clock.clock_notes()


def _check_roster(source: CheckedLog, now: int | None) -> Iterator[Problem]:
    clock = _Clock(source.path, now)
    for number, line in source.lines():
        event = codec.roster_event(line)
        if space_seals.is_ignored(line):
            continue
        if isinstance(event, BadLine):
            yield bad_line(source, number, line, event)
        elif event.timestamp:
            clock.take_timestamp(number, event.timestamp)
    yield from clock.clock_notes()


class _Clock:
    """Watches a log's timestamps in log order. An archive (``now`` None) is not checked."""

    def __init__(self, path: str, now: int | None) -> None:
        self._path = path
        self._now = now
        self._latest = 0
        self._back = [0, 0, 0, 0]  # count, first line, its timestamp, the latest before
        self._ahead = [0, 0, 0]

    def take_timestamp(self, line: int, timestamp: int) -> None:
        """Take the next record's timestamp (ms)."""
        if self._now is None:
            return
        if timestamp > self._now + CLOCK_SLACK:
            self._ahead = [self._ahead[0] + 1, *(self._ahead[1:] if self._ahead[0] else (line, timestamp))]
        elif timestamp < self._latest - CLOCK_SLACK:
            first = self._back[1:] if self._back[0] else (line, timestamp, self._latest)
            self._back = [self._back[0] + 1, *first]
        else:
            self._latest = max(self._latest, timestamp)

    def clock_notes(self) -> Iterator[Problem]:
        """Yield the notes."""
        if self._back[0]:
            count, line, said, before = self._back
            what = f"the clock went back here, from {instant.text(before)} to {instant.text(said)}"
            what += f" ({count_noun(count, 'line')}); harmless, because log order counts"
            yield Problem(self._path, line, what, note=True)
        if self._ahead[0]:
            count, line, said = self._ahead
            what = f"dated in the future, {instant.text(said)} ({count_noun(count, 'line')})"
            yield Problem(self._path, line, f"{what}: it expires late; check the clock", note=True)


def bad_line(source: CheckedLog, number: int, line: bytes, reason: BadLine) -> Problem:
    """Return the finding about a bad line. A line torn before it was archived and sealed is a mere note."""
    if is_torn(line):
        if number <= source.sealed:
            return Problem(source.path, number, f"torn before it was archived ({reason.reason}); harmless", note=True)
        return Problem(source.path, number, f"torn: {reason.reason}", REMOVE_TORN)
    if reason.reason.startswith("unknown event"):
        what = f"{reason.reason}: a newer version may have written it, and reads it; leave it"
        return Problem(source.path, number, what, note=True)
    what = f"not a record: {reason.reason}; readers skip it: remove the line unless you need it"
    return Problem(source.path, number, what)


def is_torn(line: bytes) -> bool:
    """Return whether the line is provably the remains of our own write: a record cut short, or a hole of zeros.

    Cut short: the JSON is valid up to the line's end, but incomplete, as in ``{"id": "a1", "fr``.
    """
    whole = line.removeprefix(BOM).rstrip(b"\0")
    if not whole:
        return True
    if len(line) > MAX_LINE or not whole.startswith(b'{"'):
        return False
    try:
        json.loads(whole.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.pos >= len(error.doc) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return len(whole) < len(line.removeprefix(BOM))
