"""The places of the live control messages that concern an agent, a request or an id: one question needs few of them.

Belongs here: which messages belong together, and the table of their places, kept up with the log. The rules by which
they are folded are ``core.control``.

The table holds places and no outcome, so it decides nothing. It could hide an order, though, so its file
(``projection_file``) lies in the user's record, outside the project. A mailbox without a record has none. Each line
that it names is read from the log and weighed again. In doubt the log is read whole.

The table has a line's position under these words, with its sender, and whether it was proven:

    ORDERED   each agent that it may bind or end; of an answer that has effects: each asker of that request
    REQUEST   the id of its request or task
    ID        the id of the message
    OPENED    no word: a message that asks for a decision
    LEASED    no word: a message that leases paths, or ends a lease
    WATCHED   no word: a message that watches an agent
    TASKED    no word: a message that adds a task
    SETTLED   no word: a message of the last four kinds whose request is decided, whose lease, watch or task is over.
              Nobody reads it again, but for what belongs to it
"""

from __future__ import annotations

from functools import cache

from ...core import codec, proofs
from ...core.address import ALL
from ...core.control import message_text
from ...core.control.messages import (
    Ask,
    LeasePaths,
    LeaseRelease,
    ModeSet,
    Payload,
    PermissionResponse,
    PlanResponse,
    PolicyUpdate,
    SandboxResponse,
    ShutdownRequest,
    TaskAssignment,
    TaskClaim,
    WatchAgent,
)
from ...core.control.state import ControlState
from ...core.line_forms import control_lines
from ...core.records import Message
from ..files import small_files, system
from ..files.lines import boundary, line_at, lines_of
from ..log.logs import end_of
from ..log.proof_view import mark_foreign_word
from .index_keys import FILE, HASTE, Doubt, number_of_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from ...core.control.messages import Unknown
    from ...core.roster import Roster
    from ..log.proof_view import ProofView
    from .projection_file import OpenProjection

    P = TypeVar("P", int, int | None)
    Parse = Callable[[str], Payload | Unknown]
    Word = tuple[int, str]
    Found = list[Message]
    Question = Callable[["ControlTable", Roster], Iterable[Word]]
    """The words that a part of the fold is to be about."""

ORDERED, REQUEST, ID, OPENED, LEASED, WATCHED, TASKED, SETTLED = range(8)
OPEN, LEASES, WATCHES, TASKS = (OPENED, ""), (LEASED, ""), (WATCHED, ""), (TASKED, "")
SETTLING: dict[Word, tuple[type[Payload], ...]] = {
    OPEN: (Ask,),
    LEASES: (LeasePaths, LeaseRelease),
    WATCHES: (WatchAgent,),
    TASKS: (TaskAssignment,),
}
"""The words of all that may not be over, each with what its messages say."""
MANY, MUCH = 64, 1 << 20
"""New control messages, and new bytes of log, that are saved; fewer cost less to read again."""
_LEAST = 80
"""Bytes of a control message: none has fewer."""
_SOURCE = "control"
_ORDERS = (ModeSet, PolicyUpdate, TaskAssignment, ShutdownRequest)


def messages_on(lines: Iterable[tuple[P, bytes]], view: ProofView | None) -> Iterator[tuple[P, Message]]:
    """Yield the control messages on lines, with their positions, and the proof for the writer of each; ``view`` counts
    them.

    Archived lines have no position."""
    for position, line in control_lines(lines):
        message = codec.message(line)
        if not isinstance(message, Message) or message.type != "control":
            continue
        proof = None if view is None else view.proof(line) if position is None else view.read(line, position)
        found = mark_foreign_word(message, view, line, position) if proof is None else message.replace(proof=proof)
        yield position, found


def of_agents(sessions: Iterable[str], roster: Roster) -> Iterator[Word]:
    """Yield the words by which the messages are found that bind these agents: as themselves, as successors, as all."""
    yield ORDERED, ALL
    for session_id in sessions:
        yield from ((ORDERED, one) for one in roster.lineage(session_id))


