"""Looking at the logs and the archive line by line: what is no record, what stands twice, what belongs to nothing.

Belongs here: whatever follows from the records themselves. Memory stays bounded: of a message just a number of eight
bytes is kept, and what those cannot tell apart is looked at a second time.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections import Counter

from ..core import codec, instant
from ..core.codec import MAX_LINE
from ..core.records import BadLine, Record
from ..store.manifest import Manifest
from ..store.numbered import newlines, numbered, numbered_in
from .findings import REMOVE_TORN, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..core.records import Message
    from ..mailbox import Mailbox
    from ..store.log import Log
    from ..store.logs import OpenLogs

CLOCK_SLACK = 5 * 60_000
"""Milliseconds that the timestamps of a log may go back or lie in the future before anyone wonders: processes that
wait for a lock, machines that set their clocks."""


class Source(Record):
    """A log to look at: its path, its numbered lines anew at each call, the month it is archived under, and how many of
    its lines are sealed."""

    path: str
    lines: Callable[[], Iterator[tuple[int, bytes]]]
    month: str | None = None
    sealed: int = 0


class Census:
    """Which message ids stand in which log, as numbers: two ids may share one, an id always has the same."""

    def __init__(self) -> None:
        self._ids: list[tuple[Source, array[int]]] = []

    def of(self, source: Source) -> array[int]:
        """The list to add a log's ids to."""
        found = array("q")
        self._ids.append((source, found))
        return found

    def settle(self) -> None:
        """No more will come: sort the lists, so that they answer."""
        self._ids = [(source, array("q", sorted(ids))) for source, ids in self._ids]

    def homes(self, message_id: str) -> list[Source]:
        """The logs in which a message of that id may stand."""
        wanted = hash(message_id)
        return [s for s, ids in self._ids if (at := bisect_left(ids, wanted)) < len(ids) and ids[at] == wanted]

    def repeated(self) -> set[int]:
        """The numbers that were met more than once."""
        found: set[int] = set()
        everything = array("q")
        for _, ids in self._ids:
            everything += ids
        before = None
        for number in sorted(everything):
            if number == before:
                found.add(number)
            before = number
        return found

    @property
    def sources(self) -> list[Source]:
        """The logs, in the order they were looked at."""
        return [source for source, _ in self._ids]


def examine(mailbox: Mailbox, *, archived: bool, at_work: Callable[[], bool]) -> Iterator[Problem]:
    """Everything the records say against themselves; without ``archived``, those of the live logs.

    ``at_work`` tells whether a steward is moving mail at this moment.
    """
    # Archived reads, then the live logs, then archived messages: a message is written before its reads and moves into
    # the archive before them, never back. So every read that is looked at is of a message that will be.
    archive = mailbox.archive
    reads = {month: _size(archive.reads_log(month)) for month in archive.months()} if archived else {}
    with mailbox.logs.open() as live:
        yield from _examine(mailbox, live, reads if archived else None, at_work)


def _size(log: Log) -> int:
    try:
        return os.stat(log.path).st_size
    except OSError:
        return 0


def _examine(
    mailbox: Mailbox, live: OpenLogs, archived: Mapping[str, int] | None, at_work: Callable[[], bool]
) -> Iterator[Problem]:
    logs, archive, now = mailbox.logs, mailbox.archive, mailbox.now()
    months = archive.months() if archived is not None else []
    manifest = Manifest(archive)
    census = Census()
    newest = _opened(logs.messages, live.messages, live.messages_end)
    yield from _messages(newest, census.of(newest), now)
    for month in months:
        old = _archived(archive.log(month), manifest, month)
        yield from _messages(old, census.of(old), None)
    census.settle()
    yield from _twins(census, lambda: not logs.messages.is_at_path(live.messages) or at_work())
    yield from _reads(_opened(logs.reads, live.reads, live.reads_end), None if archived is None else census, now)
    for month, end in (archived or {}).items():
        yield from _reads(_archived(archive.reads_log(month), manifest, month, end), census, None)
    yield from _roster(_opened(logs.roster, live.roster, live.roster_end), now)
    if archived is not None:
        yield from _roster(_archived(archive.roster_log(), manifest), None)


def _opened(log: Log, fd: int | None, end: int) -> Source:
    return Source(log.path, lambda: iter(()) if fd is None else numbered_in(fd, end))


def _archived(log: Log, manifest: Manifest, month: str | None = None, end: int | None = None) -> Source:
    fd = log.open()
    if fd is None:
        return Source(log.path, lambda: iter(()), month)
    try:
        sealed = newlines(fd, 0, manifest.sealed(os.path.basename(log.path)))
    finally:
        os.close(fd)
    return Source(log.path, lambda: numbered(log, end), month, sealed)


def _messages(source: Source, ids: array[int], now: int | None) -> Iterator[Problem]:
    clock = Clock(source.path, now)
    for number, line in source.lines():
        message = codec.message(line)
        if isinstance(message, BadLine):
            yield _bad(source, number, line, message)
            continue
        ids.append(hash(message.id))
        clock.tick(number, message.timestamp)
        if source.month is not None and instant.month(message.timestamp) != source.month:
            what = f"message of {instant.month(message.timestamp)} in another month: move the line there"
            yield Problem(source.path, number, what)
    yield from clock.notes()


