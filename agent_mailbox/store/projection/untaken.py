"""The live mail that nobody took: dead letters are among it. Found without reading the logs whole.

Belongs here: which lines that is, told from their bytes, and the table of them, kept up with the logs.
``core.dead_letters`` judges. So this may let too much through but must never hold back. The table is derived.

Most mail that nobody took has no read record at all. Then its sender, its recipient and its time alone decide. The
table has these numbers (``untaken_rows``), by group: of a group's messages the older ones are dead. To count them no
line is decoded, and no other group is looked at.

    group    recipient, hours to live
    row      instant, the digest of the id, position, the digest of the sender; sorted by group and instant

All other mail is *doubtful*: it was given back, or read by its title, or another program spelt it otherwise. Its lines,
its records and its answers (``asking``) are decoded at each question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain, islice

from ...core import codec
from ...core.address import ROLE, TAG, role_or_tag, route
from ...core.claims import Reads
from ...core.dead_letters import last_dead
from ...core.inbox import MailState
from ...core.line_forms import message_id_of, words_of
from ...core.records import BadLine, Message, Record
from ..files import cache
from ..files.lines import boundary, line_at, line_chunks, lines_of
from ..log.logs import parse_messages, parse_reads
from . import asking, untaken_rows
from .asking import READ, AskTable
from .index_keys import number_of
from .untaken_rows import SavedRows, hours_of, is_for_one, spelt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from ...core.address import Reader
    from ...core.records import Read
    from ...core.roster import Roster
    from ..log.logs import Logs, OpenLogs
    from .untaken_rows import Group, Row

    T = TypeVar("T")

TABLE = "untaken"
MUCH, MANY = 1 << 17, 50_000
"""Bytes of new lines for which the table is written again, and for each so many rows more: fewer cost less to read
again."""
_FEW = 64
"""Ids whose lines are searched for one by one; for more the table begins again."""
_LITTLE = 1 << 15
"""Bytes of new lines whose ids are looked up in the saved rows; for more, the ids of these are read whole."""


class Lonely(Record):
    """The mail that perhaps nobody took, with its reads and its answers.

    ``surely``: how many messages more are dead letters; these are not decoded, and older than each dead letter that is
    (unless that one is doubtful).
    """

    surely: int
    messages: dict[str, Message]
    reads: list[Read]


class ManyUnknown(Exception):
    """Too many lines are unknown to the table."""


def found(
    logs: Logs,
    session_id: str | None,
    ttls: Mapping[str, float | None],
    now: int,
    *,
    about: Callable[[], Iterable[str]] = tuple,
    since: int = 0,
    newest: int | None = None,
    waiting: bool = False,
) -> Lonely:
    """Return the mail that perhaps nobody took, from or to the session (None: anyone).

    The records and answers are there, too, that concern the ids which ``about`` gives. It is asked once the logs are
    open: whatever the steward moves later is still in them. Dead letters without any record are left out if they were
    sent before ``since`` (ms). All but the ``newest`` of them are counted alone. ``waiting``: the mail of the session
    that may wait for nobody is there, too.
    """
    with logs.open() as live:
        others = list(about())
        state = MailState(messages={}, reads=Reads(), roster=logs.read_roster(), ttls=ttls)

        def question(asked: AskTable) -> tuple[int, set[int], set[int]]:
            def part(table: UntakenTable) -> tuple[int, set[int], set[int]]:
                dead = table.dead(state, session_id, now, since)
                answers = asked.answers([*table.doubtful, *others])
                answers |= table.waiting(state.roster, session_id) if waiting else set()
                # What a killed steward left in both logs is decoded, and counts once.
                shown = table.positions(dead, newest) | table.positions_of(others, dead)
                surely = table.count(dead) - len(shown) - table.count_at(answers - shown, dead)
                doubtful = {at for known in table.doubtful.values() for at in known}
                said = parse_messages(_lines(live.messages, answers))
                return surely, shown | answers | doubtful, asked.records([*table.doubtful, *others, *said])

            return _answer(logs, live, asked, part, logs.cache(TABLE))

        surely, messages, records = asking.answer(logs, live, question)
        views = live.views()
        return Lonely(
            surely,
            parse_messages(_lines(live.messages, messages), views[0]),
            list(parse_reads(_lines(live.reads, records), views[1])),
        )


def _lines(fd: int | None, places: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    return ((at, line_at(fd, at)) for at in sorted(places)) if fd is not None else ()


def _answer(logs: Logs, live: OpenLogs, asked: AskTable, question: Callable[[UntakenTable], T], path: str | None) -> T:
    """Return the answer of the table that was saved at ``path``, caught up; ask one from nothing if that is no use."""
    saved = SavedRows(path)
    try:
        table = UntakenTable(live, asked, saved)
        table.catch_up()
        answer = question(table)
        if saved.is_sound():
            if logs.derives:
                table.save(logs.cache(TABLE))
            return answer
    except (ManyUnknown, IndexError, OverflowError):  # the latter two while another process writes the table
        if path is None:
            raise
    finally:
        saved.close()
    return _answer(logs, live, asked, question, None)


class UntakenTable:
    """The table beside the open logs, from the rows that were saved of it."""

    def __init__(self, live: OpenLogs, asked: AskTable, saved: SavedRows) -> None:
        self._live = live
        self._asked = asked
        self._saved = saved
        self._starts = (0, 0)
        files, inodes = (live.messages, live.reads), [inode for inode, _ in live.ends]
        if all(map(cache.holds, files, saved.marks, inodes)):
            self._starts = saved.marks[0][1], saved.marks[1][1]
        else:
            saved.forget()
        self.doubtful = saved.doubtful
        self._size = len(saved)
        self._fresh: list[tuple[Group, Row]] = []
        self._places: dict[int, int] | None = None
        self._gone: set[int] = set()

    # -- keeping up with the logs -------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take in the lines since the table's marks; raise ``ManyUnknown`` to begin from nothing."""
        news = self._live.messages_end - self._starts[0] + self._live.reads_end - self._starts[1]
        if not news:
            return
        if news > _LITTLE:
            self._places = {number: n for n, number in enumerate(self._saved.ids.all())}
        taken, doubted = self._read_records()
        for message_id in doubted:
            self.doubtful.setdefault(message_id, [])
            n = self._row_of(number_of(spelt(message_id)))
            if n is not None:
                self._doubt(message_id, n)
        for word in taken:
            n = self._row_of(number_of(word))
            if n is not None:
                self._gone.add(n)
        # Before the new messages: one may stand a second time there, and the first line of an id counts.
        missing = {one for one in doubted if not self.doubtful[one] and self._is_read(spelt(one))}
        missing |= self._read_messages(taken)
        if missing:
            self._locate(missing)

    def _row_of(self, number: int) -> int | None:
        """Return the row of an id's digest, if the table has one."""
        if self._places is not None:
            found = iter([self._places[number]] if number in self._places else ())
        else:
            fresh = (n for n, (_, row) in enumerate(self._fresh, self._size) if row[1] == number)
            found = chain(self._saved.of_id(number), fresh)
        return next((n for n in found if n not in self._gone), None)

    def _doubt(self, message_id: str, n: int) -> None:
        self._gone.add(n)
        self.doubtful.setdefault(message_id, []).append(self._row(n)[2])

    def _row(self, n: int) -> Row:
        return self._saved.row(n) if n < self._size else self._fresh[n - self._size][1]

    def _read_records(self) -> tuple[set[bytes], set[str]]:
        """Return the ids of new records by which a message is surely taken, and those of other new records.

        A claim is no record here: it takes nothing that nobody read."""
        from ...core.exact_lines import CLAIM, PLAIN_READ  # regular expressions, which need news

        taken: set[bytes] = set()
        doubted: set[str] = set()
        fd = self._live.reads
        for _, line in lines_of(fd, self._starts[1], self._live.reads_end) if fd is not None else ():
            plain = PLAIN_READ.fullmatch(line)
            if plain is not None:
                if plain[2] != b"seen":
                    taken.add(plain[1])
            elif (claim := CLAIM.fullmatch(line)) is None or claim[1] != b"claim":
                record = codec.read(line)
                if not isinstance(record, BadLine):
                    doubted.add(record.message_id)
        return {word for word in taken if word.decode() not in doubted and word.decode() not in self.doubtful}, doubted

    def _read_messages(self, taken: set[bytes]) -> set[str]:
        """Take in the new messages; return the ids of older ones that are in doubt since, and not in the table."""
        from ...core.exact_lines import ExactLines  # likewise

        missing: set[str] = set()
        usual, fd = ExactLines(), self._live.messages
        for at, line in lines_of(fd, self._starts[0], self._live.messages_end) if fd is not None else ():
            if message_id_of(line) in taken and is_for_one(line):
                continue
            fields = usual.fields(line)
            message_id = fields[0] if fields is not None else _id_of(line)
            if message_id is None:
                continue
            word = spelt(message_id)
            number, is_read = number_of(word), self._is_read(word)
            n = self._row_of(number)
            if fields is None or is_read or message_id in self.doubtful or n is not None:
                if is_read and message_id not in self.doubtful:
                    missing.add(message_id)
                if n is not None:
                    self._doubt(message_id, n)
                self.doubtful.setdefault(message_id, []).append(at)
            elif word not in taken:
                if self._places is not None:
                    self._places[number] = self._size + len(self._fresh)
                group = fields[2][0], hours_of(line)
                self._fresh.append((group, (fields[3], number, at, number_of(spelt(fields[1])))))
        return missing

    def _is_read(self, message_id: bytes) -> bool:
        """Return whether an older record is about a message: what is new about it concerns an older line."""
        end = self._starts[1]
        return end > 0 and any(at < end for at in self._asked.positions(READ, message_id))

    def _locate(self, missing: set[str]) -> None:
        """Add the older lines of messages that are in doubt since, in our spelling; others are known."""
        if len(missing) > _FEW or self._live.messages is None:
            raise ManyUnknown
        for place, chunk in line_chunks(self._live.messages, self._starts[0]):
            for message_id in missing:
                key, at = b'"id":"%s"' % spelt(message_id), -1
                while (at := chunk.find(key, at + 1)) >= 0:
                    begin = chunk.rfind(b"\n", 0, at) + 1
                    places = self.doubtful[message_id]
                    if place + begin not in places and _id_of(chunk[begin:].partition(b"\n")[0]) == message_id:
                        places.append(place + begin)

    def save(self, path: str) -> None:
        """Save the table if there is much news."""
        live = self._live
        ends = boundary(live.messages, live.messages_end) if live.messages is not None else 0, live.reads_end
        if ends[0] - self._starts[0] + ends[1] - self._starts[1] < MUCH * (1 + self._size // MANY):
            return
        if live.messages is None or ends[0] != live.messages_end or not self._is_whole(live.reads, live.reads_end):
            return  # a last line without its newline is read again
        files, inodes = (live.messages, live.reads), [inode for inode, _ in live.ends]
        marks = [
            cache.NOWHERE if fd is None else cache.mark(fd, end, inode)
            for fd, end, inode in zip(files, ends, inodes, strict=False)
        ]
        groups: dict[Group, list[Row]] = {}
        rows = self._saved.rows()
        for g, group in enumerate(self._saved.groups()):
            groups[group] = [rows[n] for n in self._kept(self._saved.span(g))]
        for n, (group, row) in enumerate(self._fresh, self._size):
            if n not in self._gone:
                groups.setdefault(group, []).append(row)
        if self._saved.is_sound():
            untaken_rows.save(path, marks, self.doubtful, groups)

    def _kept(self, span: Iterable[int]) -> Iterator[int]:
        return (n for n in span if n not in self._gone)

    @staticmethod
    def _is_whole(fd: int | None, end: int) -> bool:
        return fd is None or boundary(fd, end) == end

    # -- questions ----------------------------------------------------------------------------------------------------

    def dead(self, state: MailState, session_id: str | None, now: int, since: int = 0) -> list[range]:
        """Return the rows of the messages without any record that are dead letters, the session's or anyone's."""
        known: dict[Group, int] = {}

        def latest(group: Group) -> int:
            if group not in known:
                known[group] = last_dead(*group, state, now)
            return known[group]

        saved = self._saved
        mine, words, senders = self._concerning(None if session_id is None else state.roster.reader(session_id))
        spans = []
        for g in mine:
            span, last = saved.span(g), latest(saved.group(g))
            begin = bisect_left(saved.times, since, span.start, span.stop) if since else span.start
            spans.append(range(begin, bisect_right(saved.times, last, begin, span.stop)))
        for g, n in self._sent(senders or ()):
            if g not in mine and since <= saved.times[n] <= latest(saved.group(g)):
                spans.append(range(n, n + 1))
        for n, (group, (when, _, _, sender)) in enumerate(self._fresh, self._size):
            is_mine = senders is None or sender in senders or group[0] in words
            if is_mine and since <= when <= latest(group):
                spans.append(range(n, n + 1))
        return spans

    def waiting(self, roster: Roster, session_id: str | None) -> set[int]:
        """Return where the mail without any record stands that may wait for nobody, the session's or anyone's.

        Mail for one agent may: that one may be its sender."""
        few: dict[str, bool] = {}

        def may_wait(word: str) -> bool:
            if word not in few:
                few[word] = roster.mode(word) in (ROLE, TAG) and len(roster.carriers(role_or_tag(word))) < 2
            return few[word]

        saved, lineage = self._saved, None if session_id is None else roster.lineage(session_id)
        senders = None if lineage is None else {number_of(spelt(one)) for one in lineage}
        if senders is None:
            rows = {n for g, word in enumerate(saved.words) if may_wait(word) for n in saved.span(g)}
        else:
            rows = {n for g, n in self._sent(senders) if may_wait(saved.words[g])}
        for n, (group, row) in enumerate(self._fresh, self._size):
            if (senders is None or row[3] in senders) and may_wait(group[0]):
                rows.add(n)
        return {self._row(n)[2] for n in self._kept(rows)}

    def _concerning(self, reader: Reader | None) -> tuple[Collection[int], set[str], set[int] | None]:
        """Return the saved groups that reach the reader (None: all), by which words, and the digests of its lineage."""
        words = self._saved.words
        if reader is None:
            return range(len(words)), set(), None
        reached = {word for word in words_of(reader) if route((word,), reader) is not None}
        mine = {g for word in reached for g in range(bisect_left(words, word), bisect_right(words, word))}
        return mine, reached, {number_of(spelt(one)) for one in reader.lineage}

    def _sent(self, senders: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the group and the row of what these sent."""
        for sender in senders:
            g = 0
            for n in self._saved.of_sender(sender):
                g = bisect_right(self._saved.firsts, n, g) - 1
                yield g, n

    def count(self, spans: Iterable[range]) -> int:
        """Return how many messages these rows are of."""
        return sum(len(span) - sum(n in span for n in self._gone) for span in spans)

    def count_at(self, positions: set[int], spans: Sequence[range]) -> int:
        """Return how many of these rows stand at the positions."""
        if len(positions) > _FEW:
            return len(positions & self.positions(spans, None))
        rows = {n for at in positions for n in self._saved.positions.places(at)}
        rows.update(n for n, (_, row) in enumerate(self._fresh, self._size) if row[2] in positions)
        return sum(any(n in span for span in spans) for n in self._kept(rows))

    def positions(self, spans: Iterable[range], newest: int | None) -> set[int]:
        """Return where these messages stand, or the ``newest`` of them."""
        if newest is None:
            return {self._row(n)[2] for span in spans for n in self._kept(span)}
        rows = [self._row(n) for span in spans for n in islice(self._kept(reversed(span)), newest)]
        return {at for _, _, at, _ in sorted(rows)[len(rows) - newest if newest < len(rows) else 0 :]}

    def positions_of(self, ids: Iterable[str], spans: Sequence[range]) -> set[int]:
        """Return where those of these rows stand that are of messages with these ids, and by chance of others."""
        fresh = {row[1]: n for n, (_, row) in enumerate(self._fresh, self._size)}
        numbers = {number_of(spelt(message_id)) for message_id in ids}
        rows = {fresh[number] for number in numbers & fresh.keys()}
        rows.update(n for number in numbers for n in self._saved.of_id(number))
        return {self._row(n)[2] for n in self._kept(rows) if any(n in span for span in spans)}


def _id_of(line: bytes) -> str | None:
    message = codec.message(line)
    return None if isinstance(message, BadLine) else message.id
