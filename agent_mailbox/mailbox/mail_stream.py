"""The whole history, message by message: for exports, which need all mail but never at once.

Belongs here: where each message and each read is (a log, a position), which of twins counts, and the order. The texts
stay in the logs, which are open meanwhile: what a steward replaces can still be read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..core import codec, proofs
from ..core.message_reads import Reads
from ..core.records import BadLine, Message
from ..store.files import system
from ..store.files.lines import line_at, lines_of
from ..store.files.paths import MESSAGES, READS
from ..store.log.logs import OpenLogs, parse_reads
from ..store.log.proof_view import weigh_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.records import Read
    from ..store.log.proof_view import ProofView
    from .mailbox import Mailbox

    Source = tuple[int, int, ProofView | None, bool]
    """An open log: its descriptor, how far it is read, what is proven of its lines, whether it is live."""


def stream(mailbox: Mailbox) -> Iterator[tuple[Message, Reads]]:
    """Yield what ``MailQueries.everything`` returns, in its order: each message, with its own reads."""
    with ExitStack() as opened:
        live = opened.enter_context(OpenLogs(mailbox.logs))  # before the archive: a record moves from here to there
        views, archive = live.views(), mailbox.archive
        messages: list[Source] = []
        reads: list[Source] = []
        for month in archive.months():
            for log, sources, name in (
                (archive.log(month), messages, MESSAGES),
                (archive.reads_log(month), reads, READS),
            ):
                fd = log.open()
                if fd is not None:
                    opened.callback(system.close, fd)
                    sources.append((fd, system.fstat(fd).st_size, archive.view(name), False))
        if live.messages is not None:
            messages.append((live.messages, live.messages_end, views[0], True))
        if live.reads is not None:
            reads.append((live.reads, live.reads_end, views[1], True))
        found = _Found(messages)
        places_of = _find_places(reads, found.numbers)
        for number in found.order():
            (fd, _, view, is_live), position = messages[found.logs[number]], found.positions[number]
            message = codec.message(line := line_at(fd, position))
            if not isinstance(message, BadLine):
                message = weigh_message(message, view, line, position if is_live else None)
                yield message, Reads(_read_back(reads, places_of(number), message.id))


class _Found:
    """The messages that count, numbered as they were met: when each was sent, its log and its position."""

    def __init__(self, sources: list[Source]) -> None:
        self.numbers: dict[int, int] = {}
        """By the hash of its id, which nobody can aim at (PEP 456)."""
        self.times, self.logs, self.positions = array("q"), array("q"), array("q")
        self._proven: set[int] = set()
        self._late: set[int] = set()
        """Archived messages that are live, too: they are met where the live ones are."""
        for log, (fd, end, view, is_live) in enumerate(sources):
            for position, line in lines_of(fd, 0, end):
                message = codec.message(line)
                if not isinstance(message, BadLine):
                    message = weigh_message(message, view, line, position if is_live else None)
                    self._meet(message, log, position, is_live, sources)

    def _meet(self, message: Message, log: int, position: int, is_live: bool, sources: list[Source]) -> None:
        """Take a message in as ``parse_messages`` does: the first of its id, and a proven one before others."""
        number = self.numbers.get(key := hash(message.id))
        proven = proofs.proves(message.proof)
        if number is None or (is_live and not sources[self.logs[number]][3]):
            if number is not None:
                self._late.add(number)
            number = self.numbers[key] = len(self.times)
            for column, value in ((self.times, message.timestamp), (self.logs, log), (self.positions, position)):
                column.append(value)
        elif proven and number not in self._proven:
            self.times[number], self.logs[number], self.positions[number] = message.timestamp, log, position
        if proven:
            self._proven.add(number)

    def order(self) -> Iterator[int]:
        """Yield the numbers, oldest first."""
        return (n for n in sorted(range(len(self.times)), key=self.times.__getitem__) if n not in self._late)


def _find_places(sources: list[Source], numbers: dict[int, int]) -> Callable[[int], Iterator[tuple[int, int]]]:
    """Return what gives the log and the position of each read of a message, by its number. It keeps 32 bytes a read."""
    of, logs, positions = array("q"), array("q"), array("q")
    for log, (fd, end, _, _) in enumerate(sources):
        for position, line in lines_of(fd, 0, end):
            record = codec.read(line)
            if not isinstance(record, BadLine) and (number := numbers.get(hash(record.message_id))) is not None:
                for column, value in ((of, number), (logs, log), (positions, position)):
                    column.append(value)
    order = array("q", sorted(range(len(of)), key=of.__getitem__))

    def places(number: int) -> Iterator[tuple[int, int]]:
        start = bisect_left(order, number, key=of.__getitem__)
        end = bisect_right(order, number, start, key=of.__getitem__)
        return ((logs[n], positions[n]) for n in order[start:end])

    return places


def _read_back(sources: list[Source], places: Iterator[tuple[int, int]], message_id: str) -> Iterator[Read]:
    for log, position in places:
        fd, _, view, is_live = sources[log]
        line = line_at(fd, position)
        yield from (
            read for read in parse_reads([(position if is_live else None, line)], view) if read.message_id == message_id
        )
