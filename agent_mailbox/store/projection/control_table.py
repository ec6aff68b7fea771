"""The places of the live control messages that concern an agent, a request or an id: one question needs few of them.

Belongs here: which messages belong together, and the table of their places, kept up with the log. ``control_log`` folds
what is found, as it would fold everything: the rules are ``core.control``.

The table holds places and no outcome, so it decides nothing. It could hide an order, though, so it lies in the user's
record, outside the project. A mailbox without a record has none. Each line that it names is read from the log and
weighed again. In doubt the log is read whole.

The table has a line's position under these words, in capitals if the line was proven:

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

from contextlib import ExitStack, closing

from ...core import codec, proofs
from ...core.address import ALL
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
from ...core.records import Message
from ..files import cache
from ..files.lines import boundary, line_at, lines_of
from ..log.logs import end_of, named, read_head
from . import word_table
from .word_table import TableFile, entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...core.control.messages import Unknown
    from ...core.roster import Roster
    from ..log.proof_view import ProofView
    from .word_table import Entries

    Parse = Callable[[str], Payload | Unknown]
    Word = tuple[bytes, bytes]

ORDERED, REQUEST, ID, OPENED, LEASED, WATCHED, SETTLED = b"o", b"q", b"i", b"p", b"l", b"w", b"s"
TASKED = b"t"
TABLE = "control-3"
"""The table's file: its name changes with the words in it, for an earlier version writes no words of a later one."""
SETTLING = (OPENED, LEASED, WATCHED, TASKED)
MANY, MUCH = 64, 1 << 20
"""New control messages, and new bytes of log, for which the table is written again; fewer cost less to read again."""
_MARK = b'"control"'
"""Bytes in each control message's line; in the text of other mail the quotation marks are escaped."""
_ORDERS = (ModeSet, PolicyUpdate, TaskAssignment, ShutdownRequest)


class Doubtful(Exception):
    """A line is not what the table says of it."""


def messages_on(position: int | None, line: bytes, view: ProofView | None) -> Iterator[Message]:
    """Yield the control message on a line, if it is one, with the proof for its writer; ``view`` counts it.

    Archived lines have no position."""
    message = _message_on(line)
    if message is not None:
        proof = None if view is None else view.proof(line) if position is None else view.read(line, position)
        yield named(message, view, line, position) if proof is None else message.replace(proof=proof)


def _message_on(line: bytes) -> Message | None:
    message = codec.message(line) if _MARK in line or b"\\u" in line else None
    return message if isinstance(message, Message) and message.type == "control" else None


def of_agent(session_id: str) -> Word:
    """Return the word by which the messages are found that may bind or end an agent."""
    return ORDERED, _spelt(session_id)


def of_agents(sessions: Iterable[str], roster: Roster) -> Iterator[Word]:
    """Yield the words by which the messages are found that bind these agents: as themselves, as heirs, as all."""
    yield of_agent(ALL)
    for session_id in sessions:
        yield from map(of_agent, roster.lineage(session_id))


def of_request(request_id: str) -> Word:
    """Return the word by which all messages about a request or a task are found."""
    return REQUEST, _spelt(request_id)


def of_id(message_id: str) -> Word:
    """Return the word by which a message is found."""
    return ID, _spelt(message_id)


def of_open() -> Word:
    """Return the word by which all requests are found that may still wait for a decision."""
    return OPENED, b""


def of_leases() -> Word:
    """Return the word by which all leases are found that may still hold."""
    return LEASED, b""


def of_watches() -> Word:
    """Return the word by which all watches are found that may still hold."""
    return WATCHED, b""


def of_tasks() -> Word:
    """Return the word by which all tasks are found that may not be over."""
    return TASKED, b""


