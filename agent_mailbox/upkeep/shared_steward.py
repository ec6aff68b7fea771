"""The steward of a mailbox that several machines share: one decides, all follow.

Belongs here: making the decisions, and recording them in the order. ``space.copy.bundled_lines`` carries them out on
every machine, this one included.

**There is no lease.** A steward looks with its copy caught up and nothing waiting. Its decision counts only if nothing
that concerns it was appended to the order since. Whatever else came is taken in, and it need not look again. So
pending mail is judged over the whole space, and a team that works holds up no steward. If another steward was first, it
looks again, and finds the work done. One that is killed or cut off holds nothing that others must wait for, and no
clock decides.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..core import codec, instant
from ..core.keeping import retention
from ..core.records import BadLine, Message, Read, Record
from ..space.copy import bundled_lines
from ..space.order.order import CLAIMS, MESSAGES, MOST, PASSED, WIDEST, Bundle
from ..space.order.ordered_log import decide_again
from ..store.archive.archive import ROSTER
from ..store.archive.roster_compaction import COMPACT_ABOVE
from ..store.archive.rotation import Rotated
from ..store.log.unordered import unsealed
from . import notices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    from ..core.inbox import InboxState
    from ..core.records import RosterEvent
    from ..mailbox.mailbox import Mailbox
    from ..space.copy.replica import Replica
    from ..space.order.order import Ordered

PARTS = 10_000
"""The most decisions of one run."""
TOLD = 4000
"""Roster events that one decision retells."""


class _Step(Record):
    """One decision: the messages that all machines are told to move, what its plan said, and what was live before."""

    told: tuple[str, ...]
    pending: int
    live: frozenset[str]


def move_finished(mailbox: Mailbox, copy: Replica, limit: int, hopeless: set[str]) -> Rotated:
    """Have all machines archive what is finished, and retell the dead of a long roster.

    Raises ``Busy`` if others are always first, and ``Unavailable``."""
    with copy.machine_lock():
        copy.catch_up()
        copy.look_closer()
    told = set[str]()
    for _ in range(PARTS):
        step = decide_again(partial(_move_step, mailbox, copy, limit, hopeless, told))
        told.update(step.told)
        if not step.told:
            break
    since = min((m.timestamp for m in mailbox.state().messages.values()), default=mailbox.now())
    retold = set[str]()
    for _ in range(PARTS):
        if not (dead := decide_again(partial(_retell_dead, mailbox, copy, since, retold))):
            break
        retold.update(dead)
    return Rotated(archived=len(told - step.live), kept=len(step.live), pending=step.pending)


def _move_step(mailbox: Mailbox, copy: Replica, limit: int, hopeless: set[str], told: set[str]) -> _Step:
    """Decide once. A message that is ``told`` already and stays is left to the next run."""
    with copy.machine_lock():
        copy.catch_up()
        end = copy.end_of_order()
        state = mailbox.state()
        plan = retention.plan(state, mailbox.now(), 0 if told else limit)
        plan = notices.held_back(plan, mailbox, state, hopeless)
        moved, records = list[str](), list[bytes]()
        if wanted := plan.move - told:
            still = {*told & state.messages.keys()}
            moved, records = _bundle_and_publish(copy, state, retention.requests_first(wanted, state), still)
        if records:
            copy.file_away(records, end, partial(_may_concern, {*moved}))
    return _Step(tuple(moved), plan.pending, frozenset(state.messages))


def _may_concern(moved: Set[str], record: Ordered) -> bool:
    """Return whether a record may change what is finished: about these messages, a reply to them, or of the roster.

    A session that comes back has mail to read."""
    if record.log == PASSED:
        return False
    if record.log == MESSAGES:
        mail = codec.message(unsealed(record.line))
        return isinstance(mail, Message) and not moved.isdisjoint((mail.id, mail.thread))
    if record.kind == CLAIMS and not record.is_decision:
        read = codec.read(unsealed(record.line))
        return isinstance(read, Read) and read.message_id in moved
    return True


def _bundle_and_publish(
    copy: Replica, state: InboxState, wanted: Sequence[str], stays: set[str]
) -> tuple[list[str], list[bytes]]:
    """Return which of the messages are moved now, with all that is about them, and the records of that.

    One of which a read was recorded here since the copy was caught up is moved later. To the other machines it is still
    open, so they would keep it. ``stays``: those that stay here though they were told of, and get no other word."""
    mail, among = dict[str, bytes](), {*wanted}
    for _, line in copy.part_of(copy.logs.messages).ordered():
        message = codec.message(line)
        if isinstance(message, Message) and message.id in among:
            mail.setdefault(message.id, line)
    about: dict[str, list[bytes]] = {}
    reads, early = copy.part_of(copy.logs.reads), set[str]()
    for start, stored in reads.log.lines():
        read = codec.read(line := unsealed(stored))
        if not isinstance(read, Read):
            continue
        if not reads.is_ordered(start):
            early.add(read.message_id)
        elif read.message_id in mail or read.message_id not in state.messages:
            about.setdefault(read.message_id, []).append(line)
    strays = copy.archive.month_of(about.keys() - mail.keys())
    now, size = list[str](), 0
    for message_id in wanted:
        if message_id not in mail or message_id in early or state.messages[message_id].thread in stays:
            stays.add(message_id)  # no engine takes so long a line; nor may what settles it go
            continue
        size += len(mail[message_id]) + sum(map(len, about.get(message_id, ())))
        if now and size > bundled_lines.WHOLE:
            break
        now.append(message_id)
    while now:
        records = [*_bundled_records(state, now, mail, about, strays)]
        if sum(map(len, records)) <= WIDEST and len(records) <= MOST:
            return now, records
        if len(now) == 1:  # too much is about this one: the others go without it
            rest = [one for one in wanted if one not in now]
            return _bundle_and_publish(copy, state, rest, {*stays, *now})
        strays, now = {}, now[: len(now) // 2]
    return [], []


def _bundled_records(
    state: InboxState,
    now: Iterable[str],
    mail: dict[str, bytes],
    about: dict[str, list[bytes]],
    strays: dict[str, str],
) -> Iterator[bytes]:
    """Yield the bundles of reads, then of messages: a machine that has them moves them together."""
    months = {i: instant.month(state.messages[i].timestamp) for i in now}
    for month in sorted({*months.values(), *strays.values()}):
        reads = [line for i, at in (months | strays).items() if at == month for line in about.get(i, ())]
        yield from bundled_lines.records_of(month + bundled_lines.READS_END, reads)
    for month in dict.fromkeys(months.values()):  # a request's first: its answers go behind it
        yield from bundled_lines.records_of(month + ".jsonl", (mail[i] for i, at in months.items() if at == month))


def _retell_dead(mailbox: Mailbox, copy: Replica, since: int, retold: set[str]) -> set[str]:
    """Have all machines retell some of the dead, without those that this run had ``retold``; return whom."""
    with copy.machine_lock():
        copy.catch_up()
        end = copy.end_of_order()
        lines = [line for _, line in copy.part_of(copy.logs.roster).ordered()]
        if len(lines) <= COMPACT_ABOVE:
            return set()
        events: dict[str, list[RosterEvent]] = {}
        of: dict[bytes, str] = {}
        for line in lines:
            event = codec.roster_event(line)
            if not isinstance(event, BadLine) and event.session_id not in retold:
                events.setdefault(event.session_id, []).append(event)
                of[line] = event.session_id
        who, told = retention.retold_dead(events, mailbox.logs.read_roster(), since, TOLD)
        if not who:
            return who
        lives = tuple(codec.spell_event(event).rstrip(b"\n") for event in told)
        gone = tuple(line for line in lines if of.get(line) in who)
        record = bundled_lines.pack_bundle(Bundle(ROSTER, gone, lives, since))
        if len(record) > WIDEST:
            return set()
        copy.file_away([record], end, lambda one: one.kind != MESSAGES or one.is_decision)
    return who
