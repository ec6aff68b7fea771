"""Following the decision of a steward of a shared mailbox: what one machine archives, all archive.

Belongs here: what a machine does with one bundle (``space.order.bundles``) when it comes to it in the order. Each
machine moves its own lines, sealed as they are, through its own rotation. A bundle's lines that it never had, since it
joined later, come from the bundle.

A bundle from another machine may deny and never allow. An order or a request that is there by this machine's own
judgement stays. So does mail that a session of this machine, or the person, has yet to be shown. So do the lines of the
roster about an agent that may come back by its own proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import config
from ...core.keeping import retention
from ...core.records import USER
from ...core.roster import DEAD
from ...store.archive import roster_compaction, rotation
from ...store.archive.archive import ROSTER
from ...store.archive.manifest import Manifest
from ...store.files import system
from ...store.log.unordered import digest, unsealed
from ..order.bundles import READS_END, records_of, unpack_bundle
from ..order.order import ARCHIVE, CLAIMS, MESSAGES, all_records, id_of
from ..order.order import ROSTER as EVENTS

if TYPE_CHECKING:
    from ...core.inbox import InboxState
    from ...store.log.log import Log
    from ..order.bundles import Bundle
    from .known_copy import KnownCopy


def follow_bundle(copy: KnownCopy, bundle: Bundle, machine: str) -> None:
    """Archive what a bundle of that machine has; idempotent.

    The caller holds the machine's lock. Raises ``Busy`` while another process maintains the mailbox."""
    with rotation.alone(copy.archive, copy.logs.wait):
        if bundle.file == ROSTER:
            _follow_events(copy, bundle)
        elif bundle.file.endswith(READS_END):
            _follow_reads(copy, bundle)
        else:
            _follow_messages(copy, bundle, is_ours=machine == copy.order.machine)
        Manifest(copy.archive).seal()


def hand_over(copy: KnownCopy, present: set[bytes] | None = None) -> int:
    """Publish what this machine archived before it joined, under its lock, after ``catch_up``; return how many records.

    The order's own lines, in records or in bundles, are left out. So the next process goes on where one was killed.
    ``present``: the digests of its lines, if they are known."""
    names = copy.archive.files()
    if not names:
        return 0
    known, count = set[bytes]() if present is None else present, 0
    for record in all_records(copy.order) if present is None else ():
        bundle = unpack_bundle(record.line) if record.log == ARCHIVE else None
        known.update(map(digest, (unsealed(record.line),) if bundle is None else bundle.lines))
    for name in names:
        lines = (unsealed(line) for _, line in copy.archive.file(name).lines())
        for one in records_of(name, (line for line in lines if digest(line) not in known)):
            copy.order.append_lines(ARCHIVE, [one])
            count += 1
    return count


def _follow_messages(copy: KnownCopy, bundle: Bundle, *, is_ours: bool) -> None:
    for line in bundle.lines:
        copy.parts[MESSAGES].strike(digest(line))  # it waited here, and is in the order by the bundle
    keys = {digest(line): line for line in bundle.lines}
    live = {digest(line): line for _, line in copy.parts[MESSAGES].ordered()}
    ids = {id_of(keys[key]) for key in keys.keys() & live.keys()}
    # First what was never live here: its reads may be, and move as those of archived mail do.
    copy.filed.add(copy.archive.file(bundle.file), [line for key, line in keys.items() if key not in live])

    def plan_move(state: InboxState) -> retention.RetentionPlan:
        now = system.time_ns() // 1_000_000
        here = [who for who in copy.logs.last_seen() if state.roster.state(who) not in (None, DEAD)]
        move = retention.movable(ids & state.messages.keys(), state, now, None if is_ours else (*here, USER))
        return retention.RetentionPlan(move=frozenset(move), pending=0)

    rotated = rotation.rotate(
        copy.logs, copy.archive, config.load_config(copy.logs.directory).ttls, plan_move, _shared_order_of(copy)
    )
    for replaced in rotated.replaced:
        copy.go_on_in(replaced)


def _follow_reads(copy: KnownCopy, bundle: Bundle) -> None:
    """Archive reads that are not here. Those that are live here move with their messages, whose bundle comes next."""
    for line in bundle.lines:
        copy.parts[CLAIMS].strike(digest(line))
    live = {digest(unsealed(line)) for _, line in copy.logs.reads.lines()}
    copy.filed.add(copy.archive.file(bundle.file), [line for line in bundle.lines if digest(line) not in live])


def _follow_events(copy: KnownCopy, bundle: Bundle) -> None:
    for line in (*bundle.lines, *bundle.told):
        copy.parts[EVENTS].strike(digest(line))
    replaced = roster_compaction.retell_roster(copy.logs, copy.archive, bundle, _shared_order_of(copy))
    if replaced is not None:
        copy.go_on_in(replaced)
    live = {digest(unsealed(line)) for _, line in copy.logs.roster.lines()} - {*map(digest, bundle.told)}
    copy.filed.add(copy.archive.roster_log(), [line for line in bundle.lines if digest(line) not in live])


def _shared_order_of(copy: KnownCopy) -> rotation.SharedOrder:
    def has(log: Log, position: int) -> bool:
        return copy.part_of(log).is_ordered(position)

    return rotation.SharedOrder(has, copy.filed)
