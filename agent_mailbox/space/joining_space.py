"""Joining a space, leaving it, and what is in it.

Belongs here: the order of those steps; and which records may be removed from the engine. A record may go if a bundle in
the order has its line, for machines that join later, and every machine has followed that bundle. One that the person
gave up does not count. The last record of each log stays: the next decision expects it. A damaged record may go once
all machines have passed it.

**Names.** The engine keeps the mailbox that was first to take a machine's name. Another one may take it over once the
machine left, or a person gave it up, and nothing came of it since. A machine that lives answers as it hears that, so
its name stays its own. Each of these records is as good as its writer:

    first mailbox, took over    whoever has the credential of that name, which may say anything in that name
    gave up                     any machine of the space; alone it gives nobody the name
    answer                      the machine itself, as the engine proves it

The record of a take-over has the new key. An earlier one counts for nothing on any machine that comes to this record.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ..core import codec, instant
from ..core.records import USER, BadLine, Message, Record
from ..core.roster import Roster
from ..errors import NotFound, Refused, Unavailable
from ..store.archive.rotation import reseal
from ..store.log.unordered import digest, unsealed
from . import space as spaces
from .copy import bundled_lines, publishing, space_troubles
from .copy.space_troubles import GONE, RESTORED, note_displaced, note_trouble
from .order import order as orders
from .order.order import ARCHIVE, MESSAGES, PASSED, ROSTER, FollowProgress, NoServer
from .trust import machine_keys, space_judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..mailbox.mailbox import Mailbox
    from ..store.log.logs import Logs
    from .copy.replica import Replica
    from .order.order import Ordered, SpaceOrder, TotalOrder
    from .space import Space
    from .trust.machine_keys import RightsChange

STARTING, OPENING, PAUSE = 10.0, 1.0, 0.2
"""Seconds within which servers come up as a machine joins, one opens its port, and between two looks."""
AHEAD = 1000
"""Records that a look reads ahead: each is a question."""
LOOKING = 2.0
"""Seconds for which a look at the engine waits for it."""


class SpaceStanding(Record):
    """A machine's place in its space.

    ``records``: the order's last position; ``applied``: up to where its records are here. ``waiting``: local lines that
    are not in the order. ``queued``: sends that wait. ``unsent``: messages whose ids are other messages'. ``trouble``:
    why the engine does not answer; empty if it does. ``machines``: the others by their last word, or as the engine was
    last asked. ``behind``: records that one lacked as it said so. ``heard``: an instant. ``given_up``: it left, or a
    person gave it up, and it said nothing since. ``key``: with which its name was taken over; or None.
    ``fingerprint``: that of this machine's key; empty if it has none. ``trusted``: the machines of which the person
    said for whom they may speak. ``unheard``: whose lines wait for such a word. ``refused``: how many lines in a
    machine's name bore a seal that was wrong, used before, or late. ``troubles``: what this machine noticed of the
    space, and is not mended."""

    space: str
    machine: str
    url: str
    serving: bool
    records: int
    applied: int
    waiting: int
    queued: int
    unsent: int
    trouble: str
    machines: tuple[dict[str, object], ...]
    fingerprint: str
    trusted: tuple[dict[str, object], ...]
    unheard: tuple[dict[str, object], ...]
    refused: dict[str, int]
    troubles: tuple[str, ...]


def join_space(logs: Logs, space: Space, changes: Iterable[RightsChange] = ()) -> SpaceStanding:
    """Put the mailbox into a space, publish what is here, archived mail too, take in what is there; idempotent.

    ``changes`` are the person's word on other machines, by which what is here already is judged again, too.
    Raises ``Refused`` if another mailbox has the machine's name, or if this mailbox is in another space."""
    present = spaces.space_of(logs)
    if present is not None and (present.space, present.machine) != (space.space, space.machine):
        way = "this space under another name" if present.space == space.space else "another space"
        what = f"mailbox is in {way}: {present.space} as {present.machine}"
        raise Refused(what, "run `agent-mailbox engine leave` first")
    copy = spaces.open_replica(logs, space)
    order = spaces.order_in(copy)
    _make_space(order)
    _take_name(copy, order)
    with copy.machine_lock():
        if spaces.read_note(logs, spaces.LEFT) not in ("", space.machine):  # a copy of a machine has that one's key
            machine_keys.remove_key(copy.directory)
        machine_keys.make_key(copy.directory)
        machine_keys.change_rights(copy.directory, space.machine, changes)
        copy.catch_up()
        if bundled_lines.hand_over(copy):
            copy.catch_up()
        bundled_lines.compare_with_order(copy)
        spaces.keep_note(logs, spaces.KEPT, "")
        spaces.save_space(logs, space)
        if present is not None and present.url != space.url:
            note_trouble(copy.directory, RESTORED, "")  # other servers had nothing yet that they could lose
        copy.catch_up()
        judge_waiting(copy)
    return read_standing(logs)


