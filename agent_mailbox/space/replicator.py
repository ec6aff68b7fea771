"""The replicator: one process a machine that keeps its copy up with the order, until it is told to end.

Belongs here: when to look, and what to do while the engine is away. It holds nothing that a kill could lose.

**Attached files.** Each turn ships, fetches and takes back what is due. A file that is here as its message is first
read is this machine's to ship. One that is not is another's: this machine fetches it, and keeps it only if its digest
is the one that the message names. A file that is late delays no mail. The state is derived: without it, what was
shipped is shipped once more.
"""

from __future__ import annotations

from socket import gethostname
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from ..core import attachments, codec
from ..core.instant import DAY
from ..core.records import Record
from ..core.text import count_noun
from ..errors import Busy, MailboxError, NoMailbox, Refused, StorageFailed, Unavailable
from ..store.attachments import attachment_files
from ..store.files import paths, small_files, system
from ..store.files.lines import boundary, lines_of
from ..store.locks.holder import holder_at
from ..store.locks.lock import SOON, FileLock
from . import joining_space
from . import space as spaces
from .copy import known_copy, space_troubles
from .copy.space_troubles import AWAY, GONE, NAME, TWIN, note_trouble
from .order.order import HeldUp, NoSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.log.logs import Logs
    from .copy.replica import Replica
    from .order.order import SpaceOrder

TURN = 1.0
"""Seconds until what this machine's sessions read is shipped, if nothing else happens."""
NOTED = 15.0
"""Seconds between two notes that there is nothing new."""
LONGEST = 5.0
"""Most seconds between two attempts to reach an engine that is away."""
STATE = "files"
MOST_WANTED = 10_000
"""Files that are looked for at once; a foreign program may name any number that nobody has."""
AT_ONCE = 20
"""Files that are shipped or looked for in one turn: mail comes between."""
FIRST, LATE = 2_000, 300_000
"""Milliseconds until the next look for a file, doubled each time: the least, and the most."""


def take_lock(directory: str) -> FileLock:
    lock = FileLock(system.join(directory, spaces.SERVING), SOON)
    try:
        return lock.take()
    except Busy:
        what = f"a replicator of this mailbox runs already{holder_at(lock.path)}"
        raise Refused(what, "one is enough: `agent-mailbox engine status`") from None


class WantedFile(Record):
    """A file that is not here: its name and size, when to look for it next (ms), and how long to wait after that."""

    name: str
    size: int
    due: int = 0
    pause: int = FIRST


class ExchangedFiles:
    """One machine's work for the files of its space; ``directory`` is its own record of it."""

    def __init__(self, logs: Logs, order: SpaceOrder, directory: str, told: Callable[[str], None]) -> None:
        self._logs = logs
        self._order = order
        self._path = system.join(directory, STATE)
        self._told = told
        self._said = ""
        found = space_troubles.load_object(self._path)
        self._inode, self._place, self._swept = (int(found.get(name, 0)) for name in ("inode", "place", "swept"))
        self.wanted = {stored: WantedFile(*one) for stored, one in found.get("wanted", {}).items()}
        self.due: dict[str, None] = dict.fromkeys(found.get("due", ()))
        self.ours: dict[str, int] = found.get("ours", {})

    def take_turn(self, now: int) -> None:
        """Do what is due, a part of it at a time. Trouble with files is told, once, and is no trouble for mail. Raise
        ``NoMailbox``."""
        before = self._state_to_save()
        try:
            self._read_new_messages(now)
            self._ship_due(now)
            self._fetch_wanted(now)
            self._sweep_daily(now)
            self._said = ""
        except NoMailbox:
            raise
        except MailboxError as error:
            if error.what != self._said:
                self._told(f"attached files: {error.what}")
            self._said = error.what
        if self._state_to_save() != before:
            small_files.save_derived(self._path, codec.dumps(self._state_to_save()).encode())

    def _read_new_messages(self, now: int) -> None:
        fd = self._logs.messages.open()
        if fd is None:
            return
        with small_files.OpenFile(fd):
            there = system.fstat(fd)
            if there.st_ino != self._inode or there.st_size < self._place:
                self._inode, self._place = there.st_ino, 0
            if there.st_size == self._place:
                return
            end = boundary(fd, there.st_size)
            for message in attachment_files.find_messages(line for _, line in lines_of(fd, self._place, end)):
                for file in attachments.files(message)[: attachments.MOST]:
                    self._note_file(file, now)
            self._place = end

    def _note_file(self, file: attachments.AttachmentFile, now: int) -> None:
        if file.stored in self.wanted:
            return
        if attachment_files.is_there(self._logs.directory, file):
            if file.sha256 not in self.ours:
                self.due[file.stored] = None
        elif len(self.wanted) < MOST_WANTED and file.size <= attachment_files.MOST_BYTES:
            self.wanted[file.stored] = WantedFile(file.name, file.size, now)

    def _ship_due(self, now: int) -> None:
        for stored in [*self.due][:AT_ONCE]:
            digest = stored[:64]
            data = attachment_files.content(self._logs.directory, stored)
            if data is None:
                paths.check(self._logs.directory)  # a file of a mailbox that is away is not gone
            elif digest not in self.ours:
                self._order.ship_file(digest, data)
                self.ours[digest] = now
            del self.due[stored]

    def _fetch_wanted(self, now: int) -> None:
        asked = [stored for stored, one in self.wanted.items() if one.due <= now][:AT_ONCE]
        for stored in asked:
            one = self.wanted[stored]
            self.wanted[stored] = one.replace(due=now + one.pause, pause=min(one.pause * 2, LATE))
            for data in self._order.fetch_copies(stored[:64]):
                if len(data) == one.size and attachment_files.digest(data) == stored[:64]:
                    attachment_files.put(self._logs.directory, one.name, [data])
                    del self.wanted[stored]
                    break

    def _sweep_daily(self, now: int) -> None:
        """Once a day, take back and stop to look for what no live message names any more."""
        if 0 <= now - self._swept < DAY:
            return
        named = {
            file.stored
            for message in attachment_files.find_messages(line for _, line in self._logs.messages.lines())
            for file in attachments.files(message)
        }
        paths.check(self._logs.directory)  # a mailbox that is away names no file
        self._swept, digests = now, {stored[:64] for stored in named}
        self.wanted = {stored: one for stored, one in self.wanted.items() if stored in named}
        for digest in [one for one, since in self.ours.items() if one not in digests and since < now - DAY]:
            self._order.take_back(digest)
            del self.ours[digest]

    def _state_to_save(self) -> dict[str, object]:
        wanted = {stored: [one.name, one.size] for stored, one in self.wanted.items()}
        marks = {"inode": self._inode, "place": self._place, "swept": self._swept}
        return {**marks, "wanted": wanted, "due": [*self.due], "ours": dict(self.ours)}


