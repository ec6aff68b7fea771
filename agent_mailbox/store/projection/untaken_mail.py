"""The live mail that nobody took: dead letters are among it. Found without reading the logs whole.

Belongs here: the question to the projection which mail that is. ``core.dead_letters`` judges what is found as it would
judge everything. Without a projection everything is read.

Most mail that nobody took has no read record at all: it is *lonely*. Then its sender, its one recipient and its time
alone decide. So it is counted by its address (recipient, hours to live): of an address the older ones are dead, and no
line is decoded. Mail is *doubtful* if its lines or records may say more. Its lines, its records and its answers are
decoded at each question.
"""

from __future__ import annotations

from ...core.address import ROLE, TAG, role_or_tag, route
from ...core.dead_letters import last_dead
from ...core.inbox import InboxState
from ...core.line_forms import words_of
from ...core.message_reads import Reads
from ...core.records import Message, Record
from ..files.lines import lines_of
from ..log.logs import OpenLogs, parse_messages, parse_reads
from .index_keys import DOUBTFUL, LONELY, NEVER, number_of_id, term_of_answer
from .open_ends import ANSWERS, IS_LIVE, OF_IDS, RECORDS, ROW, ask, lines_at, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...core.records import Read
    from ..log.logs import Logs
    from .projection_file import Connection

_LONELY = f"state = {LONELY} AND {IS_LIVE}"


class UntakenMail(Record):
    """The mail that perhaps nobody took, with its reads and its answers.

    ``surely``: how many messages more are dead letters; these are not decoded, and older than each dead letter that is
    (unless that one is doubtful).
    """

    surely: int
    messages: dict[str, Message]
    reads: list[Read]


def find_untaken(
    logs: Logs,
    session_id: str | None,
    ttls: Mapping[str, float | None],
    now: int,
    *,
    about: Callable[[], Iterable[str]] = tuple,
    since: int | None = None,
    newest: int | None = None,
    waiting: bool = False,
) -> UntakenMail:
    """Return the mail that perhaps nobody took, from or to the session (None: anyone).

    The records and answers are there, too, that concern the ids which ``about`` gives. It is asked once the logs are
    open: whatever the steward moves later is still in them. Dead letters without any record are left out if they were
    sent before ``since`` (ms). All but the ``newest`` of them are counted alone. ``waiting``: the mail of the session
    that may wait for nobody is there, too.
    """

    def question(db: Connection, live: OpenLogs) -> UntakenMail:
        others = [*map(number_of_id, about())]
        state = InboxState(messages={}, reads=Reads(), roster=logs.read_roster(), ttls=ttls)
        lonely = LonelyMail(db, state, session_id, now, NEVER if since is None else since)
        doubtful = db.execute(f"SELECT place, id FROM messages WHERE state = {DOUBTFUL} AND {IS_LIVE}").fetchall()
        ids = {*others, *(one for _, one in doubtful)}
        rows = [*rows_of(db, ANSWERS, map(term_of_answer, ids))]
        ids.update(row[1] for row in rows)
        rows += lonely.waiting() if waiting else ()
        rows += filter(lonely.is_dead, rows_of(db, OF_IDS, others))
        shown = lonely.newest(newest) | {row[0] for row in rows if lonely.is_dead(row)}
        # What a killed steward left in both logs is decoded, and counts once.
        messages = {*shown, *(row[0] for row in rows), *(place for place, _ in doubtful)}
        reads = {place for (place,) in rows_of(db, RECORDS, ids)}
        views = live.views()
        return UntakenMail(
            lonely.count() - len(shown),
            parse_messages(lines_at(live.messages, messages), views[0]),
            [*parse_reads(lines_at(live.reads, reads), views[1])],
        )

    found = ask(logs, question)
    return _read_all(logs, about) if found is None else found


def _read_all(logs: Logs, about: Callable[[], Iterable[str]]) -> UntakenMail:
    with OpenLogs(logs) as live:
        list(about())
        messages, reads = live.views()
        return UntakenMail(
            0,
            parse_messages(lines_of(live.messages, 0, live.messages_end), messages),
            [*parse_reads(lines_of(live.reads, 0, live.reads_end), reads)],
        )


