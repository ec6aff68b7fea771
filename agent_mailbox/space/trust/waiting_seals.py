"""The lines here that wait for the person's word, with the seals of their machines.

Belongs here: finding them, and which of their seals are true. Must not know who may say what (``space_trust``).
"""

from __future__ import annotations

from ...core import codec, proofs, space_seals
from ...core.records import Read, Record
from ...core.space_seals import SpaceSeal
from ...store.files import paths
from ..order.order import CLAIMS, MESSAGES, ROSTER, reads_of
from ..order.waiting_lines import DECIDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...store.log.log import Log
    from ...store.log.proof_view import ProofView


class WaitingLine(Record):
    """A line that waits: with its machine's seal, and the log of the order in which that signed it."""

    line: bytes
    seal: SpaceSeal
    log: str


def true_seals(is_confirmed: Callable[[SpaceSeal, str], bool], logs: Sequence[Log]) -> TrueSeals:
    """Return the true seals among those that wait in these local logs; see ``SpaceJudge.is_confirmed``."""
    found = TrueSeals(is_confirmed)
    for log in logs:
        found.take_log(log)
    return found


def lines_that_wait(log: Log) -> Iterator[WaitingLine]:
    """Yield the lines of a log that wait."""
    view = log.view()
    if view is not None:
        for position, line in log.lines():
            found = waiting_at(log, position, line, view)
            if found is not None:
                yield found


def waiting_at(log: Log, position: int, line: bytes, view: ProofView) -> WaitingLine | None:
    """Return the line at a position of a log, if it waits."""
    if not space_seals.may_be_sealed(line) or not view.waits(line, position):
        return None
    sealed = space_seals.heeded(proofs.remove_seal(line))
    seal = space_seals.of(sealed)
    return None if seal is None else WaitingLine(sealed, seal, _ordered_as(log, sealed, seal.machine))


def _ordered_as(log: Log, line: bytes, machine: str) -> str:
    kind = log.path.rpartition("/")[2]
    if kind != paths.READS:
        return MESSAGES if kind == paths.MESSAGES else ROSTER
    read = codec.read(line)
    return CLAIMS if isinstance(read, Read) and read.event in DECIDED else reads_of(machine)


class TrueSeals:
    """The seals among those that wait which the confirmed keys made, each number of a sequence once."""

    def __init__(self, is_confirmed: Callable[[SpaceSeal, str], bool]) -> None:
        self._is_confirmed = is_confirmed
        self.numbers: dict[str, int] = {}
        self.signatures: set[bytes] = set()

    def take_log(self, log: Log) -> None:
        """Take in those of a local log. A log's lines stand in the order in which their machine made them; a copy does
        not."""
        for one in lines_that_wait(log):
            seal, place = one.seal, space_seals.sequence(one.log, one.seal.machine)
            is_next = seal.number > self.numbers.get(place, 0)
            if is_next and self._is_confirmed(seal, one.log):
                self.numbers[place] = seal.number
                self.signatures.add(seal.signature)

    def take_seal(self, seal: SpaceSeal) -> bool:
        """Return whether the seal is one of them, the first time."""
        if seal.signature not in self.signatures:
            return False
        self.signatures.remove(seal.signature)
        return True
