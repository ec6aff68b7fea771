"""The seals of a space's machines: signing this machine's lines, and judging those of the others.

Belongs here: that judgement, once for each line, before the line is written here; and finding those that wait. The
verdict is this machine's own seal on the line, with the proof as the other machine's word (``proofs.of_machine``). It
is there with the line or not at all. A line that does not count yet is sealed as waiting (``proofs.WAITS``): when the
person says more, it is judged again (``judging_again``).

A number grows with every line of a machine in a log, so a line that is published again counts for nothing. The numbers
are kept with the state of the copy, and those of the lines that are here already tell of an older state.
"""

from __future__ import annotations

from ...core import codec, proofs, space_seals
from ...core.line_forms import may_settle, reader_of
from ...core.machine_rights import SessionMachines, may_say, oversteps
from ...core.records import BadLine, Message, Read, Record, RosterEvent
from ...core.roster import Roster
from ...core.space_seals import unsealed
from ...store.files import paths, system
from ..order.order import CLAIMS, DECIDED, MESSAGES, ROSTER, decode_line, reads_of
from . import machine_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...core.machine_rights import Rights
    from ...core.records import Proof
    from ...core.space_seals import SpaceSeal
    from ...store.archive.rotation import Judge
    from ...store.log.log import Log
    from ...store.log.logs import Logs
    from ...store.log.proof_view import ProofView
    from ..order.order import Ordered
    from .machine_keys import MachineKey


class Judged(Record):
    """A line as it is to be written here, without newline, and what is proven of its writer."""

    line: bytes
    proof: Proof | None


class WaitingLine(Record):
    """A line that waits: with its machine's seal, and the log of the order in which that signed it."""

    line: bytes
    seal: SpaceSeal
    log: str


