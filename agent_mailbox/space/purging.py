"""Removing from the engine what every machine has archived: the bundles keep it for those that join later.

Belongs here: which records may go. A record may go if a bundle in the order has its line, and every machine has
followed that bundle. One that the person gave up does not count. The last record of each log stays: the next decision
expects it. A damaged record may go once all machines have passed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import Refused
from ..store.log.unordered import digest, unsealed
from . import space as spaces
from .copy.bundled_lines import unpack_bundle
from .order.order import ARCHIVE, PASSED, PURGED, FollowProgress, all_records, is_known, spell_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..store.log.logs import Logs
    from .order.order import Ordered, SpaceOrder, TotalOrder

_REMOVER = "a machine may remove nothing: give `--credential cluster/keeper`"
_REMOVER_OF_ROWS = (
    "a machine may remove nothing: give the owner's `--url postgresql://OWNER@HOST/DATABASE --credential FILE`"
)


class PurgePlan(Record):
    """The records that may be removed, at ``positions``, of so many ``records``.

    ``floor``: up to where all machines have followed; ``decided``: up to where they will. ``machines``: how far each
    one has. ``whole``: up to where all of a log may go, by log. ``others``: the positions that are not in that."""

    floor: int
    decided: int
    machines: dict[str, int]
    positions: tuple[int, ...]
    records: int
    whole: dict[str, int]
    others: tuple[int, ...]


def plan_purge(order: TotalOrder, machines: Iterable[str]) -> PurgePlan:
    """Return what may be removed, where these machines joined. Reads all records twice."""
    standing, bundled, last, count = FollowProgress(), dict[bytes, int](), dict[str, int](), 0
    for record in all_records(order):
        count += 1
        last[record.log] = record.position
        if record.log == PASSED:
            standing.take_records([record])
        elif record.log == ARCHIVE and not record.damaged and (bundle := unpack_bundle(record.line)) is not None:
            bundled.update((digest(line), record.position) for line in bundle.lines)
    followed = {machine: standing.applied.get(machine, 0) for machine in machines if machine not in standing.gone}
    floor, told = min(followed.values(), default=0), {*standing.latest.values()}

    def may_go(record: Ordered) -> bool:
        if record.log == PASSED:
            return record.position not in told
        if not is_known(record):
            return False
        if record.damaged:
            return record.position <= floor
        kept = record.log == ARCHIVE or record.position == last[record.log]
        return not kept and record.position < bundled.get(digest(unsealed(record.line)), 0) <= floor

    positions, others, whole, kept = list[int](), list[int](), dict[str, int](), set[str]()
    for record in all_records(order):
        if not may_go(record):
            kept.add(record.log)
            continue
        positions.append(record.position)
        if kept.isdisjoint((record.log, "")):  # a stranger's message has no log, and may be on any log's subject
            whole[record.log] = record.position
        else:
            others.append(record.position)
    decided = max(bundled.values(), default=0)
    return PurgePlan(floor, decided, followed, tuple(positions), count, whole, tuple(others))


def purge_records(order: TotalOrder, found: PurgePlan, remover: SpaceOrder) -> None:
    """Remove what the plan says, by a way to the space that may; idempotent, at whatever record it was killed."""
    if not found.positions:
        return
    order.append_lines(PASSED, [spell_word(PURGED, found.floor)])
    for log, position in found.whole.items():
        remover.remove_through(log, position)
    remover.remove_records(found.others)


def purge_archived(logs: Logs, url: str | None, credential: str | None, *, dry_run: bool = False) -> PurgePlan:
    """Remove what may go, by a way to the engine that may remove; return what went. ``dry_run``: change nothing."""
    space = spaces.require_space(logs)
    copy = spaces.open_replica(logs, space)
    order = spaces.order_in(copy)
    with copy.machine_lock():
        copy.catch_up()
    found = plan_purge(order, order.joined_machines())
    if not dry_run:
        other = space.replace(url=url or space.url, credential=credential or space.credential)
        try:
            purge_records(order, found, spaces.order_of(other))
        except Refused as error:
            raise Refused(error.what, _REMOVER_OF_ROWS if space.is_postgres else _REMOVER) from None
    return found
