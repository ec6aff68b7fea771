"""The live mail that one session owes, asked for or was offered, found without reading the logs whole.

Belongs here: which lines those are, and the table of them, kept up with the logs. ``core.obligations`` judges what is
found as it would judge everything. So the table may offer too much but must never hold back. It is derived, and each
line that it names is read from its log.

The table has a line's position under these words:

    ASK       the id, of a message that asks for an ack
    SENDER    its sender, likewise
    ANSWER    the message's id, of a reply
    READ      the message's id, of a read record
    READER    the session, of a read record about a message that asks
    MARKED    the session, of a read record with a hook's nonce, and of a release

Two files hold it, so that a few new lines cost little: a large one, and a small one with the entries since then. The
small one names the large one's state that it belongs to; beside any other it counts for nothing.
"""

from __future__ import annotations

from ...core import codec
from ...core.claims import Reads
from ...core.inbox import MailState
from ...core.line_forms import may_ask_or_answer, may_release
from ...core.records import BadLine
from ..files import cache
from ..files.lines import boundary, line_at, line_chunks, lines_of
from ..log.logs import parse_messages, parse_reads
from . import word_table
from .word_table import TWINS, TableFile, entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from ...core.records import Read
    from ..files.cache import Mark
    from ..log.logs import End, Logs, OpenLogs
    from .word_table import Entries

    Marks = tuple[Mark, Mark]
    T = TypeVar("T")

TABLE, NEWS = "asking", "asking-news"
MOST, ROOTS = 4096, 8
"""Entries of the small file; more go into the large one. Beside a very large one: so many roots of its number."""
ASK, SENDER, ANSWER, READ, READER, MARKED = b"k", b"s", b"w", b"r", b"R", b"n"
_KEY, _THREAD, _NO_THREAD = b'"thread"', b'"thread":"', b'"thread":null'
_OUR_READ, _OUR_READER = [b"{", b"message_id", b":"], [b",", b"reader_session_id", b":"]
"""The beginning of a read record in our spelling, split at its quotation marks."""
NOTHING: Marks = (cache.NOWHERE, cache.NOWHERE)


def state(logs: Logs, session_id: str, ttls: Mapping[str, float | None]) -> MailState:
    """Return the live mail that asks for an ack and concerns the session, with all answers and the reads that count."""
    with logs.open() as live:
        roster = logs.read_roster()
        lineage = roster.lineage(session_id)
        messages, reads = answer(logs, live, lambda table: table.about(lineage))
        views = live.views()
        return MailState(
            messages=parse_messages(_lines(live.messages, messages), views[0]),
            reads=Reads(parse_reads(_lines(live.reads, reads), views[1])),
            roster=roster,
            ttls=ttls,
        )


def offered(logs: Logs, session_id: str) -> list[Read]:
    """Return the session's records about the live messages that a hook offered it and that it may not have seen."""
    with logs.open() as live:
        return answer(logs, live, lambda table: table.offered(session_id))


def answer(logs: Logs, live: OpenLogs, question: Callable[[AskTable], T]) -> T:
    """Return the answer from a table that is caught up with the open logs; ask again if it was unsound."""
    found = answer_soon(logs, live, question, live.messages_end + live.reads_end)
    if found is not None:
        return found
    table = AskTable(logs, live, None)  # another process wrote the files meanwhile
    table.catch_up()
    table.save()
    return question(table)


def answer_soon(logs: Logs, live: OpenLogs, question: Callable[[AskTable], T], most: int) -> T | None:
    """Return the same; None if the table lacks more than ``most`` bytes of the logs, or was unsound."""
    files: list[TableFile] = []
    try:
        table = AskTable(logs, live, files)
        if table.lag() > most:
            return None
        table.catch_up()
        found = question(table)
        if not table.is_sound():
            return None
        table.save()
        return found
    finally:
        for file in files:
            file.close()


