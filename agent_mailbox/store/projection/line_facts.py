"""The facts that the projection has of a line, and the lines at places.

Belongs here: a message's facts and a record's kind, told by the codec, or of many lines by their bytes (``hurried``).
"""

from __future__ import annotations

from ...core import codec
from ...core.records import BadLine
from ..files import system
from ..files.lines import CHUNK, line_at
from .index_keys import BITS, DOUBTS, LIVE, MARKED, POSITION, TAKES, Doubt, month_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.exact_lines import Fields
    from ...core.records import Read
    from ..archive.archive import Archive
    from ..log.logs import OpenLogs

    Facts = tuple[str, str, int, str | None, str | None, int, bool]
    """Id, sender, timestamp (ms), thread, the one recipient, hours to live (0: its mode's), whether it asks for an ack.

    No recipient if anything else hangs on who takes it when."""
    Record = tuple[bytes, bytes, int]
    """The message's id, the session, the kind."""
    Ways = tuple[Callable[[bytes], Facts | None], Callable[[bytes], Record | None], Callable[[bytes], Fields | None]]


class Lines:
    """The lines at places, read in their order. To be closed."""

    def __init__(self, live: OpenLogs, archive: Archive) -> None:
        self._live = live
        self._archive = archive
        self._log = self._start = -1
        self._fd: int | None = None
        self._data = b""

    def at(self, place: int) -> bytes:
        """Return the line that begins at a place."""
        position = place & POSITION
        if place >> BITS != self._log:
            self._turn_to(place)
        begin = position - self._start
        end = self._data.find(b"\n", begin) if 0 <= begin < len(self._data) else -1
        if end < 0 and self._fd is not None:
            self._data, self._start, begin = system.pread(self._fd, CHUNK, position), position, 0
            end = self._data.find(b"\n")
            if end < 0:
                return line_at(self._fd, position)
        return self._data[begin:end]

    def _turn_to(self, place: int) -> None:
        self.close()
        self._log, self._data, self._start = place >> BITS, b"", 0
        self._fd = self._live.messages if place >= LIVE else self._archive.log(month_of(place)).open()
        if self._fd is None:
            raise Doubt("a log is gone")

    def close(self) -> None:
        """Close what was opened."""
        if self._fd is not None and self._log != LIVE >> BITS:
            system.close(self._fd)
        self._fd = None


def hurried() -> Ways:
    """Return ``facts_of``, ``record_of`` and ``fields_of`` for many lines: most are exactly in our spelling."""
    from ...core.exact_lines import ExactLines, asks_for_ack, hours_of, plain_record

    exact = ExactLines().fields

    def facts(line: bytes) -> Facts | None:
        fields = exact(line)
        if fields is None:
            return facts_of(line)
        return fields[0], fields[1], fields[3], fields[6], fields[2][0], hours_of(line), asks_for_ack(line)

    def record(line: bytes) -> Record | None:
        found = plain_record(line)
        if found is None:
            return record_of(line)
        return found[0], found[1], (TAKES if found[2] else 0) | (MARKED if found[3] else 0)

    return facts, record, lambda line: exact(line) or fields_of(line)


def facts_of(line: bytes) -> Facts | None:
    """Return what the table has of a message in any spelling; None if the line is none."""
    m = codec.message(line)
    if isinstance(m, BadLine):
        return None
    is_plain = len(m.recipients) == 1 and not m.read_by and not m.extra and m.expires_at is None and m.when is None
    hours = m.ttl_hours or 0
    word = m.recipients[0] if is_plain and m.type != "note" and hours == int(hours) else None
    return m.id, m.sender, m.timestamp, m.thread, word, int(hours), m.ack


def record_of(line: bytes) -> tuple[bytes, bytes, int] | None:
    """Return the message, the session and the kind of a record in any spelling; None if the line is none."""
    read = codec.read(line)
    if isinstance(read, BadLine):
        return None
    message, reader = (word.encode("utf-8", "surrogatepass") for word in (read.message_id, read.session_id))
    return message, reader, kind_of(read)


def kind_of(read: Read) -> int:
    kind = 0 if read.nonce is None else MARKED
    if read.event == "release":
        return kind | DOUBTS | MARKED
    if read.title:
        return kind | DOUBTS
    return kind | TAKES if read.event in ("read", "ack") else kind


def fields_of(line: bytes) -> Fields | None:
    """Return the fields of a message in any spelling; None if the line is none."""
    m = codec.message(line)
    if isinstance(m, BadLine):
        return None
    return m.id, m.sender, m.recipients, m.timestamp, m.subject, m.content, m.thread
