"""The live mail that nobody took: dead letters are among it. Found without reading the logs whole.

Belongs here: which lines that is, told from their bytes, and the table of them, kept up with the logs.
``core.dead_letters`` judges. So this may let too much through but must never hold back. The table is derived.

Most mail that nobody took has no read record at all. Then its sender, its recipient and its time alone decide. The
table has these numbers, by group: of a group's messages the older ones are dead. No line is decoded to count them.

    group    sender, recipient, hours to live
    entry    the digest of an id; its message's instant; its position, sorted by group and instant

All other mail is *doubtful*: it was given back, or read by its title, or another program spelt it otherwise. Its lines,
its records and its answers (``asking``) are decoded at each question.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from sys import byteorder

from ..core import codec
from ..core.claims import Reads
from ..core.dead_letters import dead_reason, is_concerned
from ..core.inbox import MailState
from ..core.instant import HOUR
from ..core.records import BadLine, Message, Record
from . import asking, cache
from .asking import READ, AskTable
from .index_keys import number_of
from .lines import boundary, line_at, line_chunks, lines_of
from .logs import parse_messages, parse_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..core.records import Read
    from .cache import Mark
    from .logs import Logs, OpenLogs

    Group = tuple[str, str, int | None]

TABLE = "untaken"
MUCH, MANY = 1 << 17, 50_000
"""Bytes of new lines for which the table is written again, and for each so many entries more: fewer cost less to read
again."""
_ID, _TTL = b'{"id":"', b'"ttl_hours":'
_FEW = 64
"""Ids whose lines are searched for one by one; for more the table begins again."""


class Lonely(Record):
    """The mail that perhaps nobody took: how many messages are surely dead letters, undecoded, and the others with
    their reads and their answers."""

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
    counted: bool = False,
) -> Lonely:
    """Return the mail that perhaps nobody took, from or to the session (None: anyone).

    The records and answers are there, too, that concern the ids which ``about`` gives. It is asked once the logs are
    open: whatever the steward moves later is still in them. ``counted``: dead letters that nobody has a record of are
    counted alone.
    """
    with logs.open() as live:
        others = list(about())

        def question(asked: AskTable) -> tuple[UntakenTable, set[int], set[int]]:
            table = _caught_up(logs, live, asked)
            answers = asked.answers([*table.doubtful, *others])
            said = parse_messages(_lines(live.messages, answers))
            return table, answers, asked.records([*table.doubtful, *others, *said])

        table, answers, records = asking.answer(logs, live, question)
        if logs.derives:
            table.save(logs.cache(TABLE))
        state = MailState(messages={}, reads=Reads(), roster=logs.read_roster(), ttls=ttls)
        dead = table.dead(state, session_id, now)
        places = {at for known in table.doubtful.values() for at in known} | answers
        positions = set() if counted and not answers else table.positions(dead)
        surely = table.count(dead) - len(positions & answers) if counted else 0
        views = live.views()
        messages = parse_messages(_lines(live.messages, places if counted else places | positions), views[0])
        return Lonely(surely, messages, list(parse_reads(_lines(live.reads, records), views[1])))


def _lines(fd: int | None, places: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    return ((at, line_at(fd, at)) for at in sorted(places)) if fd is not None else ()


def _caught_up(logs: Logs, live: OpenLogs, asked: AskTable) -> UntakenTable:
    table = UntakenTable(live, asked, cache.load(logs.cache(TABLE)) or b"")
    try:
        table.catch_up()
    except ManyUnknown:
        table = UntakenTable(live, asked, b"")
        table.catch_up()
    return table


class UntakenTable:
    """The table beside the open logs, from what was saved of it (empty: from nothing)."""

    def __init__(self, live: OpenLogs, asked: AskTable, saved: bytes) -> None:
        self._live = live
        self._asked = asked
        self._starts = (0, 0)
        self.doubtful: dict[str, list[int]] = {}
        self.groups: list[Group] = []
        self._bounds: list[int] = [0]
        self._saved = memoryview(b"").cast("Q")
        self._size = 0
        self._fresh: list[tuple[int, int, int, int]] = []
        self._load(saved)
        self._numbers = {group: n for n, group in enumerate(self.groups)}
        self._gone: set[int] = set()

    def _load(self, saved: bytes) -> None:
        head, _, rest = saved.partition(b"\n")
        obj = codec.parse(head) if head else None
        try:
            marks, groups, counts, doubtful = _checked(obj)
        except (TypeError, ValueError, KeyError):  # sealed, but of another shape
            return
        files, inodes = (self._live.messages, self._live.reads), [inode for inode, _ in self._live.ends]
        if len(rest) == 24 * sum(counts) and all(map(cache.holds, files, marks, inodes)):
            self._starts = marks[0][1], marks[1][1]
            self.groups, self.doubtful = groups, doubtful
            self._bounds = [0, *accumulate(counts)]
            self._saved, self._size = memoryview(rest).cast("Q"), sum(counts)

    # -- keeping up with the logs -------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take in the lines since the table's marks; raise ``ManyUnknown`` to begin from nothing."""
        if self._starts == (self._live.messages_end, self._live.reads_end):
            return
        taken, doubted = self._read_records()
        known = {number: n for n, number in enumerate(self._saved[: self._size].tolist())}
        for message_id in doubted:
            n = known.pop(number_of(_spelt(message_id)), None)
            self.doubtful.setdefault(message_id, [])
            if n is not None:
                self._doubt(message_id, n)
        for word in taken:
            n = known.pop(number_of(word), None)
            if n is not None:
                self._gone.add(n)
        missing = self._read_messages(known, taken)
        missing.update(one for one in doubted if not self.doubtful[one] and self._is_read(_spelt(one)))
        if missing:
            self._locate(missing)

    def _doubt(self, message_id: str, n: int) -> None:
        self._gone.add(n)
        self.doubtful.setdefault(message_id, []).append(self._row(n)[2])

    def _row(self, n: int) -> tuple[int, int, int]:
        """Return the digest, the instant and the position of an entry."""
        if n >= self._size:
            number, _, when, at = self._fresh[n - self._size]
            return number, when, at
        return self._saved[n], self._saved[n + self._size], self._saved[n + 2 * self._size]

    def _read_records(self) -> tuple[set[bytes], set[str]]:
        """Return the ids of new records by which a message is surely taken, and those of other new records.

        A claim is no record here: it takes nothing that nobody read."""
        from .scan import CLAIM, PLAIN_READ  # regular expressions, which need news

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

    def _read_messages(self, known: dict[int, int], taken: set[bytes]) -> set[str]:
        """Take in the new messages; return the ids of older ones that are in doubt since, and not in the table."""
        from .usual_lines import UsualLines  # likewise

        missing: set[str] = set()
        usual, begin, fd = UsualLines(), len(_ID), self._live.messages
        for at, line in lines_of(fd, self._starts[0], self._live.messages_end) if fd is not None else ():
            if line.startswith(_ID) and line[begin : line.find(b'"', begin)] in taken:
                continue
            fields = usual.fields(line)
            message_id = fields[0] if fields is not None else _id_of(line)
            if message_id is None:
                continue
            word = _spelt(message_id)
            number, is_read = number_of(word), self._is_read(word)
            if fields is None or is_read or message_id in self.doubtful or number in known:
                if is_read and message_id not in self.doubtful:
                    missing.add(message_id)
                if number in known:
                    self._doubt(message_id, known.pop(number))
                self.doubtful.setdefault(message_id, []).append(at)
            elif word not in taken:
                known[number] = self._size + len(self._fresh)
                self._add(number, (fields[1], fields[2][0], _hours(line)), fields[3], at)
        return missing

    def _is_read(self, message_id: bytes) -> bool:
        """Return whether an older record is about a message: what is new about it concerns an older line."""
        end = self._starts[1]
        return end > 0 and any(at < end for at in self._asked.positions(READ, message_id))

    def _add(self, number: int, group: Group, when: int, at: int) -> None:
        n = self._numbers.get(group)
        if n is None:
            n = self._numbers[group] = len(self.groups)
            self.groups.append(group)
        self._fresh.append((number, n, when, at))

    def _locate(self, missing: set[str]) -> None:
        """Add the older lines of messages that are in doubt since, in our spelling; others are known."""
        if len(missing) > _FEW or self._live.messages is None:
            raise ManyUnknown
        for place, chunk in line_chunks(self._live.messages, self._starts[0]):
            for message_id in missing:
                key, at = b'"id":"%s"' % _spelt(message_id), -1
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
        rows: list[list[tuple[int, int, int]]] = [[] for _ in self.groups]
        for g, (begin, end) in enumerate(pairwise(self._bounds)):
            rows[g] = [(when, number, at) for number, when, at in map(self._row, self._kept(begin, end))]
        for n, (number, g, when, at) in enumerate(self._fresh, self._size):
            rows[g] += [] if n in self._gone else [(when, number, at)]
        groups = [[*group, len(some)] for group, some in zip(self.groups, rows, strict=True) if some]
        every = [row for some in rows for row in sorted(some)]
        said = {"marks": marks, "groups": groups, "doubtful": self.doubtful}
        head = codec.dumps(said).encode("utf-8", "surrogatepass")
        numbers = [row[column] for column in (1, 0, 2) for row in every]
        cache.save(path, head + b"\n" + b"".join([number.to_bytes(8, byteorder) for number in numbers]))

    def _kept(self, begin: int, end: int) -> list[int]:
        return [n for n in range(begin, end) if n not in self._gone]

    @staticmethod
    def _is_whole(fd: int | None, end: int) -> bool:
        return fd is None or boundary(fd, end) == end

    # -- questions ----------------------------------------------------------------------------------------------------

    def dead(self, state: MailState, session_id: str | None, now: int) -> list[range]:
        """Return the entries of the messages without any record that are dead letters, the session's or anyone's."""
        reader = None if session_id is None else state.roster.reader(session_id)
        known: dict[tuple[str, int | None], int] = {}
        latest = []
        for sender, to, hours in self.groups:
            if reader is not None and not is_concerned(Message("", sender, (to,), 0, ""), reader):
                latest.append(-1)
                continue
            if (to, hours) not in known:
                known[to, hours] = _latest(to, hours, state, now)
            latest.append(known[to, hours])
        times = self._saved[self._size : 2 * self._size]
        spans = [
            range(begin, bisect_right(times, last, begin, end))
            for last, (begin, end) in zip(latest, pairwise(self._bounds), strict=False)
            if last >= 0
        ]
        fresh = enumerate(self._fresh, self._size)
        return [*spans, *(range(n, n + 1) for n, (_, g, when, _) in fresh if when <= latest[g])]

    def count(self, spans: Iterable[range]) -> int:
        """Return how many messages these entries are of."""
        return sum(len(span) - sum(n in span for n in self._gone) for span in spans)

    def positions(self, spans: Iterable[range]) -> set[int]:
        """Return where these messages stand."""
        return {self._row(n)[2] for span in spans for n in self._kept(span.start, span.stop)}