def judge_waiting(copy: Replica) -> int:
    """Judge the lines that wait here by the person's present word, under the machine's lock; return how many count now.

    Nothing is done if the word did not change since, or if nothing here can verify. A log is replaced as the steward
    replaces it, so a kill leaves the old one or the new one."""
    judge = copy.judge
    if machine_keys.is_applied(copy.directory) or not machine_keys.is_available():
        return 0
    copy.catch_up()
    logs = copy.logs.roster, copy.logs.messages, copy.logs.reads
    numbers, true = judge.true_seals(*logs)
    copy.keep_state(numbers)  # before a line counts: so no copy of it ever does
    done = 0
    for log in logs if true else ():
        roster = Roster() if log is copy.logs.roster else copy.logs.read_roster()
        count, fresh = reseal(copy.logs, log, space_judge.judging_again(judge, true, log, roster))
        done += count
        if fresh is not None:
            copy.go_on_in(fresh)
            copy.keep_state({})
    machine_keys.save_rights(copy.directory, judge.rights, applied=True)
    copy.catch_up()
    return done


def _make_space(order: SpaceOrder) -> None:
    """Make the space unless it is there; a server that was just started may take a moment until it can."""
    begun = monotonic()
    while True:
        try:
            order.make_unless_there()
            return
        except Unavailable as error:
            is_over = monotonic() - begun > (OPENING if isinstance(error, NoServer) else STARTING)
            if is_over and error.hint == orders.START:
                error.hint = f"check the address; {orders.START}; then repeat this command"
            if is_over or error.code == "outdated":
                raise
            sleep(PAUSE)


def _take_name(copy: Replica, order: SpaceOrder) -> None:
    """Take the machine's name for the mailbox of a copy, perhaps from a machine that was given up; idempotent."""
    mine, machine = spaces.owner_of(copy.logs), order.machine
    first, standing = order.take_name(mine), FollowProgress().take_records(order.of_log(PASSED))
    key = standing.keys.get(machine)
    if first != mine if key is None else key != _own_fingerprint(copy):
        if machine not in standing.gone:
            way = f"if {machine} is lost, repeat this once another machine of the space ran"
            hint = f"choose another --machine; or, {way}: agent-mailbox engine forget {machine}"
            raise Refused(f"machine's name is another mailbox's: {machine}", hint)
        _take_over(copy, order, standing.position)
    if first != mine:
        spaces.keep_note(copy.logs, spaces.OWNER, first)


def look_ahead(copy: Replica, order: SpaceOrder) -> FollowProgress:
    """Return who was given up and whose name was taken over, also by what the copy has yet to follow; note our own."""
    ahead = itertools.islice(order.of_log(PASSED, copy.state.applied), AHEAD)
    standing = FollowProgress({*copy.state.gone}, {**copy.state.keys}).take_records(ahead)
    key = standing.keys.get(order.machine)
    if key is not None and not copy.judge.is_own_key(key):
        note_displaced(copy.directory, order.machine)
    return standing


