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


class Replicator:
    """The turns of a replicator. ``told`` hears of what changes, ``says_away`` after each attempt why the engine is
    out of reach; None: it answers."""

    def __init__(
        self,
        copy: Replica,
        files: ExchangedFiles,
        told: Callable[[str], None],
        says_away: Callable[[MailboxError | None], None],
    ) -> None:
        self._copy, self._files, self._told, self._says_away = copy, files, told, says_away
        self._order = spaces.order_in(copy)
        self._ends: tuple[object, ...] | None = None
        self._is_new, self._is_sure = True, False
        self._spoke, self._noted, self._asked = -elsewhere.EVERY, 0.0, 0
        self._restored = 0
        self._strange = set[str]()

    def run(self, ended: Callable[[], bool], pause: Callable[[float], object]) -> None:
        """Catch up whenever there is something new, in the order or here. ``pause`` waits for so many seconds, or until
        the end."""
        copy, away, back, delay = self._copy, "", "", TURN
        _note_unreached(copy.directory, None)
        while not ended():
            try:
                self._take_turn()
                if away:
                    self._told(back)
                    _note_unreached(copy.directory, None)
                away, delay = "", TURN
                self._says_away(None)
                self._asked = _now()
                self._is_new = self._order.wait_for_record(copy.state.applied, TURN)
            except (Refused, Busy, StorageFailed, NoMailbox) as error:  # each may be put right meanwhile
                if error.what != away:
                    self._told(error.what)
                    _note_unreached(copy.directory, error)
                away, self._is_sure, back = error.what, False, "goes on"  # as behind a full disk of this machine
                if isinstance(error, (Refused, Unavailable)):
                    back = "engine is back"
                    self._says_away(error)
                pause(delay)
                delay = min(delay * 2, LONGEST)

    def _take_turn(self) -> None:
        copy = self._copy
        paths.refuse_absence(copy.logs.directory)  # it would tell that no session acts here
        self._hear_words()
        if not self._is_sure:
            self._look_for_losses()
        if monotonic() - self._spoke >= elsewhere.EVERY:  # behind the look: before it the copy knows no record
            self._tell_machines()
        if copy.restored > self._restored:
            self._restored = copy.restored
            self._told(lost_warning(copy.restored))
        before = (copy.queue.end(), *copy.logs.ends())
        if self._ends != before or self._is_new:
            copy.look_locally()  # most often a command of this machine did it: its lock is left to the next one
            if copy.is_behind():
                self._ends = before if _keep_up(copy) else None  # what came meanwhile is seen next time
                self._tell_strange()
            else:
                self._ends = before
        elif monotonic() - self._noted >= NOTED:
            known_copy.note_fresh(copy.directory, self._asked)
            self._noted = monotonic()
        self._files.take_turn(_now())

    def _hear_words(self) -> None:
        copy = self._copy
        if words := self._order.latest_words():
            if (host := elsewhere.find_twin(words.pop(copy.order.machine, b""))) is not None:
                note_trouble(copy.directory, TWIN, _twin_warning(copy, host))
            elsewhere.keep_words(copy.directory, words, _now())

    def _look_for_losses(self) -> None:
        """Look whether the server lost what it had while it was away, names, too; bring that back."""
        copy, mine = self._copy, spaces.owner_of(self._copy.logs)
        copy.check_order_again()
        self._is_sure = _keep_up(copy, closer=True)
        taken = self._order.take_name(mine) != mine
        note_trouble(copy.directory, NAME, name_warning(copy.order.machine) if taken else "")

    def _tell_machines(self) -> None:
        copy, last = self._copy, self._order.last_position()
        word = elsewhere.own_word(copy.logs, copy.state.applied, last, _now(), gethostname())
        self._order.tell_machines(word)
        elsewhere.keep_joined(copy.directory, self._order.joined_machines())
        self._spoke = monotonic()

    def _tell_strange(self) -> None:
        """Tell once of each machine whose lines bear another key than the person confirmed, or a wrong seal."""
        judge = self._copy.judge
        for machine in sorted({*judge.strange, *judge.refused} - self._strange):
            why = "bear another key than you confirmed" if machine in judge.strange else "have a wrong or used seal"
            self._told(f"lines of {machine} {why}, and do not count: `agent-mailbox engine status`")
        self._strange.update(judge.strange, judge.refused)


def _now() -> int:
    return time_ns() // 1_000_000


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
        if spaces.space_of(copy.logs) is None:
            return False  # it left meanwhile: nothing is published, nor said, any more
        copy.order.hurried = False  # it waits for the engine as long as that takes
        copy.catch_up()
        if closer and copy.look_closer():
            copy.catch_up()
    return True


def lost_warning(count: int) -> str:
    verb = "brings" if count == 1 else "bring"
    return f"engine had lost records: {count_noun(count, 'bundle')} {verb} them back"


def name_warning(machine: str) -> str:
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
