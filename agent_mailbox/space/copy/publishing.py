"""Publishing what is in a machine's files and not in the order of its shared mailbox.

Belongs here: which lines those are, where each belongs in the order, and the appends that an engine takes. Each comes
into the order once, whenever a process of this machine was killed. A decision is not published here: it is in the order
before it is in any file (``Replica.publish_lines``).
"""

from __future__ import annotations

import itertools

from ...core import codec, proofs
from ...core.line_forms import may_be_message, may_release
from ...core.records import BadLine, Message, Read, Record
from ...store.log.proof_view import add_proof
from ...store.log.stamps import EVERYONE
from ...store.log.unordered import unsealed
from ..order.order import CLAIMS, DECIDED, MESSAGES, MOST, WIDEST, Taken, decode_line, id_of, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ...core.records import Proof
    from ...store.log.log import Log
    from .known_copy import KnownCopy


class Waiting(Record):
    """A local line that the order does not have: its position in the local log, where it belongs, and its proof."""

    position: int
    line: bytes
    log: str
    id: str | None
    proof: Proof | None


def place_line(kind: str, position: int, line: bytes, machine: str, proof: Proof | None) -> Waiting | None:
    """Return where a local log's line, without seals, belongs in the order of that machine; None for no record."""
    if len(line) > WIDEST or isinstance(record := decode_line(kind, line), BadLine):
        return None
    if not isinstance(record, Read):
        return Waiting(position, line, kind, record.id if isinstance(record, Message) else None, proof)
    is_decision = record.event in DECIDED and proofs.proves(proof)  # another program's line decides nothing
    return Waiting(position, line, CLAIMS if is_decision else reads_of(machine), None, proof)


def lines_to_publish(copy: KnownCopy) -> Iterator[Waiting]:
    """Yield what is here and not in the order; settle what is no record, and reads that were taken back meanwhile."""
    for kind, part in copy.parts.items():
        view = part.log.view()
        over = taken_back(part.log, {position for position, _ in part.waiting()}) if kind == CLAIMS else ()
        for position, line in part.waiting():
            proof = None if view is None else view.proof(line, position)
            found = place_line(kind, position, unsealed(line), copy.order.machine, proof)
            if found is None or position in over:
                part.settle(position)
            else:
                yield found


def publish_waiting(copy: KnownCopy) -> bool:
    """Publish what is here alone; return whether there is now something to read.

    Raises ``Moved`` if another machine was first, or a process of this one that was killed."""
    done, last = False, dict(copy.state.last)
    sign = copy.judge.sign_line
    found = (
        one if one.proof is None else one.replace(line=sign(one.log, one.line, one.proof))
        for one in lines_to_publish(copy)
    )
    for log, group in itertools.groupby(found, lambda one: one.log):
        for batch in batch_lines(group):
            wanted = _drop_archived(copy, batch) if log == MESSAGES and copy.state.purged else batch
            if wanted:
                last[log] = _append_lines(copy, log, wanted, last.get(log, 0))
            done = True
    return done


def _append_lines(copy: KnownCopy, log: str, batch: Sequence[Waiting], last: int) -> int:
    """Append lines behind the log's record at ``last``, each for itself if some are in the order; return the last one's
    position."""
    lines, ids = [one.line for one in batch], [one.id for one in batch if one.id is not None]
    try:
        return copy.order.append_lines(log, lines, ids=ids, expect=None if ids else last)
    except Taken as taken:
        if len(batch) > 1:
            for one in batch:
                _append_lines(copy, log, [one], last)
        elif taken.position <= copy.state.applied:
            copy.parts[MESSAGES].settle(batch[0].position)  # another message has its id; this one stays here alone
        return last


def _drop_archived(copy: KnownCopy, batch: Sequence[Waiting]) -> list[Waiting]:
    """Return the messages whose ids no archived message has, also where the order has it no more; others stay here."""
    ids = {one.id or "" for one in batch}
    archived = {id_of(line) for line in _find_archived(copy, ids)} & ids
    for one in batch:
        if one.id in archived:
            copy.parts[MESSAGES].settle(one.position)
    return [one for one in batch if one.id not in archived]


def send_queued(copy: KnownCopy, take_in: Callable[[Mapping[bytes, Proof | None]], object]) -> None:
    """Publish what waited for the engine: each send once; ``take_in``: see ``Replica``."""
    for entry in copy.queue.read_entries():
        lines = [copy.judge.sign_line(MESSAGES, *one) for one in entry.about()]
        ids = [id_of(line) for line in entry.lines]
        about = dict(entry.about())
        known = _archived_lines_with(copy, {*ids})  # which the order may have no more
        copy.note_proofs(about)
        try:
            if not known:
                copy.order.append_lines(MESSAGES, lines, ids=ids)
        except Taken as taken:  # by us before, unless another message has the id
            known = [unsealed(record.line) for record in copy.order.read_after(taken.position - 1, 1)]
        take_in(about)
        copy.queue.drop_oldest(entry, known)


def keep_queued(copy: KnownCopy) -> list[bytes]:
    """Write the mail that waits for the engine into this machine's files, as a leaving machine does; return its lines.

    A kill loses nothing, and doubles nothing: what is in the files already is only taken from the queue."""
    kept = list[bytes]()
    for entry in copy.queue.read_entries():
        if not (known := _archived_lines_with(copy, {*map(id_of, entry.lines)})):
            copy.logs.messages.append([line + b"\n" for line in entry.lines], EVERYONE, entry.proofs)
            kept += entry.lines
        copy.queue.drop_oldest(entry, known)
    return kept


def _archived_lines_with(copy: KnownCopy, ids: set[str]) -> list[bytes]:
    """Return the lines of this machine's files, archived ones too, whose message has one of the ids."""
    wanted = {message_id.encode() for message_id in ids}
    live = (line for _, line in copy.logs.messages.lines() if may_be_message(line, wanted))
    found = (*live, *_find_archived(copy, ids))
    return [unsealed(line) for line in found if id_of(line).encode() in wanted]


def _find_archived(copy: KnownCopy, ids: set[str]) -> list[bytes]:
    from ...store.projection.archived_mail import find_lines  # not on the way of most sends

    return find_lines(copy.logs, copy.archive, ids)


def taken_back(log: Log, late: Collection[int]) -> set[int]:
    """Return the ``late`` ones among a reads log's records, by position, that a decided release behind them took back.

    The order has that release already: a hook records without the machine's lock, while the engine is asked or out of
    reach. Behind it they would count again on other machines, and here they do not:

        this file    read by ann, release by ann      nobody's
        the order    release by ann, read by ann      ann's
    """
    lines = [at for at in log.lines(min(late)) if at[0] in late or may_release(at[1])] if late else []
    if len(lines) <= len(late):
        return set()
    view = log.view()
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
            found.update(place for place, is_sealed in about if is_proven or not is_sealed)
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
