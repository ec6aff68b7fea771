"""The user's record of a mailbox, outside the project: where each log ended, and what of it is proven.

Belongs here: the record's files, and three questions.

- Does the log continue what our writers left? A log that is shorter, replaced or rolled back does not.
- What does a line's seal prove, at that place?
- Are all deciding lines still there? The record keeps their number and digest, which a removed line changes.

Only a mailbox that the user's own ``init`` made has a record; without one nothing is proven. Lines older than the
record are ``proofs.BEFORE``.

    STATE/key                        the user's key
    STATE/boxes/NAME/place           the mailbox's real path, its id
    STATE/boxes/NAME/agent-mailbox   of each log: see ``LogEnd``
    STATE/boxes/NAME/adopted         what the person confirmed of unsealed lines, by MAC
    STATE/boxes/NAME/broken          why the logs do not continue what we left, until the person has looked
"""

from __future__ import annotations

from ...core import proofs
from ...core.line_forms import CONTROL
from ...core.records import Record
from ...errors import Busy, StorageFailed
from ..files import paths, small_files, system
from ..locks.lock import acquire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Concatenate, ParamSpec, Protocol

    from ...core.records import Proof
    from .keys import Key

    class KeptLog(Protocol):
        """A log with its part of the record (``Log``)."""

        path: str
        kept: Kept | None

        def attentively(self, read: Callable[..., None], *, whole: bool) -> None: ...

    P = ParamSpec("P")
    Noticed = tuple[int, int, "LogEnd"]
    """The inode and size that a log had when it was found to continue an entry."""

BOXES = "boxes"
NEXT = ".next"
"""The suffix of the entry that announces a log's replacement."""
PATIENCE = 1.0
"""Seconds to wait for the lock of an entry, which its holder keeps for some 0.1 ms."""
_ROSTER = paths.ROSTER.removesuffix(".jsonl")


class LogEnd(Record):
    """The end of a log as our last writer left it, and what of the log is proven.

    ``inode``, ``size`` and ``checksum`` (of its tail) tell whether the log continues that. ``generation`` counts the
    log's replacements; the replacement itself wrote the lines before ``base``. ``count`` and ``digest`` cover all
    deciding lines, in their order. Lines before ``before`` are older than the record, or retell such lines.

        00000000000000131075 00000000000000001624 … 00000000000000000002 3f0c…   (seven numbers, then the digest)
    """

    inode: int = 0
    size: int = 0
    checksum: int = 0
    generation: int = 0
    base: int = 0
    count: int = 0
    digest: bytes = b"-"
    before: int = 0

    def text(self) -> bytes:
        """Return the entry as it is written: of fixed length, so that one write replaces another."""
        numbers = (self.inode, self.size, self.checksum, self.generation, self.base, self.count, self.before)
        return b" ".join([*(b"%020d" % number for number in numbers), self.digest.ljust(32)]) + b"\n"

    def continues(self, fd: int) -> bool:
        """Return whether the open log continues this entry."""
        if not self.size:
            return True
        there = system.fstat(fd)
        is_grown = there.st_ino == self.inode and there.st_size >= self.size
        return is_grown and small_files.tail_checksum(fd, self.size) == self.checksum

    def difference(self, fd: int | None) -> str:
        """Return in words how an open log, or a missing one, differs from this entry, which it does not continue."""
        if fd is None:
            return f"is gone; it had {self.size} bytes"
        there = system.fstat(fd)
        if there.st_size < self.size:
            return f"has {there.st_size} bytes, and had {self.size}: its last lines are missing"
        if there.st_ino != self.inode:
            return "is another file than the one that was written"
        return "was changed: it does not hold what was written"

    def ended(self, fd: int, size: int, generation: int) -> LogEnd:
        """Return the entry of the open log that ends there; unchanged if another writer noted more, or replaced it."""
        inode = system.fstat(fd).st_ino
        if self.generation != generation or self.inode not in (0, inode) or self.size >= size:
            return self
        return self.replace(inode=inode, size=size, checksum=small_files.tail_checksum(fd, size))

    def counted(self, fd: int, size: int, lines: Iterable[bytes]) -> LogEnd:
        """Return the entry of the open log that ends there, with these deciding lines counted."""
        from .keys import digest

        count, summed_up = self.count, self.digest
        for line in lines:
            count, summed_up = count + 1, digest(summed_up, line)
        return self.replace(count=count, digest=summed_up).ended(fd, size, self.generation)


_EMPTY = LogEnd()
"""The entry of a log of which none was made yet."""