class LonelyMail:
    """The mail without any record that is from or to a session (None: anyone's), as its dead part is counted.

    A *span* is the mail to an address, of one sender or of all.
    """

    def __init__(self, db: Connection, state: InboxState, session_id: str | None, now: int, since: int) -> None:
        self._db = db
        self._state = state
        self._now = now
        self._since = since
        self._last: dict[int, int] = {}
        self._words: dict[int, tuple[str, int]] = {}
        reader = None if session_id is None else state.roster.reader(session_id)
        if reader is None:
            self._senders: list[int] | None = None
            self._mine = self._addresses("")
        else:
            self._senders = [*map(number_of_id, reader.lineage)]
            words = [word for word in words_of(reader) if route((word,), reader) is not None]
            marks = ",".join("?" * len(words))
            self._mine = {one for (one,) in db.execute(f"SELECT address FROM addresses WHERE word IN ({marks})", words)}
        self._spans = [("", address) for address in self._mine]
        for sender in self._senders or ():
            by = f" AND sender = {sender}"
            self._spans += [(by, address) for address in self._addresses(by) if address not in self._mine]

    def _addresses(self, by: str) -> set[int]:
        """Return the addresses of a sender's lonely mail: one look at an index for each."""
        least = f"SELECT min(address) FROM messages WHERE {_LONELY}{by}"
        query = (
            f"WITH RECURSIVE one (a) AS (VALUES (({least})) UNION ALL SELECT ({least} AND address > a) FROM one"
            " WHERE a IS NOT NULL) SELECT a FROM one WHERE a IS NOT NULL"
        )
        return {address for (address,) in self._db.execute(query)}

    def _address(self, address: int) -> tuple[str, int]:
        if address not in self._words:
            query = "SELECT word, hours FROM addresses WHERE address = ?"
            self._words[address] = self._db.execute(query, (address,)).fetchone()
        return self._words[address]

    def _last_dead(self, address: int) -> int:
        if address not in self._last:
            self._last[address] = last_dead(*self._address(address), self._state, self._now)
        return self._last[address]

    def is_dead(self, row: Sequence[Any]) -> bool:
        """Return whether a message (its row as ``ROW``) is one of the dead letters here."""
        _, _, state, address, when, sender = row
        if state != LONELY or not self._since <= when <= self._last_dead(address):
            return False
        return self._senders is None or sender in self._senders or address in self._mine

    def _of_span(self, what: str, span: tuple[str, int], more: str = "") -> list[Any]:
        by, address = span
        query = f"SELECT {what} FROM messages WHERE {_LONELY}{by} AND address = ? AND timestamp BETWEEN ? AND ?{more}"
        return self._db.execute(query, (address, self._since, self._last_dead(address))).fetchall()

    def count(self) -> int:
        """Return how many dead letters there are."""
        return sum(self._of_span("count(*)", span)[0][0] for span in self._spans)

    def newest(self, most: int | None) -> set[int]:
        """Return the places of the ``most`` newest dead letters (None: of all)."""
        more = f" ORDER BY timestamp DESC, place DESC LIMIT {-1 if most is None else most}"
        found = [row for span in self._spans for row in self._of_span("timestamp, place", span, more)]
        return {place for _, place in sorted(found, reverse=True)[:most]}

    def waiting(self) -> Iterator[Any]:
        """Yield the rows of the mail that may wait for nobody. Mail for one agent may: that one may be its sender."""
        for by in [""] if self._senders is None else [f" AND sender = {sender}" for sender in self._senders]:
            for address in self._addresses(by):
                if self._may_wait(self._address(address)[0]):
                    query = f"SELECT {ROW} FROM messages m WHERE {_LONELY}{by} AND address = ?"
                    yield from self._db.execute(query, (address,))

    def _may_wait(self, word: str) -> bool:
        roster = self._state.roster
        return roster.mode(word) in (ROLE, TAG) and len(roster.some_carrying(role_or_tag(word), 2)) < 2