class SpaceJudge:
    """One machine's part in the seals of a space; ``directory`` has its key and the person's word on the others.

    ``numbers``: the last number of each sequence. ``refused``: how many lines in the name of each machine bore a seal
    that was wrong, used before, or behind a later one. ``strange``: the machines whose key is another than the person
    confirmed."""

    def __init__(self, space: str, machine: str, directory: str) -> None:
        self.space = space
        self.machine = machine
        self.directory = directory
        self.numbers: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.strange: set[str] = set()
        self._key: MachineKey | None = None
        self._asked = False
        self._rights: dict[str, Rights] | None = None
        self._last = 0
        self._here: dict[tuple[str, str], list[SpaceSeal]] = {}
        self._homes = SessionMachines(Roster())
        self._is_sure = True
        """Do ``numbers`` say all that is here? Lines that wait may have had their word since, and count soon."""

    def begin_from(self, numbers: Mapping[str, int], refused: Mapping[str, int]) -> None:
        """Go on from a saved state, by the person's present word."""
        self.numbers, self.refused = dict(numbers), dict(refused)
        self._rights = None
        self._here = {}
        self._is_sure = machine_keys.is_applied(self.directory)

    @property
    def key(self) -> MachineKey | None:
        """Return this machine's key; None if it has none, or nothing here can use it. Its library is slow to load."""
        if not self._asked:
            self._key, self._asked = machine_keys.load_key(self.directory), True
        return self._key

    @property
    def rights(self) -> Mapping[str, Rights]:
        if self._rights is None:
            self._rights = machine_keys.load_rights(self.directory)
        return self._rights

    def sign_line(self, log: str, line: bytes, proof: Proof | None) -> bytes:
        """Return a line of this machine, without seals, as it is published; unchanged if it proves nothing."""
        if proof is None or not proofs.is_seen_here(proof) or self.key is None:
            return line
        self._last = max(self._last, self.last_number(self.machine, log), system.time_ns() // 1000) + 1
        signed = space_seals.begun(line, self.machine, self._last, self.key.public, proof)
        return space_seals.ended(signed, self.key.sign_bytes(space_seals.covered(self.space, log, signed)))

    def prepare_judging(self, logs: Logs) -> None:
        """Be ready to judge the next records of the order; the roster is that before them."""
        self._homes = homes_of(logs)
        if not self._is_sure and machine_keys.is_available():
            self._is_sure = True
            self.use_numbers(self.true_seals(logs.roster, logs.messages, logs.reads)[0])

    def is_here(self, record: Ordered) -> None:
        """Take note of a record that was written here before: its number is used."""
        seal = space_seals.of(record.line)
        if seal is not None and seal.machine == record.machine:
            self._here.setdefault((seal.machine, record.log), []).append(seal)

    def settle_numbers(self) -> None:
        """Settle the numbers of the records that were written here before."""
        for machine, log in list(self._here):
            self._settle_sequence(machine, log)

    def _settle_sequence(self, machine: str, log: str) -> None:
        for seal in sorted(self._here.pop((machine, log), ()), key=lambda one: -one.number):
            if machine_keys.is_available() and self.is_confirmed(seal, log):
                self.use_numbers({space_seals.sequence(log, machine): seal.number})
                return

    def last_number(self, machine: str, log: str) -> int:
        """Return a machine's last number in a log of the order. A state of an earlier version has one for all logs."""
        return max(self.numbers.get(space_seals.sequence(log, machine), 0), self.numbers.get(machine, 0))

    def use_numbers(self, numbers: Mapping[str, int]) -> None:
        """Take the numbers of these sequences for used."""
        for key, number in numbers.items():
            self.numbers[key] = max(number, self.numbers.get(key, 0))

    def judge_record(self, record: Ordered, ours: Proof | None = None) -> Judged:
        """Return the verdict on a record that is not here yet. ``ours``: what this process itself saw of its writer."""
        found, other = self._judge_sealed(record, ours), record.machine if record.machine != self.machine else None
        if other is not None and not proofs.proves(found.proof):
            is_refused = found.proof is None and space_seals.of(record.line) is not None
            found = self.judge_unproven(other, record.log, found, refused=is_refused)
        if record.log == ROSTER:
            event = codec.roster_event(found.line)
            if isinstance(event, RosterEvent):
                self._homes.note(event, other, counts=proofs.proves(found.proof))
        return found

    def judge_unproven(
        self, machine: str, log: str, found: Judged, *, refused: bool = False, restored: bool = False
    ) -> Judged:
        """Return the verdict on another machine's line, of which nothing is proven: it tells of its own sessions alone.

        Else a roster event or a read is ignored. Mail is shown, and its sender's no more than by name. Its roster
        events, claims and releases count for its sessions as proven ones do. Else role mail would have two holders, one
        by each machine's view. A line whose seal was ``refused`` is no word. One that was ``restored`` may be another
        machine's, and says nothing of its own."""
        homes, line = self._homes, found.line
        if log == MESSAGES and not may_settle(line):
            return found
        who = reader_of(line) if log not in (MESSAGES, ROSTER) else None
        if who is not None and log != CLAIMS and homes.lives(who.decode("ascii", "replace"), machine):
            return found  # as most reads are: they are not decoded
        record = decode_line(log, unsealed(line))
        if isinstance(record, BadLine):
            return found
        is_sealable = line.startswith(b'{"') and line.endswith(b"}")  # spelt as an object of ours
        is_over = oversteps(machine, record, homes)
        if is_over and not (isinstance(record, Message) and is_sealable):
            return Judged(space_seals.ignored(line, machine), found.proof)
        is_word = is_over
        if not (is_over or restored or isinstance(record, Message)) and log in (CLAIMS, ROSTER):
            is_word = homes.is_new(record.session_id) or (homes.lives(record.session_id, machine) and not refused)
        if is_word and is_sealable:
            return Judged(line, proofs.of_machine(machine, found.proof or proofs.UNPROVEN))
        return found

    def is_ours_alone(self, machine: str, log: str, line: bytes) -> bool:
        """Return whether a roster event or read is of a session of this machine, of which no other one may tell."""
        record, homes = decode_line(log, line), self._homes
        if isinstance(record, (BadLine, Message)):
            return False
        return homes.lives_here(record.session_id) and oversteps(machine, record, homes)

    def _judge_sealed(self, record: Ordered, ours: Proof | None) -> Judged:
        machine, line = record.machine, unsealed(record.line)
        seal = space_seals.of(record.line)
        if seal is None:
            return Judged(line, ours)
        self._settle_sequence(machine, record.log)
        if ours is not None:
            self.use_numbers({space_seals.sequence(record.log, machine): seal.number})
            return Judged(line, ours)
        is_whole = seal.machine == machine and space_seals.without(record.line) == line
        if not is_whole or seal.number <= self.last_number(machine, record.log):
            return self._refused_verdict(machine, line)
        is_known = self.is_key_of(machine, seal)
        if not is_known and machine == self.machine and self.key is not None:
            return Judged(line, None)  # by the mailbox that had this name before: no word makes it count
        if not is_known and machine in self.rights:
            self.strange.add(machine)
        if is_known and not machine_keys.is_available() and machine_keys.is_applied(self.directory):
            # a process that can verify goes over it
            machine_keys.save_rights(self.directory, self.rights, applied=False)
        if not is_known or not machine_keys.is_available():
            return Judged(record.line, proofs.WAITS)
        if not self.is_true(seal, record.log):
            return self._refused_verdict(machine, line)
        self.use_numbers({space_seals.sequence(record.log, machine): seal.number})
        return self.weigh_seal(seal, record.log, record.line, self._homes)

    def weigh_seal(self, seal: SpaceSeal, log: str, line: bytes, homes: SessionMachines) -> Judged:
        """Return the verdict on a line with a true seal: it counts as far as the person says."""
        content = space_seals.without(line)
        if seal.proof is None or not proofs.is_seen_here(seal.proof):
            return Judged(content, None)
        if (machine := seal.machine) == self.machine:
            return Judged(content, seal.proof)
        decoded, rights = decode_line(log, content), self.rights.get(machine)
        if rights is None or isinstance(decoded, BadLine) or not may_say(machine, rights, seal.proof, decoded, homes):
            return Judged(line, proofs.WAITS)
        return Judged(content, proofs.of_machine(machine, seal.proof))

    def _refused_verdict(self, machine: str, line: bytes) -> Judged:
        self.refused[machine] = self.refused.get(machine, 0) + 1
        return Judged(line, None)

    def is_key_of(self, machine: str, seal: SpaceSeal) -> bool:
        """Return whether the seal is of the key that is this machine's, or that the person confirmed for the other."""
        if machine == self.machine:
            return self.key is not None and seal.key == self.key.public
        rights = self.rights.get(machine)
        return rights is not None and machine_keys.key_fingerprint(seal.key) == rights.fingerprint

    def is_own_key(self, fingerprint: str) -> bool:
        """Return whether the fingerprint is that of this machine's key. One that nothing here can read counts as it."""
        if self.key is None:
            return machine_keys.is_kept(self.directory)
        return machine_keys.key_fingerprint(self.key.public) == fingerprint

    def hear_new_key(self, machine: str, fingerprint: str) -> None:
        """Take in that another mailbox took a machine's name over, with that key: an earlier one counts for nothing."""
        machine_keys.forget_rights(self.directory, machine, but=fingerprint)
        self._rights = None

    def is_confirmed(self, seal: SpaceSeal, log: str) -> bool:
        """Return whether a confirmed key of its machine made the seal, for this space and that log of the order."""
        return self.is_key_of(seal.machine, seal) and self.is_true(seal, log)

    def true_seals(self, *logs: Log) -> tuple[dict[str, int], set[bytes]]:
        """Return the last numbers and the signatures of the seals that wait in these logs and that confirmed keys made.

        Each number of a sequence counts once, and a log's lines are in the order in which their machine made them."""
        numbers, signatures = dict[str, int](), set[bytes]()
        for one in lines_that_wait(*logs):
            seal, place = one.seal, space_seals.sequence(one.log, one.seal.machine)
            is_next = seal.number > numbers.get(place, 0)
            if is_next and self.is_confirmed(seal, one.log):
                numbers[place] = seal.number
                signatures.add(seal.signature)
        return numbers, signatures

    def is_true(self, seal: SpaceSeal, log: str) -> bool:
        """Return whether the seal signs its line, for this space and that log of the order."""
        return machine_keys.is_signed(seal.key, seal.signature, space_seals.covered(self.space, log, seal.signed))


def homes_of(logs: Logs) -> SessionMachines:
    return SessionMachines(logs.read_roster(), lambda who: bool(logs.last_seen([who])))


def lines_that_wait(*logs: Log) -> Iterator[WaitingLine]:
    for log in logs:
        if (view := log.view()) is not None:
            yield from filter(None, (waiting_at(log, position, line, view) for position, line in log.lines()))


def waiting_at(log: Log, position: int, line: bytes, view: ProofView) -> WaitingLine | None:
    """Return the line at a position of a log, if it waits."""
    if not space_seals.may_be_sealed(line) or not view.waits(line, position):
        return None
    sealed = space_seals.heeded(proofs.remove_seal(line))
    if (seal := space_seals.of(sealed)) is None:
        return None
    kind = log.path.rpartition("/")[2]
    if kind != paths.READS:
        return WaitingLine(sealed, seal, MESSAGES if kind == paths.MESSAGES else ROSTER)
    read = codec.read(sealed)
    is_decision = isinstance(read, Read) and read.event in DECIDED
    return WaitingLine(sealed, seal, CLAIMS if is_decision else reads_of(seal.machine))


def unheard_lines(logs: Logs) -> list[dict[str, object]]:
    """Return what waits here for the person's word: of each machine and key, how many lines."""
    found: dict[tuple[str, str], int] = {}
    for one in lines_that_wait(logs.roster, logs.messages, logs.reads):
        key = one.seal.machine, machine_keys.key_fingerprint(one.seal.key)
        found[key] = found.get(key, 0) + 1
    return [{"machine": one, "fingerprint": key, "lines": lines} for (one, key), lines in sorted(found.items())]


def judging_again(judge: SpaceJudge, true: set[bytes], log: Log, roster: Roster) -> Judge:
    """Return what judges the lines of a log in turn. The roster of a roster log is folded on the way, as it was line by
    line."""
    homes = SessionMachines(roster)

    def judge_again(position: int, line: bytes, view: ProofView) -> tuple[bytes, Proof] | None:
        one, found = waiting_at(log, position, line, view), None
        if one is not None and one.seal.signature in true:
            true.remove(one.seal.signature)  # a copy of the line is no second one
            judged = judge.weigh_seal(one.seal, one.log, one.line, homes)
            if judged.proof is not None and proofs.proves(judged.proof):
                found = judged.line, judged.proof
        event = codec.roster_event(line if found is None else found[0]) if log.path.endswith(paths.ROSTER) else None
        if isinstance(event, RosterEvent):
            proof = (view.proof(line, position) or view.bare_word(line, position)) if found is None else found[1]
            roster.apply(event if proof is None else event.replace(proof=proof))
        return found

    return judge_again