class Custody:
    """The record of one mailbox; ``directory`` is the record's own."""

    weighs_mail = False
    """Is each message's seal weighed, for the programs that are told of it? Decisions hang on few of them."""

    def __init__(self, directory: str, mailbox_id: bytes, state: str) -> None:
        self.directory = directory
        self.breach = f"{directory}/broken"
        self.id = mailbox_id
        self.state = state
        self._key: Key | None = None
        self._asked = False

    @property
    def key(self) -> Key | None:
        """Return the user's key, read at the first use."""
        if not self._asked:
            from . import keys  # 0.3 ms, needed to write or weigh a seal

            self._key, self._asked = keys.load(self.state), True
        return self._key

    def path(self, *names: str) -> str:
        """Return a path in the record."""
        return "/".join((self.directory, *names))

    def find_break(self, logs: Iterable[KeptLog]) -> str | None:
        """Return the same by a look at the end of each log now, which is kept for the log's next reader."""
        for log in logs:
            try:
                if log.kept is not None and not log.kept.look_at(log.path):
                    log.attentively(lambda *_: None, whole=False)
            except StorageFailed:
                pass  # whoever reads it says so; the other logs are looked at all the same
        return self.broken()

    def broken(self) -> str | None:
        """Return why the logs do not continue what our writers left; None if no break was noticed."""
        try:
            system.stat(self.breach)
        except FileNotFoundError:
            return None
        except OSError:
            pass  # to read it says why
        text = small_files.read_file(self.breach)
        return None if text is None else text.decode("utf-8", "replace").strip() or "?"

    def note_broken(self, why: str) -> None:
        """Note that nothing here counts as proven, until the person has looked."""
        small_files.make_file(self.breach, why.encode("utf-8", "replace") + b"\n")

    def forget_broken(self) -> None:
        """Note that the person has looked."""
        small_files.remove_file(self.breach)

    def adopt(self, macs: Iterable[bytes]) -> None:
        """Keep the MACs of all unsealed lines that the person confirmed."""
        small_files.replace_file(self.path("adopted"), b"".join(mac + b"\n" for mac in sorted(macs)))

    def adopted(self) -> frozenset[bytes]:
        """Return the MACs of the unsealed lines that the person confirmed."""
        return frozenset((small_files.read_file(self.path("adopted")) or b"").split())

    def adoption(self, log: str, line: bytes) -> bytes:
        """Return the MAC by which an unsealed line is confirmed."""
        return b"" if self.key is None else self.key.mac(self.id, log.encode(), b"adopted", line)


