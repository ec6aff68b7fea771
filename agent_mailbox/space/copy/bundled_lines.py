"""Lines in bundles: those that a steward had archived everywhere, and those that an engine lost and gets back.

Belongs here: the form of a bundle on the wire, and what a machine does with one as it comes to it in the order. Then
finding and publishing what the order has no more.

**Archived.** Each machine moves its own lines, sealed as they are, through its own rotation. Lines that it never had
come from the bundle, which keeps them for who joins later: their records may be removed. A bundle from another machine
may deny and never allow. An order that is there by this machine's own judgement stays. So does mail that one of its
sessions, or the person, has yet to be shown.

**Lost.** Every machine's files are a second copy of the order. A server whose file was damaged may drop thousands of
records as it starts, without a word, and give their positions to others. So a copy keeps the digest of the last record
that it took in, and how many positions have none. It comes back in bundles that name a log in place of an
archive's file. A machine that has a line already, live or archived, does not write it again. So any number of machines
may restore the same at once. Agents whose lives were retold come back as a steward's decision: with what is archived of
them, and what is told in its place.
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING

from ...config import config
from ...core import codec
from ...core.keeping import retention
from ...core.records import USER, BadLine
from ...core.roster import DEAD
from ...core.space_seals import is_ignored
from ...errors import BadData
from ...store.archive import roster_compaction, rotation
from ...store.archive.archive import ROSTER as EVENTS
from ...store.archive.manifest import Manifest
from ...store.files import system
from ...store.log.stamps import EVERYONE
from ...store.log.unordered import Unordered, digest, unsealed
from ..order import order as orders
from ..order.order import ARCHIVE, CLAIMS, KINDS, MESSAGES, ROSTER, Bundle, all_records, decode_line, id_of
from ..trust.space_judge import Judged
from .publishing import taken_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from ...core.inbox import InboxState
    from .known_copy import KnownCopy

    T = TypeVar("T")

READS_END = "-reads.jsonl"
WHOLE = 1 << 20
"""Bytes of lines that are put into one bundle, unless a single line is longer."""
LARGEST = 2 << 20
"""Bytes that a bundle may unpack to."""
DAMAGED = "damaged"
"""The word for damaged records among those that were passed over: no log has that name."""


def pack_bundle(bundle: Bundle, mark: str = "") -> bytes:
    """Return the bundle as the line of a record; with a ``mark`` it is like no other."""
    head = codec.dumps({"file": bundle.file, "told": len(bundle.told), "since": bundle.since, "mark": mark}).encode()
    return zlib.compress(b"\n".join((head, *bundle.told, *bundle.lines)))


def unpack_bundle(line: bytes) -> Bundle | None:
    """Return the bundle of a record; None if it has another form, or is too large: another machine may write any."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(line, LARGEST)
    except zlib.error:
        return None
    first, *lines = text.split(b"\n")
    head = codec.parse(first)
    if not unpacking.eof or not isinstance(head, dict):
        return None
    file, told, since = head.get("file"), head.get("told"), head.get("since")
    if not isinstance(file, str) or not is_file(file) or type(told) is not int or type(since) is not int or told < 0:
        return None
    return Bundle(file, tuple(lines[told:]), tuple(lines[:told]), since)


def is_file(name: str) -> bool:
    """Return whether an archive may have a file of that name, or a log has it, to which lost lines come back."""
    month, rest = name[:7], name[7:]
    is_month = month[:4].isdecimal() and month[4:5] == "-" and month[5:].isdecimal() and month.isascii()
    return name in (EVENTS, *KINDS) or (len(month) == 7 and is_month and rest in (".jsonl", READS_END))