def _spelt(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


class ControlTable:
    """The table beside the open log, up to its last whole line; ``parse`` reads the content of a message."""

    def __init__(self, fd: int, view: ProofView, parse: Parse, *, derives: bool = True) -> None:
        self._fd = fd
        self._view = view
        self._parse = parse
        self._derives = derives
        self._end = boundary(fd, end_of(fd)[1])
        self._path = view.kept.custody.path(TABLE)
        self._parts: list[Entries] = []
        self._file: TableFile | None = None
        self._at = self._count = 0
        self._opened_at: dict[int, str] = {}
        """The requests and their like that the last answer found by ``of_open`` and its like, by their places."""

    def ask(self, words: Iterable[Word]) -> list[Message]:
        """Return the messages that one of the words concerns, and all that belong to them, in log order.

        ``view`` has counted every deciding line then. Raise ``Doubtful`` if a line changes meanwhile.
        """
        wanted = set(words)
        with ExitStack() as files:
            if self._is_open(files):
                try:
                    self._catch_up()
                    found = self._about(set(wanted))
                    if self._view.is_whole() and self._is_sound():
                        self._save()
                        return found
                except Doubtful:
                    pass
        self._begin()
        self._catch_up()
        found = self._about(wanted)
        self._save()
        return found

    def settle(self, decided: Callable[[str], bool]) -> None:
        """Note which of the requests and their like that the last answer found are decided, once these are many."""
        over = [entry(SETTLED, b"", at) for at, request_id in self._opened_at.items() if decided(request_id)]
        if len(over) < MANY:
            return
        with ExitStack() as files:
            if self._is_open(files):
                self._catch_up()
                self._parts.append(over)
                self._count += len(over)
                self._save()

    def holding(self, word: str) -> Iterator[Word]:
        """Yield the requests of the lines that hold a word of plain letters: no table has a shortened id."""
        mark = _spelt(word)
        for _, line in lines_of(self._fd, 0, self._end):
            message = _message_on(line) if (_MARK in line and mark in line) or b"\\u" in line else None
            if message is not None and (request_id := self._payload(message).request_id):
                yield of_request(request_id)

    # -- keeping up with the log --------------------------------------------------------------------------------------

    def _is_open(self, files: ExitStack) -> bool:
        """Open the file; return whether it is of this log and of what is proven there."""
        try:
            self._file = table = files.enter_context(closing(TableFile(self._path)))
            mark, counted = read_head(table.head)
        except (OSError, ValueError):
            return False
        self._at = mark[1]
        self._parts = [table]
        return 0 < self._at <= self._end and cache.holds(self._fd, mark) and self._view.resume(*counted)

    def _begin(self) -> None:
        self._view.begin()
        self._file, self._parts, self._at, self._count = None, [], 0, 0

    def _is_sound(self) -> bool:
        return self._file is None or self._file.is_sound()

    def _catch_up(self) -> None:
        """Take in the lines since the table's mark."""
        fresh: list[int] = []
        askers: dict[str, set[str]] = {}
        for at, line in lines_of(self._fd, self._at, self._end):
            for message in messages_on(at, line, self._view):
                self._count += 1
                words = self._words(message, askers)
                fresh += [entry(_kind(kind, message), word, at) for kind, word in words]
        self._parts.append(sorted(fresh))

    def _words(self, message: Message, askers: dict[str, set[str]]) -> Iterator[Word]:
        payload = self._payload(message)
        yield from _belonging(message, payload)
        if isinstance(payload, Ask):
            yield of_open()
        if isinstance(payload, LeasePaths | LeaseRelease):
            yield of_leases()
        if isinstance(payload, WatchAgent):
            yield of_watches()
        if isinstance(payload, TaskAssignment):
            yield of_tasks()
        if isinstance(payload, TaskClaim):
            yield of_agent(payload.holder or message.sender)
        if isinstance(payload, _ORDERS):
            yield from map(of_agent, message.recipients)
        if isinstance(payload, Ask):
            askers.setdefault(payload.request_id, set()).add(message.sender)
        if _has_effects(payload):
            yield from map(of_agent, askers.get(payload.request_id, ()))
            yield from (of_agent(one.sender) for one in self._listed(of_request(payload.request_id)))

    def _save(self) -> None:
        """Write the table again if there is much news, and everything was read as it was left."""
        is_much = self._count >= MANY or self._end - self._at >= MUCH
        if not (self._derives and is_much and self._view.is_whole() and self._is_sound()):
            return
        told = b"%d %d %s" % (self._view.entry.generation, self._view.count, self._view.digest)
        head = b"%d %d %d " % cache.mark(self._fd, self._end) + told
        known = [] if self._file is None else self._file.entries()
        fresh = [one for part in self._parts if isinstance(part, list) for one in part]
        if self._is_sound():
            word_table.save(self._path, head, sorted([*known, *fresh]))

    # -- questions ----------------------------------------------------------------------------------------------------

    def _about(self, todo: set[Word]) -> list[Message]:
        left = sorted(todo)  # the same order each time: it can be replayed
        done: set[Word] = set()
        found: dict[int, Message] = {}
        while left:
            if (word := left.pop()) in done:
                continue
            done.add(word)
            for message in self._listed(word, found):
                left += _belonging(message, self._payload(message))
        return [found[at] for at in sorted(found)]

    def _listed(self, word: Word, found: dict[int, Message] | None = None) -> Iterator[Message]:
        """Yield the messages at the places of a word, and by chance others; add them to ``found``."""
        found = {} if found is None else found
        kind, text = word
        over = {*self._places(SETTLED, b"")} if kind in SETTLING else ()
        for sort, was_proven in ((kind, False), (kind.upper(), True)):
            for at in self._places(sort, text):
                if at in over:
                    continue
                if at not in found:
                    found[at] = self._message(at)
                if was_proven and not proofs.proves(found[at].proof):
                    raise Doubtful(at)
                if kind in SETTLING:
                    self._opened_at[at] = self._payload(found[at]).request_id
                yield found[at]

    def _places(self, kind: bytes, text: bytes) -> list[int]:
        return [at for part in self._parts for at in word_table.positions(part, kind, text)]

    def _message(self, at: int) -> Message:
        line = line_at(self._fd, at) if at < self._end else b""
        message = _message_on(line)
        if message is None:
            raise Doubtful(at)
        proof = self._view.proof(line, at)
        return named(message, self._view, line, at) if proof is None else message.replace(proof=proof)

    def _payload(self, message: Message) -> Payload:
        payload = self._parse(message.content)
        return payload if isinstance(payload, Payload) else Payload()


def _kind(kind: bytes, message: Message) -> bytes:
    return kind.upper() if proofs.proves(message.proof) else kind


def _belonging(message: Message, payload: Payload) -> Iterator[Word]:
    """Yield the words that a message has in common with all that belong to it."""
    yield of_id(message.id)
    if payload.request_id:
        yield of_request(payload.request_id)
    if isinstance(payload, TaskAssignment):
        yield from map(of_request, payload.after)  # they are folded before what waits for them


def _has_effects(payload: Payload) -> bool:
    """Return whether a decision may have effects beside its request's state (``state.ControlState``)."""
    is_more = isinstance(payload, PermissionResponse) and bool(payload.mode or payload.updates)
    return is_more or isinstance(payload, PlanResponse | SandboxResponse)