class Replicator:
    """The turns of a replicator. ``told`` hears of what changes, ``says_away`` after each attempt why the engine is
    out of reach; None: it answers."""

    def __init__(
        self, copy: Replica, told: Callable[[str], None], says_away: Callable[[MailboxError | None], None]
    ) -> None:
        self._copy, self._told, self._says_away = copy, told, says_away
        self._order = spaces.order_in(copy)
        self._files = ExchangedFiles(copy.logs, self._order, copy.directory, told)
        self._ends: tuple[object, ...] | None = None
        self._is_new, self._is_sure = True, False
        self._spoke, self._noted, self._asked = -space_troubles.EVERY, 0.0, 0
        self._strange = set[str]()

    def run(self, ended: Callable[[], bool], pause: Callable[[float], object]) -> None:
        """Catch up whenever there is something new, in the order or here. ``pause`` waits for so many seconds, or until
        the end."""
        copy, away, back, delay = self._copy, "", "", TURN
        _note_unreached(copy.directory, None)
        try:
            with copy.machine_lock():
                joining_space.judge_waiting(copy)  # a `join` that judged lines again may have been killed
        except MailboxError as error:
            self._told(error.what)
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
        if monotonic() - self._spoke >= space_troubles.EVERY:  # behind the look: before it the copy knows no record
            self._tell_machines()
        if copy.restored:
            self._told(lost_warning(copy.restored))
            copy.restored = 0
        before = (copy.queue.end(), *copy.logs.ends())
        if self._ends != before or self._is_new:
            copy.look_locally()  # most often a command of this machine did it: its lock is left to the next one
            is_kept_up = not copy.is_behind() or _keep_up(copy)
            self._ends = before if is_kept_up else None  # what came meanwhile is seen next time
            self._tell_strange()
        elif monotonic() - self._noted >= NOTED:
            known_copy.note_fresh(copy.directory, self._asked)
            self._noted = monotonic()
        self._files.take_turn(_now())

    def _hear_words(self) -> None:
        copy = self._copy
        if words := self._order.latest_words():
            if (host := space_troubles.find_twin(words.pop(copy.order.machine, b""))) is not None:
                note_trouble(copy.directory, TWIN, _twin_warning(copy, host))
            space_troubles.keep_words(copy.directory, words, _now())

    def _look_for_losses(self) -> None:
        """Look whether the server lost what it had while it was away, names, too; bring that back."""
        copy, mine = self._copy, spaces.owner_of(self._copy.logs)
        copy.check_order_again()
        self._is_sure = _keep_up(copy, closer=True)
        taken = self._order.take_name(mine) != mine
        note_trouble(copy.directory, NAME, name_warning(copy.order.machine) if taken else "")

    def _tell_machines(self) -> None:
        copy, last = self._copy, self._order.last_position()
        word = space_troubles.own_word(copy.logs, copy.state.applied, last, _now(), gethostname())
        self._order.tell_machines(word)
        space_troubles.keep_joined(copy.directory, self._order.joined_machines())
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
        lock.hurried = False  # it waits for the engine as long as that takes
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


def awaited_files(logs: Logs) -> set[str]:
    """Return the stored names of the files that are on their way to this machine, as its replicator last knew."""
    if not logs.is_shared or logs.custody is None:
        return set()
    return {*space_troubles.load_object(logs.custody.path(spaces.PLACE, STATE)).get("wanted", ())}