class Kept:
    """The record's part about the log at a path."""

    def __init__(self, custody: Custody, path: str) -> None:
        self.custody = custody
        self.name = path.rpartition("/")[2].removesuffix(".jsonl")
        self.path = f"{custody.directory}/{self.name}"
        self._text, self.known = b"", _EMPTY
        """The entry as it was last read."""
        self.noticed: Noticed | None = None
        """The find of ``look_at``, for the next reader."""

    def entry(self, text: bytes | None = None) -> LogEnd:
        """Return the entry; an empty one if none was made yet. ``text``: what its file has, if the caller read it."""
        text = small_files.read_file(self.path) or b"" if text is None else text
        if text != self._text:
            self._text, self.known = text, read_entry(text) or _EMPTY
        return self.known

    def look_at(self, path: str) -> bool:
        """Return whether the log at the path continues an entry, by a look at its end, which is kept for later."""
        self.noticed = None
        try:
            fd = small_files.open_file(path, system.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            entry = self.checked(fd)
            if entry is not None:
                there = system.fstat(fd)
                self.noticed = there.st_ino, there.st_size, entry
            return entry is not None
        finally:
            system.close(fd)

    def entry_at(self, path: str) -> LogEnd:
        """Return the entry of the file that is at the log's path now.

        That is the announced one if whoever replaced the log was killed before it noted that, or is about to.
        """
        entry = self.entry()
        try:
            inode = system.stat(path).st_ino
        except OSError:
            return entry
        if inode == entry.inode:
            return entry
        return self._announced(inode) or self.entry()

    def checked(self, fd: int) -> LogEnd | None:
        """Return the entry that the open log continues; None if it continues none.

        That is the kept entry, or the announced one of a replacement: its writer may be about to note it, or was killed
        first. The loop ends when the entry is the same twice: a replacement may be noted between two looks, and its
        announcement be gone. Any log continues an entry of an empty one, so there the announcement counts first.
        """
        there, entry = system.fstat(fd), self.entry()
        if self.noticed is not None and self.noticed == (there.st_ino, there.st_size, entry):
            return entry
        inode = there.st_ino
        while True:
            if (entry.size or entry.inode == inode) and entry.continues(fd):
                return entry
            wanted = self._announced(inode)
            if wanted is not None and wanted.continues(fd):
                return wanted
            before, entry = entry, self.entry()
            if entry is before:  # of the same text
                return None if entry.size else entry

    def _announced(self, inode: int) -> LogEnd | None:
        """Return the entry that announces a replacement by that file; None if there is none."""
        announced = small_files.read_file(self.path + NEXT)
        wanted = read_entry(announced) if announced else None
        return wanted if wanted is not None and wanted.inode == inode else None

    def announce(self, entry: LogEnd) -> None:
        """Note how the log will be after its replacement: until then both entries count."""
        # Whoever noted the last replacement may have died before its sync. What was announced then is about to go.
        system.sync_directory(system.dirname(self.path))
        small_files.replace_file(self.path + NEXT, entry.text())

    def follow(self, entry: LogEnd) -> None:
        """Note that the log was replaced."""
        small_files.replace_file(self.path, entry.text())
        small_files.remove_if_possible(self.path + NEXT)

    def change(self, how: Callable[Concatenate[LogEnd, P], LogEnd], *given: P.args, **named: P.kwargs) -> bool:
        """Change the entry under a lock, so that concurrent changes follow each other; return whether it is noted.

        A process that was stopped may keep the lock: then the next writer notes what this one wrote."""
        flags = system.O_RDWR | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW
        try:
            fd = system.open(self.path, flags, 0o600)
            try:
                acquire(fd, self.path, PATIENCE)
                before = self.entry(system.pread(fd, 400, 0))
                after = how(before, *given, **named)
                text, done = b"" if after is before else after.text(), 0
                while done < len(text):  # half an entry would look like another log
                    done += system.pwrite(fd, text[done:], done)
            finally:
                system.close(fd)
        except (OSError, Busy, StorageFailed):
            return False  # the log goes on beyond its note: the next writer notes that
        return True

    def sealed(
        self, lines: Iterable[bytes], about: Iterable[Proof | None], position: int, generation: int
    ) -> tuple[bytes, bool]:
        """Return lines sealed for their places from a position on, and whether any of them decides something. Without a
        key they stay as they are.

        ``about``: what is proven of each line's writer; nothing seals a line of which nothing is.
        """
        data, decided, key = [], False, self.custody.key
        for line, proof in zip(lines, about, strict=False):
            if proof and key is not None:
                signed = proofs.begin_seal(line[:-1], key.id, generation, position, proof)
                line = signed + key.mac(self.custody.id, self.name.encode(), signed) + proofs.SEAL_END + b"\n"
            if proof:
                decided = decided or self.decides(line)
            data.append(line)
            position += len(line)
        return b"".join(data), decided

    def decides(self, line: bytes) -> bool:
        """Return whether a proven line of this log may decide something."""
        return self.name == _ROSTER or CONTROL in line


def find(directory: str, state: str) -> Custody | None:
    """Return the record of a mailbox by its real path, among the user's; None if there is none."""
    for record, mailbox_id in records(directory, state):
        if mailbox_id != b"":
            return None if mailbox_id is None else Custody(record, mailbox_id, state)
    return None


def places(environ: Mapping[str, str]) -> list[str]:
    """Return the mailboxes that have a record, by their real paths: the list of mailboxes may be lost."""
    boxes = system.join(paths.state_directory(environ), BOXES)
    said = (small_files.read_file(system.join(boxes, name, "place")) or b"" for name in small_files.names_in(boxes))
    return [
        place.decode("utf-8", "surrogateescape") for text in said if (place := text.rstrip(b"\n").rpartition(b"\n")[0])
    ]


def records(directory: str, state: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield each place that a mailbox's record may have, with the id that the record there gives the mailbox.

    It is empty if the record is another mailbox's, and None if no record is there. ``directory``: its real path."""
    place = system.encoded(directory)
    name = f"{state}/{BOXES}/{small_files.checksum(place):08x}"
    for record in (name, *(f"{name}-{n}" for n in range(1, 8))):
        text = small_files.read_file(f"{record}/place")
        said, _, mailbox_id = (text or b"").rstrip(b"\n").rpartition(b"\n")
        yield record, None if text is None else mailbox_id if said == place else b""


def read_entry(text: bytes) -> LogEnd | None:
    """Return the entry in a text; None if it holds none."""
    words = text.split()
    if len(words) != 8 or not b"".join(words[:7]).isdigit():
        return None
    inode, size, checksum, generation, base, count, before = map(int, words[:7])
    return LogEnd(inode, size, checksum, generation, base, count, words[7], before)


def left(path: str, entry: LogEnd | None = None) -> LogEnd:
    """Return an entry for a log as it is now: its whole content is below the base."""
    entry = entry or LogEnd()
    try:
        with small_files.OpenFile(small_files.open_file(path, system.O_RDONLY)) as fd:
            there = system.fstat(fd)
            size = there.st_size
            return entry.replace(inode=there.st_ino, size=size, checksum=small_files.tail_checksum(fd, size), base=size)
    except FileNotFoundError:
        return entry.replace(inode=0, size=0, checksum=0, base=0)