def _reads(source: Source, census: Census | None, now: int | None) -> Iterator[Problem]:
    clock, lost, astray = Clock(source.path, now), Tally(), Tally()
    for number, line in source.lines():
        record = codec.read(line)
        if isinstance(record, BadLine):
            yield _bad(source, number, line, record)
            continue
        clock.tick(number, record.timestamp)
        if census is None:
            continue
        homes = [home.month for home in census.homes(record.message_id)]
        if not homes:
            lost.add(number, record.message_id)
        elif source.month is not None and source.month not in homes and None not in homes:
            astray.add(number, record.message_id)
    if lost:
        what = f"{lost} of no message there is: a foreign program's, or the message is lost; a backup may have it"
        yield Problem(source.path, lost.line, what)
    if astray:
        yield Problem(source.path, astray.line, f"{astray} of a message in another month: move the lines there")
    yield from clock.notes()


def _roster(source: Source, now: int | None) -> Iterator[Problem]:
    clock = Clock(source.path, now)
    for number, line in source.lines():
        event = codec.roster_event(line)
        if isinstance(event, BadLine):
            yield _bad(source, number, line, event)
        elif event.timestamp:
            clock.tick(number, event.timestamp)
    yield from clock.notes()


class Tally:
    """How many of one kind, and the first of them."""

    def __init__(self) -> None:
        self.count, self.line, self.first = 0, 0, ""

    def add(self, line: int, message_id: str) -> None:
        """One more."""
        if not self.count:
            self.line, self.first = line, message_id
        self.count += 1

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        return f"{self.count} read{'s' if self.count > 1 else ''} (the first of {self.first[:60]})"


class Clock:
    """Watches the timestamps of a log in log order; one of an archive (``now`` None) has none that could go back."""

    def __init__(self, path: str, now: int | None) -> None:
        self._path = path
        self._now = now
        self._latest = 0
        self._back = [0, 0, 0, 0]  # how many, first line, what it says, what was said before
        self._ahead = [0, 0, 0]

    def tick(self, line: int, timestamp: int) -> None:
        """The next record."""
        if self._now is None:
            return
        if timestamp > self._now + CLOCK_SLACK:
            self._ahead = [self._ahead[0] + 1, *(self._ahead[1:] if self._ahead[0] else (line, timestamp))]
        elif timestamp < self._latest - CLOCK_SLACK:
            first = self._back[1:] if self._back[0] else (line, timestamp, self._latest)
            self._back = [self._back[0] + 1, *first]
        else:
            self._latest = max(self._latest, timestamp)

    def notes(self) -> Iterator[Problem]:
        """What there is to say."""
        if self._back[0]:
            count, line, said, before = self._back
            what = f"the clock went back here, from {instant.text(before)} to {instant.text(said)} ({_lines(count)})"
            yield Problem(self._path, line, f"{what}; log order counts, nothing to do", note=True)
        if self._ahead[0]:
            count, line, said = self._ahead
            what = f"dated in the future, {instant.text(said)} ({_lines(count)}): it expires late; check the clock"
            yield Problem(self._path, line, what, note=True)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


# -- ids that stand twice ---------------------------------------------------------------------------------------------


def _twins(census: Census, moving: Callable[[], bool]) -> Iterator[Problem]:
    """Ids that were met more than once, read again and compared."""
    repeated = census.repeated()
    if not repeated:
        return
    met: dict[str, tuple[Source, Message]] = {}
    both: Counter[str] = Counter()
    first: dict[str, tuple[int, str]] = {}
    for source in census.sources:
        for number, line in source.lines():
            message = codec.message(line)
            if isinstance(message, BadLine) or hash(message.id) not in repeated:
                continue
            home, earlier = met.setdefault(message.id, (source, message))
            if earlier is message:
                continue
            if home.month is None and source.month is not None:
                both[source.path] += 1
                first.setdefault(source.path, (number, message.id))
                met[message.id] = (source, message)  # twice in the archive would be another matter
                continue
            yield Problem(source.path, number, _twin(message, earlier))
    if both and not moving():
        for path, (number, message_id) in first.items():
            what = f"{both[path]} archived and live (the first {message_id}): an archive run was interrupted"
            yield Problem(path, number, f"{what}; `agent-mailbox steward run` completes it")


def _twin(message: Message, earlier: Message) -> str:
    same = message.replace(timestamp=0) == earlier.replace(timestamp=0)
    what = "written twice" if same else "found again with another body"
    return f"id {message.id} {what}; the first written counts: remove this line if nobody needs it"


# -- lines that are no records ----------------------------------------------------------------------------------------


def _bad(source: Source, number: int, line: bytes, reason: BadLine) -> Problem:
    """What to say of a line that is no record. What was torn before it was archived and sealed harms nobody."""
    if is_torn(line):
        if number <= source.sealed:
            return Problem(
                source.path, number, f"torn ({reason.reason}) when it was archived; nothing to do", note=True
            )
        return Problem(source.path, number, f"torn: {reason.reason}", REMOVE_TORN)
    what = f"not a record: {reason.reason}; readers skip it: remove the line if nobody needs it"
    return Problem(source.path, number, what)


def is_torn(line: bytes) -> bool:
    """Is the line provably the remains of one of our own writes: a record cut short, or a hole of zeros?

    Cut short means that JSON was still expected where the line ends. A whole line that is no record is somebody's.
    """
    whole = line.rstrip(b"\0")
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
    return len(whole) < len(line)
