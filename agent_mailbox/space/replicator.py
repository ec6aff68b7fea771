"""The replicator: one process a machine that keeps its copy up with the order, until it is told to end.

Belongs here: when to look, and what to do while the engine is away. It holds nothing that a kill could lose.
"""

from __future__ import annotations

from socket import gethostname
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from ..core.text import count_noun
from ..errors import Busy, MailboxError, NoMailbox, Refused, StorageFailed, Unavailable
from ..store.files import paths, system
from ..store.locks.holder import holder_at
from ..store.locks.lock import SOON, FileLock
from . import space as spaces
from .copy import known_copy
from .copy.space_troubles import AWAY, GONE, NAME, TWIN, note_trouble
from .order import elsewhere
from .order.order import HeldUp, NoSpace
from .trust import space_trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from .copy.replica import Replica
    from .exchanged_files import ExchangedFiles

TURN = 1.0
"""Seconds until what this machine's sessions read is shipped, if nothing else happens."""
NOTED = 15.0
"""Seconds between two notes that there is nothing new."""
LONGEST = 5.0
"""Most seconds between two attempts to reach an engine that is away."""


def take_lock(directory: str) -> FileLock:
    """Return the replicator's lock, taken; raise ``Refused`` if another one has it."""
    lock = FileLock(system.join(directory, spaces.SERVING), SOON)
    try:
        return lock.take()
    except Busy:
        what = f"a replicator of this mailbox runs already{holder_at(lock.path)}"
        raise Refused(what, "one is enough: `agent-mailbox engine status`") from None


def judge_again(copy: Replica, told: Callable[[str], None]) -> None:
    """Go on where a `join` was killed that judged lines again."""
    try:
        with copy.machine_lock():
            space_trust.judge_waiting(copy)
    except MailboxError as error:
        told(error.what)


def run_replicator(
    copy: Replica,
    files: ExchangedFiles,
    ended: Callable[[], bool],
    told: Callable[[str], None],
    pause: Callable[[float], object],
    says_away: Callable[[MailboxError | None], None],
) -> None:
    """Catch up whenever there is something new, in the order or here. ``told`` hears of what changes; ``pause`` waits
    for so many seconds, or until the end. ``says_away`` hears after each attempt why the engine is out of reach;
    None: it answers."""
    order, mine = spaces.order_in(copy), spaces.owner_of(copy.logs)
    _note_unreached(copy.directory, None)
    away, back, delay, ends, is_new, spoke = "", "", TURN, None, True, -elsewhere.EVERY
    known: frozenset[str] = frozenset()
    is_sure, restored, noted, asked = False, 0, 0.0, 0
    while not ended():
        try:
            paths.refuse_absence(copy.logs.directory)  # it would tell that no session acts here
            if words := order.latest_words():
                if (host := elsewhere.find_twin(words.pop(copy.order.machine, b""))) is not None:
                    note_trouble(copy.directory, TWIN, _twin_warning(copy, host) if host else "")
                elsewhere.keep_words(copy.directory, words, time_ns() // 1_000_000)
            if not is_sure:  # a server that was away may have lost what it had
                copy.check_order_again()
                is_sure = _keep_up(copy, closer=True)
                taken = order.take_name(mine) != mine  # an engine that lost its records lost the names, too
                note_trouble(copy.directory, NAME, name_warning(copy.order.machine) if taken else "")
            if monotonic() - spoke >= elsewhere.EVERY:  # behind the look: before it the copy knows no record
                order.tell_machines(
                    elsewhere.own_word(
                        copy.logs, copy.state.applied, order.last_position(), time_ns() // 1_000_000, gethostname()
                    )
                )
                elsewhere.keep_joined(copy.directory, order.joined_machines())
                spoke = monotonic()
            if copy.restored > restored:
                restored = copy.restored
                told(lost_warning(restored))
            before = (copy.queue.end(), *copy.logs.ends())
            if ends != before or is_new:
                copy.look_locally()  # most often a command of this machine did it: its lock is left to the next one
                if copy.is_behind():
                    ends = before if _keep_up(copy) else None  # what came meanwhile is seen next time
                    known = _tell_strange(copy, known, told)
                else:
                    ends = before
            elif monotonic() - noted >= NOTED:
                known_copy.note_fresh(copy.directory, asked)
                noted = monotonic()
            files.take_turn(time_ns() // 1_000_000)
            if away:
                told(back)
                _note_unreached(copy.directory, None)
            away, delay = "", TURN
            says_away(None)
            asked = time_ns() // 1_000_000
            is_new = order.wait_for_record(copy.state.applied, TURN)
        except (Refused, Busy, StorageFailed, NoMailbox) as error:  # each may be put right meanwhile
            if error.what != away:
                told(error.what)
                _note_unreached(copy.directory, error)
            away, is_sure, back = error.what, False, "goes on"  # as behind a full disk of this machine
            if isinstance(error, (Refused, Unavailable)):
                back = "engine is back"
                says_away(error)
            pause(delay)
            delay = min(delay * 2, LONGEST)


def _note_unreached(directory: str, error: MailboxError | None) -> None:
    """Note why nothing comes or goes, where waiting does not mend that; take back what was noted before."""
    said = f"{error.what}; {error.hint}" if error is not None else ""
    note_trouble(directory, GONE, said if isinstance(error, NoSpace) else "")
    note_trouble(directory, AWAY, said if isinstance(error, (Refused, HeldUp, StorageFailed)) else "")


def _keep_up(copy: Replica, *, closer: bool = False) -> bool:
    """Catch up; return whether it did. If another process keeps the machine's turn, it only takes in lines.

    ``closer``: look, too, whether the order lost something in its middle."""
    lock = copy.machine_lock(hurried=True)
    try:
        lock.take()
    except Busy:
        copy.take_in_beside()
        return False
    with lock:
        copy.order.hurried = False  # it waits for the engine as long as that takes
        copy.catch_up()
        if closer and copy.look_closer():
            copy.catch_up()
    return True


def lost_warning(count: int) -> str:
    """Return what the person is told of an engine from whose order something was missing."""
    verb = "brings" if count == 1 else "bring"
    return f"engine had lost records: {count_noun(count, 'bundle')} {verb} them back"


def name_warning(machine: str) -> str:
    """Return what the person is told of a machine whose name another mailbox took."""
    return (
        f"name {machine} is another mailbox's in this space: have one of the two leave, by `agent-mailbox engine"
        " leave`, and join with another --machine"
    )


def _twin_warning(copy: Replica, host: str) -> str:
    record = copy.logs.custody
    is_copy = record is not None and record.broken() is not None  # other files than those that were written
    this = "this one is the copy, by its files" if is_copy else f"it is on host {host}, and this is {gethostname()}"
    return (
        f"another computer, or a copy of this one, runs as {copy.order.machine}, too ({this}):"
        " have the copy leave, by `agent-mailbox engine leave`, and join with another --machine"
    )


def _tell_strange(copy: Replica, known: frozenset[str], told: Callable[[str], None]) -> frozenset[str]:
    """Tell of each machine, once, whose lines bear another key than the person confirmed, or a seal that is wrong."""
    for machine in sorted({*copy.judge.strange, *copy.judge.refused} - known):
        why = "bear another key than you confirmed" if machine in copy.judge.strange else "have a wrong or used seal"
        told(f"lines of {machine} {why}, and do not count: `agent-mailbox engine status`")
    return known | copy.judge.strange | copy.judge.refused.keys()