def in_parts(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in groups of some ``WHOLE`` bytes; one that is larger is alone."""
    group: list[T] = []
    size = 0
    for item in items:
        own = size_of(item)
        if group and size + own > WHOLE:
            yield group
            group, size = [], 0
        group.append(item)
        size += own
    if group:
        yield group


def records_of(file: str, lines: Iterable[bytes], mark: str = "") -> Iterator[bytes]:
    """Yield records for the lines of a file, each small enough to be appended alone. ``mark``: see ``pack_bundle``.

    A line that no bundle can hold is left out."""
    todo = [*in_parts((line for line in lines if len(line) < orders.WIDEST), lambda line: len(line) + 1)][::-1]
    while todo:
        group = todo.pop()
        record = pack_bundle(Bundle(file, tuple(group)), mark)
        if len(record) <= orders.WIDEST:
            yield record
        elif len(group) > 1:
            half = len(group) // 2
            todo += [group[half:], group[:half]]


def compare_with_order(copy: KnownCopy) -> dict[str, int]:
    """Compare a copy with the order, under the machine's lock, after ``catch_up``; raise ``BadData`` if they differ.

    Return how many records of each log were passed over: they keep nobody from joining or leaving. Those that no file
    can hold count as another program's, of no log. A record that came since is no difference. A process that has just
    taken in everything compares the sums of what it read with those of what is here."""
    if copy.heard is not None and all(part.total() == copy.heard[kind] for kind, part in copy.parts.items()):
        return {}
    parts = {kind: Unordered(part.log) for kind, part in copy.parts.items()}
    for part in parts.values():
        part.look()
    copy.filed.look()
    strange, end = dict[str, int](), copy.state.applied
    for record in itertools.takewhile(lambda one: one.position <= end, all_records(copy.order)):
        key = digest(unsealed(record.line))
        if record.damaged or not orders.is_known(record):
            kind = DAMAGED if record.damaged else "" if orders.has_known_log(record) else record.log
            strange[kind] = strange.get(kind, 0) + 1
        elif not (record.is_decision or parts[record.kind].strike(key) or copy.filed.has(key)):
            raise BadData(f"record of the space is not here: {record.position}", "`agent-mailbox engine join`")
    return strange


def restore_lost(copy: KnownCopy) -> int:
    """Publish what the order lost, under the machine's lock, after a look; return how many records. Reads them all.

    The ends of the logs are noted first. Lines behind them came meanwhile, by another process, and were not lost."""
    ends = {kind: part.end for kind, part in copy.parts.items()}
    present, bundled = set[bytes](), set[bytes]()
    copy.judge.prepare_judging(copy.logs)
    for record in all_records(copy.order):
        if record.damaged or not orders.is_known(record):
            continue
        bundle = unpack_bundle(record.line) if record.log == ARCHIVE else None
        if bundle is None:
            present.add(digest(unsealed(record.line)))
        else:
            present.update(map(digest, (*_heeded_lines(copy, bundle, record.machine), *bundle.told)))
            bundled.update(map(digest, bundle.lines if bundle.file not in KINDS else ()))
    count, mark = 0, system.urandom(8).hex()  # what comes back twice differs: see ``passed``
    for retold in _retold_bundles(copy, bundled):
        copy.order.append_lines(ARCHIVE, [pack_bundle(retold, mark)])
        present.update(map(digest, (*retold.lines, *retold.told)))
        bundled.update(map(digest, retold.lines))
        count += 1
    for kind in KINDS:
        for one in records_of(kind, _lost_lines(copy, kind, present, ends[kind]), mark):
            copy.order.append_lines(ARCHIVE, [one])
            count += 1
    return count + hand_over(copy, bundled)  # a record alone does not tell that its line is archived


def _heeded_lines(copy: KnownCopy, bundle: Bundle, machine: str) -> Iterator[bytes]:
    """Yield the lines of a bundle, but for those about this machine's sessions that another ``machine`` brought back.

    A machine that joins later ignores them in that one's name. So this machine brings them back, too."""
    is_judged = machine != copy.order.machine and bundle.file in (ROSTER, CLAIMS)
    return (line for line in bundle.lines if not (is_judged and copy.judge.is_ours_alone(machine, bundle.file, line)))


def _retold_bundles(copy: KnownCopy, bundled: set[bytes]) -> Iterator[Bundle]:
    """Yield the decisions to retell the dead that are lost, some agents in each.

    A line of a retold life may be one that the agent had: by itself it would be left out, or the dead would rise."""
    lost: dict[str, list[bytes]] = {}
    since = dict[str, int]()
    for _, line in copy.archive.roster_log().lines():
        event = codec.roster_event(line)
        if not isinstance(event, BadLine) and digest(unsealed(line)) not in bundled:
            lost.setdefault(event.session_id, []).append(unsealed(line))
            since[event.session_id] = max(event.timestamp + 1, since.get(event.session_id, 0))
    told: dict[str, list[bytes]] = {}
    for _, line in copy.parts[ROSTER].ordered() if lost else ():
        event = codec.roster_event(line)
        if not isinstance(event, BadLine) and event.session_id in lost:
            told.setdefault(event.session_id, []).append(line)
    for group in in_parts(told, lambda who: sum(map(len, (*lost[who], *told[who])))):
        gone, life = ([line for one in group for line in lines[one]] for lines in (lost, told))
        yield Bundle(EVENTS, tuple(gone), tuple(life), max(since[one] for one in group))


def _lost_lines(copy: KnownCopy, kind: str, present: set[bytes], end: int) -> Iterator[bytes]:
    """Yield the lines before ``end`` that were in the order.

    A message whose id another one has, archived or not, never was. Neither was a read that a release behind it
    took back, or it must not be any more (``taken_back``)."""
    log, ordered = copy.parts[kind].log, [(at, line) for at, line in copy.parts[kind].ordered() if at < end]
    late = {at: line for at, line in ordered if digest(line) not in present and _is_record(kind, line)}
    over = taken_back(log, late) if kind == CLAIMS else ()
    lines = [line for at, line in late.items() if at not in over]
    if kind != MESSAGES or not lines:
        yield from lines
        return
    ids = {id_of(line) for _, line in ordered if digest(line) in present}
    ids.update(map(id_of, copy.archive.mentioning({id_of(line) for line in lines})))
    for line in lines:
        if id_of(line) not in ids:
            ids.add(id_of(line))
            yield line


def take_back(copy: KnownCopy, bundle: Bundle, machine: str) -> None:
    """Write the lines of such a bundle that this machine does not have, live or archived, or ignores so far.

    The ``machine`` whose bundle it is tells of its own sessions alone, as in every record."""
    part = copy.parts[bundle.file]
    for line in bundle.lines:
        part.strike(digest(line))
    copy.filed.look()
    live = {digest(unsealed(line)) for _, line in part.log.lines() if not is_ignored(line)}
    wanted = {key: line for line in bundle.lines if (key := digest(line)) not in live and not copy.filed.has(key)}
    lines = [line for line in wanted.values() if _is_record(bundle.file, line)]
    if lines:
        judged = [Judged(line, None) for line in lines]
        if machine != copy.order.machine:
            copy.judge.prepare_judging(copy.logs)
            judged = [copy.judge.judge_unproven(machine, bundle.file, one, restored=True) for one in judged]
        part.log.append([one.line + b"\n" for one in judged], EVERYONE, [one.proof for one in judged])
        part.look([(one.line, digest(line)) for one, line in zip(judged, lines, strict=True)])


def _is_record(kind: str, line: bytes) -> bool:
    return not isinstance(decode_line(kind, line), BadLine)


def follow_bundle(copy: KnownCopy, bundle: Bundle, machine: str) -> None:
    """Archive what a bundle of that machine has; idempotent.

    The caller holds the machine's lock. Raises ``Busy`` while another process maintains the mailbox."""
    kind = ROSTER if bundle.file == EVENTS else CLAIMS if bundle.file.endswith(READS_END) else MESSAGES
    order = rotation.SharedOrder(lambda log, at: copy.part_of(log).is_ordered(at), copy.filed)
    told = [*map(digest, bundle.told)] if kind == ROSTER else []
    with rotation.alone(copy.archive, copy.logs.wait):
        for key in (*map(digest, bundle.lines), *told):
            copy.parts[kind].strike(key)  # it waited here, and is in the order by the bundle
        if kind == ROSTER and (fresh := roster_compaction.retell_roster(copy.logs, copy.archive, bundle, order)):
            copy.go_on_in(fresh)
        part = copy.parts[kind]
        lines = part.ordered() if kind == MESSAGES else ((at, unsealed(line)) for at, line in part.log.lines())
        live = {digest(line) for _, line in lines}.difference(told)
        # Mail that was never live here comes first: its reads may be, and move as those of archived mail do. Reads that
        # are live move with their messages, whose bundle comes next.
        copy.filed.add(copy.archive.file(bundle.file), [line for line in bundle.lines if digest(line) not in live])
        if kind == MESSAGES:
            ids = {id_of(line) for line in bundle.lines if digest(line) in live}
            _move_messages(copy, ids, order, is_ours=machine == copy.order.machine)
        Manifest(copy.archive).seal()


def _move_messages(copy: KnownCopy, ids: set[str], order: rotation.SharedOrder, *, is_ours: bool) -> None:
    def plan_move(state: InboxState) -> retention.RetentionPlan:
        now = system.time_ns() // 1_000_000
        here = [who for who in copy.logs.last_seen() if state.roster.state(who) not in (None, DEAD)]
        move = retention.movable(ids & state.messages.keys(), state, now, None if is_ours else (*here, USER))
        return retention.RetentionPlan(move=frozenset(move), pending=0)

    ttls = config.load_config(copy.logs.directory).ttls
    for replaced in rotation.rotate(copy.logs, copy.archive, ttls, plan_move, order).replaced:
        copy.go_on_in(replaced)


def hand_over(copy: KnownCopy, present: set[bytes] | None = None) -> int:
    """Publish what this machine archived before it joined, under its lock, after ``catch_up``; return how many records.

    The order's own lines, in records or in bundles, are left out. So the next process goes on where one was killed.
    ``present``: the digests of its lines, if they are known."""
    names, count = copy.archive.files(), 0
    known = set[bytes]() if present is None else present
    for record in all_records(copy.order) if names and present is None else ():
        bundle = unpack_bundle(record.line) if record.log == ARCHIVE else None
        known.update(map(digest, (unsealed(record.line),) if bundle is None else bundle.lines))
    for name in names:
        lines = (unsealed(line) for _, line in copy.archive.file(name).lines())
        for one in records_of(name, (line for line in lines if digest(line) not in known)):
            copy.order.append_lines(ARCHIVE, [one])
            count += 1
    return count