def _take_over(copy: Replica, order: SpaceOrder, last: int) -> None:
    """Make a new key, and tell it; ``last``: the position of the last record by which that was decided."""
    if not machine_keys.is_available():
        what = "package for signatures is missing, by which a name is taken over: cryptography"
        raise Refused(what, "agent-mailbox's extra `engine` brings it", code="no_extra")
    with copy.machine_lock():
        machine_keys.remove_key(copy.directory)
        machine_keys.make_key(copy.directory)
        spaces.keep_note(copy.logs, spaces.LEFT, order.machine)
    order.append_lines(PASSED, [orders.spell_word(orders.TOOK_OVER, _own_fingerprint(copy))], expect=last)


def _own_fingerprint(copy: Replica) -> str:
    key = machine_keys.load_key(copy.directory)
    return "" if key is None else machine_keys.key_fingerprint(key.public)


def leave_space(logs: Logs) -> tuple[SpaceStanding, list[Message]]:
    """Publish what is here alone, compare, and make the mailbox one machine's; its files stay. Tell the others.

    An engine that is out of reach, or refuses this machine, hinders nothing. Mail that waits for it becomes mail of
    this mailbox, and is returned, too."""
    space = spaces.require_space(logs)
    copy = spaces.open_replica(logs, space)
    is_reached = False
    with copy.machine_lock():
        with suppress(Unavailable, Refused):
            copy.catch_up()
            bundled_lines.compare_with_order(copy)
            is_reached = True
        found = read_standing(logs)
        kept = publishing.keep_queued(copy)
        spaces.keep_note(logs, spaces.KEPT, "".join(f"{one}\n" for one in _unpublished_mail(copy)))
        spaces.forget_space(logs, space)
        if is_reached:
            with suppress(Unavailable, Refused):  # behind that: a replicator that still ran would answer that it lives
                spaces.order_in(copy).append_lines(PASSED, [orders.spell_word(orders.GAVE_UP, space.machine)])
    return found, [one for line in kept if isinstance(one := codec.message(line), Message)]


def _unpublished_mail(copy: Replica) -> Iterator[str]:
    """Yield the ids of the mail that is here alone, but for that of this machine's sessions among each other."""
    copy.look_locally()
    if not copy.state.applied:
        return  # it was never told what the order has
    for one in publishing.lines_to_publish(copy):
        message = codec.message(one.line) if one.log == MESSAGES else None
        if isinstance(message, Message) and not all(map(copy.logs.last_seen, zip(message.recipients))):
            yield message.id


def forget_machine(desk: Mailbox, machine: str) -> tuple[list[str], bool]:
    """Give up another machine; return its sessions, which the caller has to give up (``absence.give_up``), and whether
    it was given up already.

    Raises ``NotFound`` if no such machine joined, ``Refused`` for this one."""
    space = spaces.require_space(desk.logs)
    if machine == space.machine:
        raise Refused(f"machine is this one: {machine}", "run `agent-mailbox engine leave`")
    order = spaces.order_of(space)
    try:
        others = [one for one in order.joined_machines() if one != space.machine]
        if machine not in others:
            there = f"these others are: {', '.join(others)}" if others else "this machine is alone in it"
            raise NotFound(f"machine never joined the space {space.space}: {machine}", there)
        standing = FollowProgress().take_records(order.of_log(PASSED))
        return give_up(desk, order, machine), machine in standing.gone
    finally:
        order.close()


