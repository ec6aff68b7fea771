"""A machine's copy of a mailbox that several machines share.

Belongs here: catching up with the order, publishing what is decided, and what a killed process left. Must not know any
engine, nor why something is decided (``ordered_log``). Whatever is local and in no order yet, whoever wrote it, is
published by ``catch_up`` (``publishing``): reads and acks, and lines of other programs.

One lock of the machine, ``machine_lock``, is around all of it, ahead of every log's lock and behind a session's
delivery lock. No log's lock is held while the engine is asked: a hook that records a read never waits for a network.

**Killed at any moment.** The saved state says two things. All records up to ``applied`` are in the local logs. All
lines before the marks are in the order. The next process compares what follows in both by content
(``store.log.unordered``):

    published, not written here       the record is written when it is read again
    written here, state not saved     the line is found behind the mark, and struck out
    published by us, state not saved  likewise
    archived here, state not saved    all of the order is compared with what is live here and what is archived
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ...core.space_seals import is_ignored
from ...errors import Busy
from ...store.archive.archive import Archive
from ...store.archive.archived_digests import ArchivedDigests
from ...store.files import paths, system
from ...store.locks.lock import FileLock
from ...store.log.unordered import Unordered, digest, number, unsealed
from ..order import follow_progress
from ..order.bundles import unpack_bundle
from ..order.order import ARCHIVE, CLAIMS, KINDS, MESSAGES, MOST, PASSED, ROSTER, Moved, Ordered, Taken, is_known
from ..order.waiting_lines import id_of
from ..trust.space_judge import Judged
from . import copy_state, publishing, taken_records
from .copy_state import CopyState
from .send_queue import SendQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...core.records import Proof
    from ...store.log.log import Log
    from ...store.log.logs import Logs
    from ...store.log.replacement import Replaced
    from ..order.order import TotalOrder
    from ..trust.space_judge import SpaceJudge

LOCK, STEWARD = "lock", "steward"
PAGE, PAGE_SIZE = 1000, 1 << 20
"""Records that are read at once, and bytes of records that are written at once."""
ROUNDS = 200
"""Times that others may be first before a caller hears of it."""


class Replica:
    """The copy in ``logs`` of what is in ``order``; ``directory`` is this machine's own record of it.

    Without a ``judge`` nothing of another machine is proven here, and nothing of this one elsewhere.
    """

    def __init__(self, logs: Logs, order: TotalOrder, directory: str, judge: SpaceJudge | None = None) -> None:
        self.logs = logs
        self.order = order
        self.directory = directory
        self.judge = judge
        self.state = CopyState({})
        self.parts: Mapping[str, Unordered] = {}
        self._proofs: Mapping[bytes, Proof | None] = {}
        self.heard: dict[str, int] | None = None
        self._is_fresh = False
        self.queue = SendQueue(directory, logs.wait)
        self.archive = Archive(logs.path(paths.ARCHIVE), logs.custody)
        self.filed = ArchivedDigests(self.archive)
        self._told = set[int]()
        self._is_sure = False
        self._moved_at: int | None = None
        self.restored = 0

    def machine_lock(self) -> FileLock:
        """Return the machine's lock for a ``with`` block."""
        system.make_directory(self.directory)
        return FileLock(system.join(self.directory, LOCK), self.logs.wait)

    def steward_lock(self) -> FileLock:
        """Return the lock of this machine's steward for a ``with`` block; it comes ahead of the machine's lock."""
        system.make_directory(self.directory)
        return FileLock(system.join(self.directory, STEWARD), self.logs.wait)

    # -- in the order -------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Write what is new in the order, publish what is new here, until neither has anything; under the lock.

        Raises ``Unavailable`` with everything as a kill would leave it."""
        is_sure, self._is_sure = self._is_sure, False
        self._load_state()
        self._look_at_parts()
        if not is_sure and self.state.applied and self.state.tip and self._is_rewound():
            self.restore_lost()
            self._begin_again()
        for _ in range(ROUNDS):
            self._look_at_parts()
            # Moved by nobody: what was expected is lost. Another process may have taken in what moved it.
            if not self.take_in() and self._moved_at == self.state.applied:
                self.restore_lost()
                self._begin_again()
                self.take_in()
            self._moved_at = None
            try:
                if publishing.publish_waiting(self):
                    continue
            except Moved:
                self._moved_at = self.state.applied
                continue
            self._is_fresh = True
            publishing.send_queued(self)
            self._note_settled()
            self._is_sure = True
            copy_state.note_fresh(self.directory)
            return
        raise Busy("engine is too busy: others are always first", "try again; nothing is lost")

    def begin_decision(self) -> None:
        """Be ready for one decision, under the lock; what this process took in just before need not be asked for again.

        The order refuses a decision that something else preceded: see ``publish_lines``."""
        if self._is_fresh:
            self.look_locally()
        else:
            self.catch_up()
        self._is_fresh = False

    def publish_lines(self, log: Log, lines: Sequence[bytes], proofs: Mapping[bytes, Proof | None]) -> bool:
        """Publish decided lines of a local log after ``begin_from``, under the same lock, and write them there.

        ``proofs`` are those of the lines. Return whether nothing else was in the order meanwhile. Raises ``Moved`` if
        there was, and it may decide otherwise."""
        kind = self._kind_of(log)
        ids = [id_of(line) for line in lines] if kind == MESSAGES else []
        signed = [publishing.sign_line(self.judge, kind, line, proofs.get(line)) for line in lines]
        try:
            last = self.order.append_lines(kind, signed, ids=ids, expect=None if ids else self.state.last.get(kind, 0))
        except Taken as taken:
            raise Moved(taken.what, "look again") from None  # it is here by the next look
        except Moved:
            self._moved_at = self.state.applied
            raise
        places = range(self.state.applied + 1, last + 1)
        if len(places) != len(lines):
            return self.take_in(proofs) == len(lines)
        there = [Ordered(*one, self.order.machine) for one in zip(places, [kind] * len(lines), signed, strict=True)]
        # nothing is between: what was published need not be read
        return self._write_records(there, proofs) == len(lines)

    def _note_settled(self) -> None:
        """Tell that this machine has followed all decisions, and forget what a comparison needed."""
        if self.state.owes:
            self.order.append_lines(PASSED, [follow_progress.followed_line(self.state.applied)])
        if new := self.state.damaged - self._told:
            self.order.append_lines(PASSED, [follow_progress.damaged_line(position) for position in sorted(new)[:MOST]])
            self._told |= new
        if self.state.doubts:
            self.restore_lost()
        if self.state.owes or self.state.compares or self.state.doubts:
            self.state.owes = self.state.compares = self.state.doubts = False
            self._save_state()
        self.filed = ArchivedDigests(self.archive)

    def end_of_order(self) -> int:
        """Return the end of the order after ``catch_up``, for a decision on everything; see ``file_away``.

        Raises ``Moved`` if more came meanwhile."""
        end = self.order.last_position()
        if self.order.read_after(self.state.applied, 1):
            raise Moved("order has moved", "look again")
        return end

    def file_away(self, bundles: Sequence[bytes], end: int, concerns: Callable[[Ordered], bool]) -> None:
        """Have all machines archive the lines of bundles, this one first. It takes in what came behind ``end``
        meanwhile. Raises ``Moved`` if one of those records ``concerns`` the decision."""
        for _ in range(ROUNDS):
            try:
                self.order.append_lines(ARCHIVE, bundles, expect=end)
                self.take_in()
                return
            except Moved:
                fresh = self.order.read_after(end, PAGE)
                if not fresh or any(map(concerns, fresh)):
                    raise
                self.take_in()
                end = fresh[-1].position
        raise Moved("order has moved", "look again")

    def _is_rewound(self) -> bool:
        """Return whether the engine lost the end of the order since, and perhaps gave the positions to others."""
        found = self.order.read_after(self.state.applied - 1, 1)
        if found and found[0].position == self.state.applied:
            return digest(unsealed(found[0].line)).hex() != self.state.tip
        return self.order.last_position() < self.state.applied

    def restore_lost(self) -> int:
        """Bring back what the order lost, under the lock, after ``catch_up``; return how many bundles that were."""
        from . import lost_records

        count = lost_records.restore_lost(self)
        self.restored += count
        return count

    def look_closer(self, *, at_all: bool = False) -> int:
        """Bring back what the order lost in its middle, under the lock, after ``catch_up``; return how many bundles.

        All of it is read if its number of positions without a record has changed, or ``at_all``."""
        holes, known = self.order.count_holes(), self.state.holes
        if holes == known and not at_all:
            return 0
        count = 0 if known is None and not at_all else self.restore_lost()
        self.state.holes = holes
        self._save_state()
        return count

    def check_order_again(self) -> None:
        """Look again, with the next ``catch_up``, whether the order is still the one that was taken in."""
        self._is_sure = self._is_fresh = False

    def take_in(self, proofs: Mapping[bytes, Proof | None] | None = None) -> int:
        """Write what is new in the order; return how many records that were.

        ``proofs`` are those of lines that this machine has just published."""
        taken, is_all = 0, False
        while not is_all:
            records, is_all = self._next_page()
            taken += self._write_records(records, proofs or {}) if records else 0
        return taken

    def _next_page(self) -> tuple[list[Ordered], bool]:
        """Return the next records, as many as are worth one sync, and whether they are all that there are."""
        found: list[Ordered] = []
        size = 0
        while size < PAGE_SIZE:
            more = self.order.read_after(found[-1].position if found else self.state.applied, PAGE)
            found += more
            if len(more) < PAGE:
                return found, True  # fewer than were asked for
            size += sum(len(record.line) for record in more)
        return found, False

    def _write_records(self, there: Sequence[Ordered], proofs: Mapping[bytes, Proof | None]) -> int:
        """Write records that follow what is here; return how many of them no steward decided.

        It goes on behind damaged ones: whoever has what they were brings it back when it hears of them."""
        self._proofs = proofs
        records = [record for record in there if is_known(record)]
        sound = (record for record in records if not record.damaged)
        for is_decision, group in itertools.groupby(sound, lambda record: record.is_decision):
            (self._follow_decision if is_decision else self._take_lines)([*group])
        damaged = [record for record in records if record.damaged]
        for record in damaged:
            self.state.damaged.add(record.position)
            self.state.last[record.log] = max(record.position, self.state.last.get(record.log, 0))
        if damaged or self.state.applied != there[-1].position:  # what is none of ours is passed over
            self.state.applied, self.state.tip = there[-1].position, digest(unsealed(there[-1].line)).hex()
            self._save_state()
        return sum(not record.is_decision for record in there)

    def _follow_decision(self, records: Sequence[Ordered]) -> None:
        """Archive what a steward decided, at this place of the order, through a rotation of this machine's own."""
        from . import following, lost_records  # only where something is archived

        for record in records:
            if record.log == PASSED:
                self._hear_word(record)
            elif (bundle := unpack_bundle(record.line)) is not None and bundle.file in self.parts:
                self.heard = None
                lost_records.take_back(self, bundle, record.machine)
            elif bundle is not None:
                self.state.owes, self.heard = True, None
                following.follow_bundle(self, bundle, record.machine)
            self.state.last[record.log] = self.state.applied = record.position
            self.state.tip = digest(unsealed(record.line)).hex()
            self._save_state()

    def _hear_word(self, record: Ordered) -> None:
        """Take in what a machine tells of the order."""
        self.state.purged = self.state.purged or follow_progress.is_purge(record.line)
        if (damaged := follow_progress.damaged_position(record.line)) is not None:
            self.state.doubts = True
            self.state.damaged.discard(damaged)

    def _take_lines(self, records: Sequence[Ordered]) -> None:
        """Append the records that the local logs do not have."""
        fresh: dict[str, list[tuple[Ordered, bytes, Judged]]] = {kind: [] for kind in KINDS}
        key = b""
        if self.judge is not None:
            self.judge.prepare_judging(self.logs)
        for record in records:
            kind, line = record.kind, unsealed(record.line)
            key = digest(line)
            if not self.parts[kind].strike(key) and not (self.state.compares and self.filed.has(key)):
                fresh[kind].append((record, key, self._judge_record(record, line)))
            elif self.judge is not None:
                self.judge.is_here(record)
            self.state.last[record.log] = record.position
            if self.heard is not None:
                self.heard[kind] += number(key)
        if self.judge is not None:
            self.judge.settle_numbers()
        for kind, found in fresh.items():
            if found:
                self._write_verdicts(kind, found)
        self.state.applied, self.state.tip = records[-1].position, key.hex()
        self._save_state()

    def _write_verdicts(self, kind: str, found: Sequence[tuple[Ordered, bytes, Judged]]) -> None:
        heeded = [record for record, _, verdict in found if not is_ignored(verdict.line)]
        disturbed = taken_records.disturbed_sessions(self.logs, kind, heeded)
        lines = [verdict.line + b"\n" for _, _, verdict in found]
        self._local_log(kind).append(lines, disturbed, [verdict.proof for _, _, verdict in found])
        self.parts[kind].look([(verdict.line, key) for _, key, verdict in found])

    def _judge_record(self, record: Ordered, line: bytes) -> Judged:
        """Return the verdict on a record; ``line`` is its line without seals."""
        ours = self._proofs.get(line) if record.machine == self.order.machine else None
        return Judged(line, ours) if self.judge is None else self.judge.judge_record(record, ours)

    def all_records(self) -> Iterator[Ordered]:
        """Yield all records of the order."""
        after = 0
        while records := self.order.read_after(after, PAGE):
            yield from records
            after = records[-1].position

    def keep_state(self, numbers: Mapping[str, int]) -> None:
        """Keep what is known after ``catch_up``, and that these numbers of machines are used
        (``SpaceJudge.use_numbers``)."""
        if self.judge is not None:
            self.judge.use_numbers(numbers)
        self._save_state()

    def look_locally(self) -> None:
        """Look at what is here, without the engine: ``applied`` and ``lines_to_publish`` tell it."""
        self._load_state()
        self._look_at_parts()

    def is_behind(self) -> bool:
        """Return whether, by the last look, there is something to take in or to publish."""
        return (
            self.order.wait_for_record(self.state.applied, 0)
            or any(True for _ in publishing.lines_to_publish(self))
            or bool(self.queue.read_entries())
        )

    # -- what is known ------------------------------------------------------------------------------------------------

    def _look_at_parts(self) -> None:
        if not all(part.look() for part in self.parts.values()):
            self._begin_again()  # a log was replaced, or cut

    def _begin_again(self) -> None:
        """Compare all of the local logs with all of the order."""
        self.state.applied, self.state.last, self.heard = 0, {}, dict.fromkeys(KINDS, 0)
        self.state.tip, self.state.damaged = "", set()
        self.parts = {kind: Unordered(self._local_log(kind)) for kind in KINDS}
        for part in self.parts.values():
            part.look()
        self._compare_all()

    def _compare_all(self) -> None:
        """From the order's beginning on, take what is archived here for taken in."""
        self.state.compares = True
        self.filed.look()

    def part_of(self, log: Log) -> Unordered:
        """Return what is known of a local log's lines."""
        return self.parts[self._kind_of(log)]

    def go_on_in(self, fresh: Replaced) -> None:
        """Go on in the log that took the place of one of the local logs."""
        kind = next(kind for kind in KINDS if self._local_log(kind).path == fresh.path)
        self.parts = {**self.parts, kind: self.parts[kind].replaced(fresh.inode, fresh.places)}

    def _kind_of(self, log: Log) -> str:
        return {self.logs.messages.path: MESSAGES, self.logs.roster.path: ROSTER}.get(log.path, CLAIMS)

    def _local_log(self, kind: str) -> Log:
        return {MESSAGES: self.logs.messages, ROSTER: self.logs.roster}.get(kind, self.logs.reads)

    def _load_state(self) -> None:
        self.state = state = copy_state.load_state(self.directory)
        if self.judge is not None:
            self.judge.begin_from(state.numbers, state.refused)
        self.heard = None if state.applied else dict.fromkeys(KINDS, 0)
        self.parts = {kind: Unordered(self._local_log(kind), *state.marks.get(kind, (0, 0, []))) for kind in KINDS}
        if state.compares:
            self._compare_all()

    def _save_state(self) -> None:
        for part in self.parts.values():
            part.secure()
        self.state.marks = {kind: part.saved() for kind, part in self.parts.items()}
        if self.judge is not None:
            self.state.numbers, self.state.refused = self.judge.numbers, self.judge.refused
        copy_state.save_state(self.directory, self.state)