def ask_table(
    fd: int, view: ProofView, read_roster: Callable[[], Roster], question: Question, now: int
) -> tuple[ControlState, Found] | None:
    """Return the fold of an open log's messages that a question is about, and these. Return None if there is no table,
    and too little in the log for one.

    All that belong to them are there, too, in log order. ``view`` counts every deciding line. The roster is read, and
    the question asked, once the log's end is fixed: that roster knows every writer."""
    directory, size = view.kept.custody.directory, end_of(fd)[1]
    is_worth_it = size >= MUCH or system.exists(f"{directory}/{FILE}")
    if not is_worth_it and (size < MANY * _LEAST or len([*control_lines(lines_of(fd, 0))]) < MANY):
        return None
    parse = cache(message_text.parse)

    def turn(opened: OpenProjection) -> tuple[tuple[ControlState, Found]]:
        table = ControlTable(opened, fd, view, parse)
        roster = read_roster()
        table.catch_up()
        found = table.about(question(table, roster))
        fold = ControlState(roster, found, parse)
        table.save(lambda request_id: fold.is_decided(request_id, now))
        return ((fold, found),)

    from . import projection_file  # SQLite, which few messages do without

    return projection_file.use(directory, turn, HASTE)


class ControlTable:
    """The table, opened, and the log up to its last whole line; ``parse`` reads what a message says."""

    def __init__(self, opened: OpenProjection, fd: int, view: ProofView, parse: Parse) -> None:
        self._opened = opened
        self._db = opened.db
        self._fd = fd
        self._view = view
        self._parse = parse
        self._end = boundary(fd, end_of(fd)[1])
        self._at = self._resume()
        self._count = 0
        self._begun = False
        self._opened_at: dict[int, str] = {}
        """The requests and their like that were found by a word of ``SETTLING``, by their places."""

    def _resume(self) -> int:
        """Return up to where the table has the log, as it is and as it was proven."""
        self._view.begin()
        if self._opened.is_fresh:
            return 0
        query = f"SELECT inode, position, checksum, counted FROM sources WHERE name = '{_SOURCE}'"
        *mark, counted = self._db.execute(query).fetchone() or (0, 0, 0, b"0 0 -")
        generation, count, digest = counted.split()
        if not 0 < mark[1] <= self._end or not small_files.holds_mark(self._fd, mark):
            raise Doubt("the log is another")
        if not self._view.resume(int(generation), int(count), digest):
            raise Doubt("it was proven otherwise")
        return int(mark[1])

    def catch_up(self) -> None:
        """Take in the lines since the table's mark; raise ``Doubt`` unless every deciding line was counted."""
        for at, message in messages_on(lines_of(self._fd, self._at, self._end), self._view):
            self._count += 1
            proven = proofs.proves(message.proof)
            rows = ((kind, word, at, number_of_id(message.sender), proven) for kind, word in self._words(message))
            self._insert([*rows])
        if not self._opened.is_fresh and not self._view.is_whole():
            raise Doubt("it was counted otherwise")

    def _insert(self, rows: list[tuple[int, int, int, int, bool]]) -> None:
        if not self._begun:
            self._db.execute("BEGIN IMMEDIATE")
            self._begun = True
        self._db.executemany("INSERT OR IGNORE INTO control VALUES (?, ?, ?, ?, ?)", rows)

    def _words(self, message: Message) -> Iterator[tuple[int, int]]:
        payload = _payload(self._parse, message)
        words = [*_belonging(message, payload), *(w for w, said in SETTLING.items() if isinstance(payload, said))]
        if isinstance(payload, TaskClaim):
            words.append((ORDERED, payload.holder or message.sender))
        if isinstance(payload, _ORDERS):
            words += ((ORDERED, recipient) for recipient in message.recipients)
        yield from ((kind, number_of_id(text)) for kind, text in words)
        if _has_effects(payload):
            about = "SELECT DISTINCT sender FROM control WHERE kind = ? AND word = ?"
            rows = self._db.execute(about, (REQUEST, number_of_id(payload.request_id))).fetchall()
            yield from ((ORDERED, asker) for (asker,) in rows)

    def save(self, is_decided: Callable[[str], bool]) -> None:
        """Save what was taken in, and which of the requests that were found are decided, once these are many."""
        over = [at for at, request_id in self._opened_at.items() if is_decided(request_id)]
        is_much = max(self._count, len(over)) >= MANY or self._end - self._at >= MUCH
        if not (is_much or self._opened.is_fresh) or not self._view.is_whole():
            return
        self._insert([(SETTLED, number_of_id(""), at, 0, False) for at in over])
        view = self._view
        counted = b"%d %d %s" % (view.entry.generation, view.count, view.digest)
        mark = small_files.mark_log(self._fd, self._end)
        self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, 0, ?)", (_SOURCE, *mark, counted))
        self._opened.save(is_sound=view.is_whole())

    # -- questions ----------------------------------------------------------------------------------------------------

    def about(self, words: Iterable[Word]) -> Found:
        """Return the messages that one of the words concerns, in log order. All that belong to them come along, and the
        task that they are about."""
        left = sorted({*words})  # the same order each time: it can be replayed
        done: set[Word] = set()
        found: dict[int, Message] = {}
        while left:
            if (word := left.pop()) in done:
                continue
            done.add(word)
            for message in self._listed(word, found):
                payload = _payload(self._parse, message)
                left += (*_belonging(message, payload), *_task_of(payload))
        return [found[at] for at in sorted(found)]

    def holding(self, word: str) -> Iterator[Word]:
        """Yield the requests of the lines that hold a word of plain letters: no table has a shortened id."""
        mark = word.encode()
        lines = lines_of(self._fd, 0, self._end)
        for _, message in messages_on(((None, line) for _, line in lines if mark in line or b"\\u" in line), None):
            if request_id := _payload(self._parse, message).request_id:
                yield REQUEST, request_id

    def _listed(self, word: Word, found: dict[int, Message]) -> Iterator[Message]:
        """Yield the messages at the places of a word, and by chance others; add them to ``found``."""
        kind, text = word
        over = "SELECT place FROM control WHERE kind = ? AND word = ?"
        query = f"SELECT place, proven FROM control WHERE kind = ? AND word = ? AND place NOT IN ({over})"
        settled = SETTLED if word in SETTLING else -1
        rows = self._db.execute(query, (kind, number_of_id(text), settled, number_of_id("")))
        for at, was_proven in rows.fetchall():
            if at not in found:
                found[at] = self._message(at)
            if was_proven and not proofs.proves(found[at].proof):
                raise Doubt("it was proven otherwise")
            if word in SETTLING:
                self._opened_at[at] = _payload(self._parse, found[at]).request_id
            yield found[at]

    def _message(self, at: int) -> Message:
        line = line_at(self._fd, at) if at < self._end else b""
        message = codec.message(line)
        if not isinstance(message, Message) or message.type != "control":
            raise Doubt("the line is another")
        proof = self._view.proof(line, at)
        return mark_foreign_word(message, self._view, line, at) if proof is None else message.replace(proof=proof)


def _payload(parse: Parse, message: Message) -> Payload:
    payload = parse(message.content)
    return payload if isinstance(payload, Payload) else Payload()


def _belonging(message: Message, payload: Payload) -> Iterator[Word]:
    """Yield the words that a message has in common with all that belong to it."""
    yield ID, message.id
    if payload.request_id:
        yield REQUEST, payload.request_id
    if isinstance(payload, TaskAssignment):  # what waits for them is folded after them
        yield from ((REQUEST, task_id) for task_id in (*payload.after, *payload.hands))


def _task_of(payload: Payload) -> Iterator[Word]:
    """Yield the word of the task that a lease or a watch may be about. It does not bring them along: many notes of
    leases are alike, and name none."""
    task = payload.note if isinstance(payload, LeasePaths) else payload.task if isinstance(payload, WatchAgent) else ""
    if task:
        yield REQUEST, task


def _has_effects(payload: Payload) -> bool:
    """Return whether a decision may have effects beside its request's state (``state.ControlState``)."""
    is_more = isinstance(payload, PermissionResponse) and bool(payload.mode or payload.updates)
    return is_more or isinstance(payload, PlanResponse | SandboxResponse)