def give_up(desk: Mailbox, order: SpaceOrder, machine: str) -> list[str]:
    """Do what ``forget_machine`` does, for a machine that joined, by a way to the space."""
    desk.catch_up()
    registered = {
        event.session_id: None
        for record in order.of_log(ROSTER)
        if record.machine == machine
        and not isinstance(event := codec.roster_event(record.line), BadLine)
        and event.event == "register"
    }
    homes = space_judge.homes_of(desk.logs)
    theirs = [who for who in registered if not homes.is_another_s(who, machine)]
    order.append_lines(PASSED, [orders.spell_word(orders.GAVE_UP, machine)])
    machine_keys.forget_rights(spaces.record_of(desk.logs).path(spaces.PLACE), machine)
    return theirs


def read_standing(logs: Logs) -> SpaceStanding:
    """Return how far this machine is; asks the engine for ``LOOKING`` seconds at most, and changes nothing."""
    space = spaces.require_space(logs)
    copy = spaces.open_replica(logs, space, patience=LOOKING)
    copy.look_locally()
    records, joined, trouble = copy.state.applied, space_troubles.load_joined(copy.directory), ""
    known = FollowProgress(copy.state.gone, copy.state.keys)
    try:
        records, joined = copy.order.last_position(), spaces.order_in(copy).joined_machines()
        space_troubles.keep_joined(copy.directory, joined)
        known = look_ahead(copy, spaces.order_in(copy))
        note_trouble(copy.directory, GONE, "")  # this machine's replicator hears it within seconds
    except (Unavailable, Refused) as error:
        trouble = f"{error.what}; {error.hint}" if error.code == "no_space" else error.what
    heard = {one.machine: (one.behind, instant.text(one.heard)) for one in space_troubles.load_peers(copy.directory)}
    others: list[dict[str, object]] = [
        {"machine": one, "behind": behind, "heard": at, "given_up": one in known.gone, "key": known.keys.get(one)}
        for one, (behind, at) in {**{one: (None, None) for one in joined if one != space.machine}, **heard}.items()
    ]
    trusted: list[dict[str, object]] = [
        {"machine": machine, "fingerprint": one.fingerprint, "speaks": [*((USER,) if one.user else ()), *one.sessions]}
        for machine, one in machine_keys.load_rights(copy.directory).items()
    ]
    return SpaceStanding(
        space.space,
        space.machine,
        space.url,
        spaces.is_serving(logs),
        records,
        copy.state.applied,
        sum(1 for _ in publishing.lines_to_publish(copy)),
        len(copy.queue.read_entries()),
        copy.queue.count_unsent(),
        trouble,
        tuple(others),
        _own_fingerprint(copy),
        tuple(trusted),
        tuple(space_judge.unheard_lines(logs)),
        copy.judge.refused,
        (*spaces.standing_troubles(logs),),
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
    for record in orders.all_records(order):
        count += 1
        last[record.log] = record.position
        if record.log == PASSED:
            standing.take_records([record])
        elif (
            record.log == ARCHIVE
            and not record.damaged
            and (bundle := bundled_lines.unpack_bundle(record.line)) is not None
        ):
            bundled.update((digest(line), record.position) for line in bundle.lines)
    followed = {machine: standing.applied.get(machine, 0) for machine in machines if machine not in standing.gone}
    floor, told = min(followed.values(), default=0), {*standing.latest.values()}

    def may_go(record: Ordered) -> bool:
        if record.log == PASSED:
            return record.position not in told
        if not orders.is_known(record):
            return False
        if record.damaged:
            return record.position <= floor
        kept = record.log == ARCHIVE or record.position == last[record.log]
        return not kept and record.position < bundled.get(digest(unsealed(record.line)), 0) <= floor

    positions, others, whole, kept = list[int](), list[int](), dict[str, int](), set[str]()
    for record in orders.all_records(order):
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
    order.append_lines(PASSED, [orders.spell_word(orders.PURGED, found.floor)])
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
            owner = "the owner's `--url postgresql://OWNER@HOST/DATABASE --credential FILE`"
            who = owner if space.is_postgres else "`--credential cluster/keeper`"
            raise Refused(error.what, f"a machine may remove nothing: give {who}") from None
    return found