def _checked(obj: Any) -> tuple[list[Mark], list[Group], list[int], dict[str, list[int]]]:
    """Return the marks, the groups, their lengths and the doubtful messages of a table's head; raise for another
    shape."""
    marks = [(inode, at, checksum) for inode, at, checksum in obj["marks"]]
    groups: list[Group] = [(sender, to, hours) for sender, to, hours, _ in obj["groups"]]
    counts = [count for *_, count in obj["groups"]]
    doubtful: dict[str, list[int]] = {**obj["doubtful"]}
    words = {type(word) for group in groups for word in group[:2]} | {*map(type, doubtful)}
    numbers = [*counts, *(group[2] or 0 for group in groups), *(at for some in doubtful.values() for at in some)]
    numbers += [number for mark in marks for number in mark]
    if words - {str} or {*map(type, numbers)} - {int} or len(marks) != 2 or min(numbers) < 0:
        raise ValueError
    return marks, groups, counts, doubtful


def _spelt(message_id: str) -> bytes:
    return message_id.encode("utf-8", "surrogatepass")


def _id_of(line: bytes) -> str | None:
    message = codec.message(line)
    return None if isinstance(message, BadLine) else message.id


def _hours(line: bytes) -> int | None:
    """Return the hours to live in a line of our usual spelling."""
    begin = line.rfind(_TTL) + len(_TTL)
    word = line[begin : line.find(b",", begin)]
    return None if word == b"null" else int(word)


def _latest(to: str, hours: int | None, state: MailState, now: int) -> int:
    """Return the last instant at which a message to one address was written that is a dead letter; -1 if there is none.

    A later message never expires before an earlier one, even if its recipient was frozen meanwhile."""

    def is_dead(when: int) -> bool:
        return dead_reason(Message("", "", (to,), when, "", ttl_hours=hours), state, now) is not None

    low, high = -1, 1 << 53
    ttl = state.ttls[state.roster.mode(to)] if hours is None else hours
    usual = now - int((ttl or 0) * HOUR)
    if is_dead(usual) and not is_dead(usual + 1):
        return usual
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_dead(middle) else (low, middle - 1)
    return low
