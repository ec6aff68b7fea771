"""A machine's copy of a mailbox that several machines share.

Belongs here: catching up with the order, publishing what is decided, and what a killed process left. Must not know any
engine, nor why something is decided (``ordered_log``). One lock of the machine, ``machine_lock``, is around all of it,
ahead of every log's lock and behind a session's delivery lock.

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

from ...core.space_seals import is_ignored
from ...errors import Busy
from ...store.archive.archived_digests import ArchivedDigests
from ...store.files import system
from ...store.log.unordered import digest, number, unsealed
from ..order import order as orders
from ..order.order import ARCHIVE, KINDS, MESSAGES, MOST, PAGE, PASSED, Moved, Ordered, Taken, id_of, is_known
from ..trust.space_judge import Judged
from . import known_copy, publishing
from .known_copy import KnownCopy
from .space_troubles import RESTORED, TWIN, note_displaced, note_trouble, restored_warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...core.records import Proof
    from ...store.log.log import Log

PAGE_SIZE = 1 << 20
"""Bytes of records that are written at once."""
ROUNDS = 200
"""Times that others may be first before a caller hears of it."""


class Replica(KnownCopy):
    """The copy that takes in what is new in the order, and publishes what is new here; see ``KnownCopy``."""

    restored = 0
    _is_fresh = _is_sure = False
    _moved_at: int | None = None

    def catch_up_since(self, since: int) -> None:
        """Do what ``catch_up`` does, unless another process did all of it after that time (ms): then look here."""
        age = known_copy.copy_age(self.directory, now := system.time_ns() // 1_000_000)
        if age is not None and 0 <= age < now - since:
            self._is_sure = False
            self.look_locally()
            if self.state.applied:
                self._is_fresh = True
                return
        self.catch_up()

    def catch_up(self) -> None:
        """Write what is new in the order, publish what is new here, until neither has anything; under the lock.

        Raises ``Unavailable`` with everything as a kill would leave it, and ``Displaced`` ahead of publishing."""
        began = system.time_ns() // 1_000_000
        is_sure, self._is_sure = self._is_sure, False
        self.look_locally()
        end = self._take_in_behind_tip() if not is_sure and self.state.applied and self.state.tip else None
        for _ in range(ROUNDS):
            self._look_at_parts()
            is_new = self.state.applied != end and self.take_in() > 0  # whoever begins again is not at the end
            end = None
            # Moved by nobody: what was expected is lost. Another process may have taken in what moved it.
            if not is_new and self._moved_at == self.state.applied:
                self.restore_lost()
                self._begin_again()
                self.take_in()
            self._moved_at = None
            if self.state.displaced:
                raise orders.Displaced(self.order.machine)
            try:
                if publishing.publish_waiting(self):
                    continue
            except Moved:
                self._moved_at = self._asked_at
                continue
            self._is_fresh = True
            publishing.send_queued(self, self.take_in)
            self._note_settled()
            self._is_sure = True
            known_copy.note_fresh(self.directory, began)
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
        kind = self._kind_of(log.path)
        ids = [id_of(line) for line in lines] if kind == MESSAGES else []
        signed = [self.judge.sign_line(kind, line, proofs.get(line)) for line in lines]
        before = self.state.applied
        self.note_proofs(proofs)
        try:
            last = self.order.append_lines(kind, signed, ids=ids, expect=None if ids else self.state.last.get(kind, 0))
        except Taken as taken:
            raise Moved(taken.what, "look again") from None  # it is here by the next look
        except Moved:
            self._moved_at = before
            raise
        if last - before != len(lines):
            return self.take_in(proofs) == len(lines)
        there = [Ordered(place, kind, line, self.order.machine) for place, line in enumerate(signed, before + 1)]
        # nothing is between: what was published need not be read
        return self.write_records(there, proofs) == len(lines)

    def _note_settled(self) -> None:
        """Tell that this machine has followed all decisions, and forget what a comparison needed."""
        if self.state.owes:
            self.order.append_lines(PASSED, [orders.spell_word(orders.APPLIED, self.state.applied)])
        if damaged := sorted(self.state.damaged)[:MOST]:
            self.order.append_lines(PASSED, [orders.spell_word(orders.DAMAGED, one) for one in damaged])
        if self.state.doubts:
            self.restore_lost()
        if self.state.owes or self.state.compares or self.state.doubts:
            self.state.owes = self.state.compares = self.state.doubts = False
            self._save_state()
        self.filed = ArchivedDigests(self.archive)

    def end_of_order(self) -> int:
        """Return the end of the order after ``catch_up``, for ``file_away``; raise ``Moved`` if more came meanwhile."""
        end = self.order.last_position()
        if self.order.read_after(self.state.applied, 1):
            raise Moved("order has moved", "look again")
        return end

    def file_away(self, bundles: Sequence[bytes], end: int, concerns: Callable[[Ordered], bool]) -> None:
        """Have all machines archive the lines of bundles: this one, too, as it catches up.

        Raises ``Moved`` if a record that came behind ``end`` ``concerns`` the decision."""
        for _ in range(ROUNDS):
            try:
                self.order.append_lines(ARCHIVE, bundles, expect=end)
                return
            except Moved:
                fresh = self.order.read_after(end, PAGE)
                if not fresh or any(map(concerns, fresh)):
                    raise
                end = fresh[-1].position
        raise Moved("order has moved", "look again")

    def _take_in_behind_tip(self) -> int | None:
        """Write what is new in the order, by the question that shows the last record which is here, too. Return the
        order's end; None: it is not reached yet. If the engine lost that record since, bring it back."""
        applied, tip = self.state.applied, self.state.tip
        found = self.order.read_after(applied - 1, PAGE)
        if self._is_rewound(found, applied, tip):
            self.restore_lost()
            self._begin_again()
            return None
        self.write_records(found, {})
        return max(applied, found[-1].position) if found and len(found) < PAGE else None

    def _is_rewound(self, found: Sequence[Ordered], applied: int, tip: str) -> bool:
        """Return whether the engine lost the end of the order since, and perhaps gave the positions to others.

        ``found``: what it has from ``applied`` on. Without that record a steward removed it, or the order ended."""
        if not found or found[0].position != applied:
            if self.order.last_position() < applied:
                return True
            found = self.order.read_after(applied - 1, 1)
        return bool(found) and found[0].position == applied and _tip_of(found[0]) != tip

    def restore_lost(self) -> int:
        """Bring back what the order lost, under the lock, after ``catch_up``; return how many bundles that were."""
        from . import bundled_lines

        count = bundled_lines.restore_lost(self)
        if count:
            note_trouble(self.directory, RESTORED, restored_warning(count))
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
        """Write what is new in the order; return how many records. ``proofs``: of lines that were just published."""
        taken, is_all = 0, False
        while not is_all:
            found, size = list[Ordered](), 0
            while size < PAGE_SIZE and not is_all:  # as many as are worth one sync
                more = self.order.read_after(found[-1].position if found else self.state.applied, PAGE)
                found += more
                is_all = len(more) < PAGE
                size += sum(len(record.line) for record in more)
            taken += self.write_records(found, proofs or {})
        return taken

    def write_records(self, there: Sequence[Ordered], proofs: Mapping[bytes, Proof | None]) -> int:
        """Write records that follow what is here; return how many of them no steward decided.

        It goes on behind damaged ones: whoever has what they were brings it back when it hears of them. Records that
        are here already are left out. Another process took them in while the engine was asked."""
        there = [record for record in there if record.position > self.state.applied]
        if not there:
            return 0
        for part in self.parts.values():
            part.look()  # one that was killed wrote lines, and did not save that
        records = [record for record in there if is_known(record)]
        damaged = [record for record in records if record.damaged]
        self.state.damaged.update(record.position for record in damaged)  # ahead of the words that tell of them
        sound = (record for record in records if not record.damaged)
        for is_decision, group in itertools.groupby(sound, lambda record: record.is_decision):
            if is_decision:
                self._follow_decision([*group])
            else:
                self._take_lines([*group], proofs)
        for record in damaged:
            self.state.last[record.log] = max(record.position, self.state.last.get(record.log, 0))
        if damaged or self.state.applied != there[-1].position:  # what is none of ours is passed over
            self.state.applied, self.state.tip = there[-1].position, _tip_of(there[-1])
            self._save_state()
        return sum(not record.is_decision for record in there)

    def _follow_decision(self, records: Sequence[Ordered]) -> None:
        """Archive what a steward decided, at this place of the order, through a rotation of this machine's own."""
        from . import bundled_lines  # only where something is archived

        for record in records:
            if record.log == PASSED:
                self._hear_word(record)
            elif (bundle := bundled_lines.unpack_bundle(record.line)) is not None and bundle.file in self.parts:
                self.heard = None
                bundled_lines.take_back(self, bundle, record.machine)
            elif bundle is not None:
                self.state.owes, self.heard = True, None
                bundled_lines.follow_bundle(self, bundle, record.machine)
            self.state.last[record.log] = self.state.applied = record.position
            self.state.tip = _tip_of(record)
            self._save_state()

    def _hear_word(self, record: Ordered) -> None:
        """Take in what a machine tells of the order."""
        what, said = orders.read_word(record.line)
        if what == orders.PURGED:
            self.state.purged = True
        elif what == orders.GAVE_UP and said == self.order.machine:
            self.state.owes = True  # whoever lives says more, and nobody may have its name
            if record.machine == said:
                note_trouble(self.directory, TWIN, "")  # a copy of this machine left
        elif what == orders.DAMAGED:
            self.state.doubts = True
            self.state.damaged.discard(said)
        elif what == orders.TOOK_OVER and record.machine == self.order.machine:
            self.state.displaced = not self.judge.is_own_key(said)
            note_displaced(self.directory, record.machine if self.state.displaced else None)
        elif what == orders.TOOK_OVER:
            self.judge.hear_new_key(record.machine, said)
        orders.FollowProgress(self.state.gone, self.state.keys).take_records([record])

    def _take_lines(self, records: Sequence[Ordered], proofs: Mapping[bytes, Proof | None]) -> None:
        """Append the records that the local logs do not have; ``proofs``: see ``write_records``."""
        fresh: dict[str, list[tuple[Ordered, bytes, Judged]]] = {kind: [] for kind in KINDS}
        self.judge.prepare_judging(self.logs)
        for record in records:
            kind, line = record.kind, unsealed(record.line)
            key = digest(line)
            if not self.parts[kind].strike(key) and not (self.state.compares and self.filed.has(key)):
                ours = proofs.get(line) if record.machine == self.order.machine else None
                fresh[kind].append((record, key, self.judge.judge_record(record, ours)))
            else:
                self.judge.is_here(record)
            self.state.last[record.log] = record.position
            if self.heard is not None:
                self.heard[kind] += number(key)
        self.judge.settle_numbers()
        for kind, found in fresh.items():
            if found:
                self._write_verdicts(kind, found)
        self.state.applied, self.state.tip = records[-1].position, key.hex()
        self._save_state()

    def _write_verdicts(self, kind: str, found: Sequence[tuple[Ordered, bytes, Judged]]) -> None:
        heeded = [record for record, _, verdict in found if not is_ignored(verdict.line)]
        disturbed = known_copy.disturbed_sessions(self.logs, kind, heeded)
        lines = [verdict.line + b"\n" for _, _, verdict in found]
        self.local[kind].append(lines, disturbed, [verdict.proof for _, _, verdict in found])
        self.parts[kind].look([(verdict.line, key) for _, key, verdict in found])

    def keep_state(self, numbers: Mapping[str, int]) -> None:
        """Keep what is known after ``catch_up``, and that these numbers of machines are used."""
        self.judge.use_numbers(numbers)
        self._save_state()

    def take_in_beside(self) -> int:
        """Write what is new in the order while another process of this machine has its turn, and waits for the engine.

        Return how many records. The caller has no lock. Whatever needs the turn is left to its holder: a steward's
        decision, a damaged record, an order that lost its end, a comparison of all."""
        taken = 0
        while True:
            with self.files_lock:
                known = self.look_beside()
            if known is None:
                return taken
            found = self.order.read_after(known[0] - 1, PAGE)
            if not found or (found[0].position, _tip_of(found[0])) != known:
                return taken  # the order lost its end
            plain = [*itertools.takewhile(lambda record: not (record.is_decision or record.damaged), found[1:])]
            if not plain:
                return taken
            ours = {unsealed(record.line) for record in plain if record.machine == self.order.machine}
            with self.files_lock:
                if self.look_beside() == known:
                    taken += self.write_records(plain, self.noted_proofs(ours))

    def is_behind(self) -> bool:
        """Return whether, by the last look, there is something to take in or to publish."""
        waits = any(True for _ in publishing.lines_to_publish(self)) or bool(self.queue.read_entries())
        return waits or bool(self.order.read_after(self.state.applied, 1))


def _tip_of(record: Ordered) -> str:
    return digest(unsealed(record.line)).hex()