def _lines(fd: int | None, positions: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    return ((position, line_at(fd, position)) for position in sorted(positions)) if fd is not None else iter(())


class AskTable:
    """The table beside the open logs; what it reads joins ``files``, to be closed (None: it begins from the logs)."""

    def __init__(self, logs: Logs, live: OpenLogs, files: list[TableFile] | None) -> None:
        self._logs = logs
        self._live = live
        self._files: list[TableFile] = []
        self._marks = self._large = NOTHING
        self._parts: list[Entries] = []
        self._fresh: list[int] = []
        if files is None:
            return
        table = self._opened(TABLE, files)
        found = _marks(table.head) if table is not None else []
        if table is not None and len(found) == 1 and self._holds(found[0]):
            self._large = self._marks = found[0]
            self._files, self._parts = [table], [table]
            news = self._opened(NEWS, files)
            found = _marks(news.head) if news is not None else []
            if news is not None and len(found) == 2 and found[1] == self._large and self._holds(found[0]):
                self._marks = found[0]
                self._files.append(news)
                self._parts.append(news)

    def _opened(self, name: str, files: list[TableFile]) -> TableFile | None:
        try:
            file = TableFile(self._logs.cache(name))
        except OSError:
            return None
        files.append(file)
        return file

    def _holds(self, marks: Marks) -> bool:
        live = self._live
        ends = (live.messages_end, live.reads_end)
        return all(
            cache.holds(fd, mark, inode) and mark[1] <= end
            for fd, mark, end, (inode, _) in zip((live.messages, live.reads), marks, ends, live.ends, strict=False)
        )

    def is_sound(self) -> bool:
        """Return whether nobody wrote to the files since they were opened."""
        return all(file.is_sound() for file in self._files)

    # -- questions ----------------------------------------------------------------------------------------------------

    def about(self, lineage: Sequence[str]) -> tuple[set[int], set[int]]:
        """Return the positions of the messages and of the read records that concern these sessions."""
        messages: set[int] = set()
        reads: set[int] = set()
        for message_id in self._asks(lineage):
            messages.update(*(self.positions(kind, message_id) for kind in (ASK, ANSWER)))
            reads.update(self.positions(READ, message_id))
        return messages, reads

    def offered(self, session_id: str) -> list[Read]:
        """Return the session's records about the messages that it may not have seen.

        Its other records settle more than the ``MARKED`` ones, never less. So these alone tell which messages to ask
        about, and all records of those tell the rest.
        """
        word = session_id.encode()
        marked = self._by(session_id, set(self.positions(MARKED, word)))
        standing = Reads(marked)
        unseen = {read.message_id for read in marked if standing.unseen(read.message_id)}
        places = {at for message_id in unseen for at in self.positions(READ, message_id.encode())}
        return [read for read in self._by(session_id, places) if read.message_id in unseen]

    def _by(self, session_id: str, positions: Iterable[int]) -> list[Read]:
        records = (codec.read(line) for _, line in _lines(self._live.reads, positions))
        return [record for record in records if not isinstance(record, BadLine) and record.session_id == session_id]

    def _asks(self, lineage: Sequence[str]) -> set[bytes]:
        """Return the ids of the messages that one of these sessions sent or has a record of, and some others'."""
        words = [session.encode() for session in lineage]
        sent = _lines(self._live.messages, {at for word in words for at in self.positions(SENDER, word)})
        messages = (codec.message(line) for _, line in sent)
        found = {message.id.encode() for message in messages if not isinstance(message, BadLine)}
        read = _lines(self._live.reads, {at for word in words for at in self.positions(READER, word)})
        return found | {known[0] for _, line in read if (known := _words(line)) is not None}

    def has_record(self, ids: Iterable[str]) -> bool:
        """Return whether there is a record about one of these messages; also if too many lines may be one."""
        return any(self._has_record(one.encode("utf-8", "surrogatepass")) for one in ids)

    def _has_record(self, word: bytes) -> bool:
        places = (at for _, at in zip(range(TWINS + 1), self.positions(READ, word), strict=False))
        for turn, (_, line) in enumerate(_lines(self._live.reads, places)):
            known = _words(line)
            if turn == TWINS or (known is not None and known[0] == word):
                return True
        return False

    def records(self, ids: Iterable[str]) -> set[int]:
        """Return the positions of the records about these messages, and by chance of others."""
        return {at for one in ids for at in self.positions(READ, one.encode("utf-8", "surrogatepass"))}

    def answers(self, ids: Iterable[str]) -> set[int]:
        """Return the positions of the answers to these messages, and by chance of others."""
        return {at for one in ids for at in self.positions(ANSWER, one.encode("utf-8", "surrogatepass"))}

    def positions(self, kind: bytes, word: bytes) -> Iterator[int]:
        """Yield the positions of a word of a kind, and by chance those of others."""
        for part in self._parts:
            yield from word_table.positions(part, kind, word)

    # -- keeping up with the logs -------------------------------------------------------------------------------------

    def lag(self) -> int:
        """Return how many bytes of the logs the table has not taken in."""
        return self._live.messages_end - self._marks[0][1] + self._live.reads_end - self._marks[1][1]

    def catch_up(self) -> None:
        """Take in the lines since the table's marks."""
        live, (told, read) = self._live, self._marks
        if (told[1], read[1]) == (live.messages_end, live.reads_end):
            return
        asks: set[bytes] = set()
        messages = list(_of_messages(live.messages, told[1], live.messages_end, asks))
        reads = self._early(asks)
        reads += _of_reads(live.reads, read[1], live.reads_end, lambda word: word in asks or self._is_ask(word))
        self._fresh = sorted([*messages, *reads])
        self._parts.append(self._fresh)

    def _is_ask(self, message_id: bytes) -> bool:
        return any(True for _ in self.positions(ASK, message_id))

    def _early(self, asks: Iterable[bytes]) -> list[int]:
        """Return the entries of the read records that precede their messages: only other programs write such."""
        early = _lines(self._live.reads, {at for word in asks for at in self.positions(READ, word)})
        return [entry(READER, known[1], at) for at, line in early if (known := _words(line)) is not None]

    def save(self) -> None:
        """Save what was taken in, in the small file unless it grows too large. Ends the use of the table."""
        live = self._live
        marks = _mark(live.messages, live.ends[0]), _mark(live.reads, live.ends[1])
        if marks == self._marks or not self._logs.derives:
            return
        large, small = self._files[:1], self._files[1:]
        fresh = [*self._fresh, *(one for file in small for one in file.entries())]
        is_small = bool(large) and len(fresh) < max(MOST, ROOTS * int(len(large[0]) ** 0.5))
        if not is_small:
            fresh += [one for file in large for one in file.entries()]
        if self.is_sound():
            name, head = (NEWS, _head(marks, self._large)) if is_small else (TABLE, _head(marks))
            word_table.save(self._logs.cache(name), head, sorted(fresh))


def _of_messages(fd: int | None, start: int, end: int, asks: set[bytes]) -> Iterator[int]:
    """Yield the entries of an open log's messages; add to ``asks`` the ids of those that ask."""
    for place, chunk in line_chunks(fd, end, start) if fd is not None else ():
        ours = chunk.count(_THREAD)
        is_ours = chunk.count(_KEY) == ours + chunk.count(_NO_THREAD) and b"\\u" not in chunk
        if is_ours and b'"ack"' not in chunk:
            yield from _answers(place, chunk)
        else:
            for line in chunk.split(b"\n"):
                if may_ask_or_answer(line):
                    yield from _of_message(line, place, asks)
                place += len(line) + 1


def _answers(place: int, chunk: bytes) -> Iterator[int]:
    """Yield the entries of replies in our spelling; their lines are not decoded."""
    at = chunk.find(_THREAD)
    while at >= 0:
        begin = at + len(_THREAD)
        at = chunk.find(b'"', begin)
        word = chunk[begin:at]
        if b"\\" in word:
            line = chunk[chunk.rfind(b"\n", 0, begin) + 1 :].partition(b"\n")[0]
            yield from _of_message(line, place + chunk.rfind(b"\n", 0, begin) + 1, set())
        else:
            yield entry(ANSWER, word, place + chunk.rfind(b"\n", 0, begin) + 1)
        at = chunk.find(_THREAD, at) if at >= 0 else at


def _of_message(line: bytes, place: int, asks: set[bytes]) -> Iterator[int]:
    message = codec.message(line)
    if isinstance(message, BadLine):
        return
    if message.thread is not None:
        yield entry(ANSWER, message.thread.encode(), place)
    if message.ack:
        word = message.id.encode()
        asks.add(word)
        yield entry(ASK, word, place)
        yield entry(SENDER, message.sender.encode(), place)


def _of_reads(fd: int | None, start: int, end: int, is_ask: Callable[[bytes], bool]) -> Iterator[int]:
    """Yield the entries of an open log's read records."""
    for position, line in lines_of(fd, start, end) if fd is not None else ():
        words = _words(line)
        if words is not None:
            yield entry(READ, words[0], position)
            if is_ask(words[0]):
                yield entry(READER, words[1], position)
            if b'"nonce"' in line or may_release(line):
                yield entry(MARKED, words[1], position)


def _words(line: bytes) -> tuple[bytes, bytes] | None:
    """Return the message's id and the session of a read record; our own spelling is not decoded."""
    ours = line.split(b'"', 8)
    once = line.count(b'message_id"') == line.count(b'session_id"') == 1
    is_ours = ours[:3] == _OUR_READ and ours[4:7] == _OUR_READER and len(ours) == 9  # else it is torn
    if is_ours and once and b"\\" not in line:
        return ours[3], ours[7]
    record = codec.read(line)
    return None if isinstance(record, BadLine) else (record.message_id.encode(), record.session_id.encode())


def _mark(fd: int | None, at: End) -> Mark:
    return cache.NOWHERE if fd is None else cache.mark(fd, boundary(fd, at[1]), at[0])


def _head(*marks: Marks) -> bytes:
    return b" ".join(b"%d %d %d" % mark for pair in marks for mark in pair)


def _marks(head: bytes) -> list[Marks]:
    """Return the marks in a table's head, a pair for each state of the logs."""
    words = head.split()
    if not all(map(bytes.isdigit, words)):
        return []
    numbers = list(map(int, words))
    marks = [(numbers[i], numbers[i + 1], numbers[i + 2]) for i in range(0, len(numbers) - 2, 3)]
    return list(zip(marks[::2], marks[1::2], strict=False))
