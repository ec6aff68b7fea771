"""Local lines that the order of several machines does not have yet.

Belongs here: where each belongs in the order, and the appends that an engine takes. ``replica`` publishes them.
"""

from __future__ import annotations

from ...core import codec, proofs
from ...core.records import BadLine, Read, Record
from ...store.log.proof_view import add_proof
from .order import CLAIMS, MESSAGES, MOST, ROSTER, WIDEST, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ...core.records import Proof
    from ...store.log.proof_view import ProofView

DECIDED = ("claim", "release")
"""The events of the reads log that the order decides; all others belong to their machine."""


class Waiting(Record):
    """A local line that the order does not have: its position in the local log, where it belongs, and its proof."""

    position: int
    line: bytes
    log: str
    id: str | None
    proof: Proof | None


def place_line(kind: str, position: int, line: bytes, machine: str, proof: Proof | None) -> Waiting | None:
    """Return where a local log's line, without seals, belongs in the order of that machine; None for no record."""
    if len(line) > WIDEST:
        return None
    if kind == ROSTER:
        event = codec.roster_event(line)
        return None if isinstance(event, BadLine) else Waiting(position, line, ROSTER, None, proof)
    if kind == MESSAGES:
        message = codec.message(line)
        return None if isinstance(message, BadLine) else Waiting(position, line, MESSAGES, message.id, proof)
    read = codec.read(line)
    if not isinstance(read, Read):
        return None
    is_decision = read.event in DECIDED and proofs.proves(proof)  # another program's line decides nothing
    return Waiting(position, line, CLAIMS if is_decision else reads_of(machine), None, proof)


def taken_back(lines: Iterable[tuple[int, bytes]], view: ProofView | None, late: Collection[int]) -> set[int]:
    """Return the ``late`` ones among a reads log's records, by position, that a decided release behind them took back.

    The order has that release already. Behind it they would count again on other machines, and here they do not:

        this file    read by ann, release by ann      nobody's
        the order    release by ann, read by ann      ann's
    """
    standing: dict[tuple[str, str], set[tuple[int, bool]]] = {}
    found = set[int]()
    for position, line in lines:
        record = codec.read(line)
        if isinstance(record, BadLine):
            continue
        is_proven = proofs.proves(add_proof(record, view, line, position).proof)
        about = standing.setdefault((record.message_id, record.session_id), set())
        if record.event != "release" and position in late:
            about.add((position, is_proven))
        elif record.event == "release" and record.nonce is None and position not in late:
            ended = {one for one in about if is_proven or not one[1]}
            about -= ended
            found.update(place for place, _ in ended)
    return found


def batch_lines(found: Iterable[Waiting]) -> Iterator[list[Waiting]]:
    """Yield the lines in appends that an engine takes; of lines with the same id each in one of its own."""
    batch: list[Waiting] = []
    size, ids = 0, set[str]()
    for one in found:
        if batch and (len(batch) == MOST or size + len(one.line) > WIDEST or one.id in ids):
            yield batch
            batch, size, ids = [], 0, set()
        batch.append(one)
        size += len(one.line)
        if one.id is not None:
            ids.add(one.id)
    if batch:
        yield batch


def id_of(line: bytes) -> str:
    """Return the id of a message's line; empty if it is none."""
    message = codec.message(line)
    return "" if isinstance(message, BadLine) else message.id


def is_same(these: bytes, those: bytes) -> bool:
    """Return whether two lines are the same mail, perhaps written at two times."""
    one, other = codec.message(these), codec.message(those)
    if isinstance(one, BadLine) or isinstance(other, BadLine):
        return False
    return one.replace(timestamp=0) == other.replace(timestamp=0)
