"""A machine's copy of a shared mailbox, as it is known here: its saved state, its lines, and the locks.

Belongs here: loading, saving, and looking at what is here, without the engine. Then whom new lines concern here. The
files are not synced: an older state, or none, costs a comparison and no answer.

**Two locks.** One process of a machine decides and publishes at a time; it holds the *turn*. The *files* are the local
copy and its saved state. Their lock is given back whenever the engine is asked. So a process that waits for a network,
or was stopped, keeps no mail out (``Replica.take_in_beside``).
"""

from __future__ import annotations

from ...core import codec, proofs, reach
from ...core.address import ALL
from ...core.line_forms import may_have, may_release
from ...core.records import BadLine, Message
from ...core.roster import DEAD
from ...errors import Busy
from ...store.archive.archive import Archive
from ...store.archive.archived_digests import ArchivedDigests
from ...store.files import paths, small_files, system
from ...store.files.small_files import note_time, noted_age, read_file, replace_file, set_time, time_of
from ...store.locks.lock import FileLock, Patience, deadline
from ...store.log.stamps import EVERYONE
from ...store.log.unordered import Unordered, digest
from ...store.user_state import bindings
from ..order.order import ANSWERED, CLAIMS, KINDS, MESSAGES, ROSTER, Hurry
from .space_troubles import SpaceQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Self, TypeVar

    from ...core.records import Proof
    from ...store.log.log import Log
    from ...store.log.logs import Logs
    from ...store.log.replacement import Replaced
    from ..order.order import Ordered, TotalOrder
    from ..trust.space_judge import SpaceJudge

    T = TypeVar("T")

STATE, FRESH, PROOFS, STEWARD = "state", "fresh", "proofs", "steward"
CROWD = 100
"""Messages at once above which everybody's quiet stamp ends."""
TURN, FILES = "lock", "files"
"""The files of the two locks, in the user's own record."""
KEPT, UNANSWERED = 1.0, 0.3
"""Seconds for which those in a hurry wait for a process that has its turn, from each answer on. For the next answer to
one that is in no hurry they wait the second."""
LONG = 2.0
"""Seconds for which they wait for the latter in all: it may read all records."""
AHEAD = 1_000_000.0
"""Seconds that nobody waits: whoever has the turn of a file that promises them has just taken it."""


class CopyState:
    """All that a machine knows of the order. ``told``: the content of the file, if there is one."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.applied: int = told.get("applied", 0)
        """All records up to this position are in the local logs."""
        self.last: dict[str, int] = told.get("last", {})
        """The position of each log's last record."""
        self.marks: Mapping[str, tuple[int, int, list[list[int]]]] = told.get("marks", {})
        """By local log, the lines that are in the order (``Unordered``)."""
        self.owes = told.get("owes") is True
        """This machine has not yet told that it followed a steward's decision."""
        self.purged = told.get("purged") is True
        """The order may lack what is archived."""
        self.compares = told.get("compares") is not False
        """The order is read from its beginning: archived lines count as taken in."""
        self.doubts = told.get("doubts") is True
        """Another machine told of a damaged record, which this one may have."""
        self.damaged = {*told.get("damaged", ())}
        """The positions of damaged records that were passed over."""
        self.tip: str = told.get("tip", "")
        """The digest of the record at ``applied``."""
        self.holes: int | None = told.get("holes")
        """The number of positions without a record, at the last look."""
        self.gone = {*told.get("gone", ())}
        """The machines that left, or that a person gave up, and that said nothing since."""
        self.keys: dict[str, str] = told.get("keys", {})
        """By machine, the fingerprint of the key with which its name was taken over last."""
        self.displaced = told.get("displaced") is True
        """Another mailbox has this machine's name: nothing is published from here."""
        self.numbers: Mapping[str, int] = told.get("numbers", {})
        self.refused: Mapping[str, int] = told.get("refused", {})
        """These two are the judge's."""


def note_fresh(directory: str, at: int) -> None:
    """Note that this machine has had all that was in the order then (ms); if that fails, the copy only looks older."""
    note_time(system.join(directory, FRESH), at)


def copy_age(directory: str, now: int) -> int | None:
    """Return the ms since a process of this machine began to take in all of the order, and did; None: none noted it."""
    return noted_age(system.join(directory, FRESH), now)


class AskedOrder:
    """A ``TotalOrder`` that is asked while the local files are free; ``looked_again`` then looks what others did."""

    def __init__(self, engine: TotalOrder, looked_again: Callable[[], None]) -> None:
        self.engine = engine
        self.machine = engine.machine
        self.turn: MachineLock | None = None  # as long as this process has it
        self._looked_again = looked_again

    def ask(self, question: Callable[[], T]) -> T:
        if (turn := self.turn) is None:
            return question()
        patience = KEPT if turn.hurried else UNANSWERED
        turn.promise(patience)
        turn.files.release()
        try:
            with Hurry(ANSWERED if turn.hurried else None, lambda: turn.promise(patience)):
                return question()
        finally:
            turn.files.take()
            turn.promise(KEPT)
            self._looked_again()

    def last_position(self) -> int:
        return self.ask(self.engine.last_position)

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        return self.ask(lambda: self.engine.append_lines(log, lines, ids=ids, expect=expect))

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        return self.ask(lambda: self.engine.read_after(after, most))

    def count_holes(self) -> int:
        return self.ask(self.engine.count_holes)


