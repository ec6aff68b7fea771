"""The attached files of a mailbox that several machines share: shipped, fetched, taken back.

Belongs here: which file is due for what. A file that is here as its message is first read is this machine's to ship.
One that is not is another's: this machine fetches it, and keeps it only if its digest is the one that the message
names. A file that is late delays no mail. The state is derived: without it, what was shipped is shipped once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import attachments, codec
from ..core.instant import DAY
from ..core.records import Record
from ..errors import MailboxError, NoMailbox
from ..store.attachments import attachment_files
from ..store.files import paths, small_files, system
from ..store.files.lines import boundary, lines_of
from .order.elsewhere import load_object
from .space import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.log.logs import Logs
    from .order.order import SpaceOrder

STATE = "files"
MOST_WANTED = 10_000
"""Files that are looked for at once; a foreign program may name any number that nobody has."""
AT_ONCE = 20
"""Files that are shipped or looked for in one turn: mail comes between."""
SOON, LATE = 2_000, 300_000
"""Milliseconds until the next look for a file, doubled each time: the least, and the most."""


class WantedFile(Record):
    """A file that is not here: its name and size, when to look for it next (ms), and how long to wait after that."""

    name: str
    size: int
    due: int = 0
    pause: int = SOON


class ExchangedFiles:
    """One machine's work for the files of its space; ``directory`` is its own record of it."""

    def __init__(self, logs: Logs, order: SpaceOrder, directory: str, told: Callable[[str], None]) -> None:
        self._logs = logs
        self._order = order
        self._path = system.join(directory, STATE)
        self._told = told
        self._said = ""
        self._inode = self._place = self._swept = 0
        self.wanted: dict[str, WantedFile] = {}
        self.due: dict[str, None] = {}
        self.ours: dict[str, int] = {}
        if found := load_object(self._path):
            self._inode, self._place, self._swept = found["inode"], found["place"], found["swept"]
            self.wanted = {stored: WantedFile(*one) for stored, one in found["wanted"].items()}
            self.due, self.ours = dict.fromkeys(found["due"]), found["ours"]

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


def awaited_files(logs: Logs) -> set[str]:
    """Return the stored names of the files that are on their way to this machine, as its replicator last knew."""
    if not logs.is_shared or logs.custody is None:
        return set()
    return {*load_object(logs.custody.path(PLACE, STATE)).get("wanted", ())}