class MachineLock:
    """The turn of a process of this machine, for a ``with`` block, with the lock of the files.

    ``hurried``: wait only as long as the turn moves from one process to the next, or answers come. The time of the
    turn's file says until when: whoever has the turn promises that."""

    def __init__(self, directory: str, wait: float, order: AskedOrder, *, hurried: bool = False) -> None:
        self._turn = FileLock(system.join(directory, TURN), wait)
        self.files = FileLock(system.join(directory, FILES), wait)
        self._order = order
        self._wait = wait
        self.hurried = hurried
        self._last = 0

    def take(self) -> Self:
        """Get the lock, perhaps ahead of a ``with`` block that gives it back; raise ``Busy`` at the time-out."""
        if self._order.turn is self:
            return self
        self._take_turn()
        try:
            self._last = _in_ns(LONG)
            self.promise(KEPT)
            self.files.take()
        except BaseException:
            self._give_turn()
            raise
        self._order.turn = self
        return self

    def release(self, *_: object) -> None:
        self._order.turn = None
        self.files.release()
        self._give_turn()

    __enter__, __exit__ = take, release

    def _give_turn(self) -> None:
        set_time(self._turn.path, _in_ns(AHEAD))
        self._turn.release()

    def promise(self, seconds: float) -> None:
        """Have others wait for so many seconds from now on."""
        until = _in_ns(seconds)
        set_time(self._turn.path, until if self.hurried else min(until, self._last))

    def _take_turn(self) -> None:
        end = deadline(self._wait)
        promised, moved = -1, 0.0
        while True:
            now = system.monotonic()
            if (said := time_of(self._turn.path) or 0) != promised:
                promised, moved = said, now
            left = end - now
            if self.hurried:  # a promise may become shorter
                left = min(left, moved + KEPT - now, UNANSWERED, (promised - system.time_ns()) / 1_000_000_000)
            try:
                with Patience(left):
                    self._turn.take()
                return
            except Busy:
                if not self.hurried or left <= 0:
                    raise


class KnownCopy:
    """The copy in ``logs`` of what is in ``order``; ``directory`` is this machine's own record of it."""

    def __init__(self, logs: Logs, order: TotalOrder, directory: str, judge: SpaceJudge) -> None:
        self.logs = logs
        self.local = {ROSTER: logs.roster, MESSAGES: logs.messages, CLAIMS: logs.reads}
        self.order = AskedOrder(order, self._look_again)
        self.directory = directory
        self.judge = judge
        self.queue = SpaceQueue(directory, logs.wait)
        self.state = CopyState({})
        self._saved = b""
        self.parts: Mapping[str, Unordered] = {}
        self.heard: dict[str, int] | None = None
        self.archive = Archive(logs.path(paths.ARCHIVE), logs.custody)
        self.filed = ArchivedDigests(self.archive)
        self._asked_at = 0
        self.files_lock = FileLock(system.join(directory, FILES), logs.wait)
        self.steward_lock = FileLock(system.join(directory, STEWARD), logs.wait)
        """The steward's comes ahead of the machine's."""

    def machine_lock(self, *, hurried: bool = False) -> MachineLock:
        """Return the machine's lock for a ``with`` block; ``hurried``: see ``MachineLock``."""
        system.make_directory(self.directory)
        return MachineLock(self.directory, self.logs.wait, self.order, hurried=hurried)

    def note_proofs(self, about: Mapping[bytes, Proof | None]) -> None:
        """Note what is proven of the writers of lines that are about to be published, for whoever takes them in."""
        if any(about.values()):
            told = {digest(line).hex(): proof for line, proof in about.items()}
            small_files.write_if_possible(system.join(self.directory, PROOFS), codec.dumps(told).encode())

    def noted_proofs(self, lines: Iterable[bytes]) -> dict[bytes, Proof | None]:
        """Return what was noted last of the writers of these lines, by line."""
        found = codec.parse(read_file(system.join(self.directory, PROOFS)) or b"")
        told = ((line, found.get(digest(line).hex())) for line in lines) if isinstance(found, dict) else ()
        return {line: proofs.parse(word.encode()) for line, word in told if isinstance(word, str)}

    def look_beside(self) -> tuple[int, str] | None:
        """Look at what is here, while another process has its turn; return the position of the last record, and its
        digest. None: all of it is to be compared, which needs the turn."""
        self._load_state()
        is_same = all(part.look() for part in self.parts.values())
        state = self.state
        is_sound = is_same and state.applied and state.tip and not (state.compares or state.doubts)
        return (state.applied, state.tip) if is_sound else None

    def _look_again(self) -> None:
        """Look at what another process took in while the engine was asked."""
        self._asked_at = self.state.applied
        if self._read_saved() != self._saved:
            self._load_state()
            for part in self.parts.values():
                part.look()

    def look_locally(self) -> None:
        """Look at what is here, without the engine: ``applied`` and ``lines_to_publish`` tell it."""
        self._load_state()
        self._look_at_parts()

    def machines_gone(self) -> set[str]:
        """Return the machines that left, or were given up, by what is here."""
        if self._read_saved() != self._saved:
            self._load_state()
        return self.state.gone

    def _look_at_parts(self) -> None:
        if not all(part.look() for part in self.parts.values()):
            paths.refuse_absence(self.logs.directory)
            self._begin_again()  # a log was replaced, or cut

    def _begin_again(self) -> None:
        """Compare all of the local logs with all of the order."""
        self.state.applied, self.state.last, self.heard = 0, {}, dict.fromkeys(KINDS, 0)
        self.state.tip, self.state.damaged = "", set()
        self.state.gone, self.state.keys = set(), {}
        self.parts = {kind: Unordered(log) for kind, log in self.local.items()}
        for part in self.parts.values():
            part.look()
        self.state.compares = True
        self.filed.look()
        if self.order.turn is not None:
            self._save_state()  # nobody goes on beside it

    def part_of(self, log: Log) -> Unordered:
        return self.parts[self._kind_of(log.path)]

    def go_on_in(self, fresh: Replaced) -> None:
        """Go on in the log that took the place of one of the local logs."""
        kind = self._kind_of(fresh.path)
        self.parts = {**self.parts, kind: self.parts[kind].replaced(fresh.inode, fresh.places)}

    def _kind_of(self, path: str) -> str:
        return next(kind for kind, log in self.local.items() if log.path == path)

    def _read_saved(self) -> bytes:
        return read_file(system.join(self.directory, STATE)) or b""

    def _load_state(self) -> None:
        self._saved = self._read_saved()
        checksum, _, body = self._saved.partition(b" ")
        found = codec.parse(body) if checksum == b"%08x" % small_files.checksum(body) else None
        told = found if isinstance(found, dict) else {}  # of a damaged file, or none, nothing is known
        self.state = state = CopyState(told)
        self.judge.begin_from(state.numbers, state.refused)
        self.heard = None if state.applied else dict.fromkeys(KINDS, 0)
        self.parts = {kind: Unordered(log, *state.marks.get(kind, (0, 0, []))) for kind, log in self.local.items()}
        if state.compares:
            self.filed.look()

    def _save_state(self) -> None:
        for part in self.parts.values():
            part.secure()
        self.state.marks = {kind: part.saved() for kind, part in self.parts.items()}
        self.state.numbers, self.state.refused = self.judge.numbers, self.judge.refused
        lists = {"damaged": sorted(self.state.damaged), "gone": sorted(self.state.gone)}
        body = codec.dumps({**vars(self.state), **lists}).encode()
        self._saved = b"%08x " % small_files.checksum(body) + body
        replace_file(system.join(self.directory, STATE), self._saved, durable=False)


def disturbed_sessions(logs: Logs, kind: str, records: Iterable[Ordered]) -> set[str] | None:
    """Return the sessions whose quiet stamps the records end, before they are written; None: everyone's."""
    if kind == MESSAGES:
        lines = [record.line for record in records]
        is_crowd = len(lines) > CROWD  # as a machine joins: to look at each costs more than everybody's next look
        looked = [line for line in lines if may_have(line, b"control")] if is_crowd else lines
        messages = [one for one in map(codec.message, looked) if isinstance(one, Message)]
        for message in messages:
            if message.type == "control":
                _bind_by(logs, message)
        return EVERYONE if is_crowd else reach.find_concerned(messages, logs.read_roster())
    if kind == ROSTER:
        for record in records:
            event = codec.roster_event(record.line)
            if not isinstance(event, BadLine) and event.lead is not None:
                _note_bound(logs, [event.session_id])
        return EVERYONE
    return EVERYONE if any(may_release(record.line) for record in records) else set()


def _bind_by(logs: Logs, message: Message) -> None:
    """Note whom an order may bind: it holds even if the log is cut before they look."""
    from ...core.control import message_text, messages  # what most mail is spared

    orders = messages.ModeSet, messages.PolicyUpdate, messages.TaskAssignment
    if isinstance(message_text.parse(message.content), orders):
        _note_bound(logs, None if ALL in message.recipients else message.recipients)


def _note_bound(logs: Logs, sessions: Sequence[str] | None) -> None:
    """Note that these sessions (None: all) may be bound, if they ever lived on this machine and are not dead."""
    roster = logs.read_roster()
    for session_id in logs.last_seen() if sessions is None else sessions:
        if roster.state(session_id) != DEAD and logs.last_seen([session_id]):
            bindings.bind(logs.stamp_files, session_id)


def _in_ns(seconds: float) -> int:
    return system.time_ns() + int(seconds * 1_000_000_000)
