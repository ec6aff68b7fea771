"""An append-only log of JSON lines: durable appends that a torn tail cannot swallow, reads from a position.

Belongs here: bytes, positions, the lock, the sync. Must not know what a line says (``core.codec``). Nothing above
knows that a position is a byte offset.
"""

from __future__ import annotations

from ...core import proofs as proven
from ...errors import AGAIN, StorageFailed
from ..files import system
from ..files.lines import chunks, lines_of
from ..files.paths import READS, check, is_there
from ..files.small_files import OpenFile, Storing, open_file, storage_failed
from ..locks.lock import WAIT, FileLock
from .custody import LogEnd
from .proof_view import ProofView
from .stamps import StampFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Concatenate, ParamSpec, TypeVar

    from ...core.records import Proof
    from .custody import Kept, Noticed

    P = ParamSpec("P")
    T = TypeVar("T")

DOUBTS = 3
"""Times that an unreplaced log must look wrong before it counts as broken."""


class Log:
    """One log file. Reading needs no file; the first append makes it."""

    def __init__(
        self, path: str, wait: float = WAIT, stamp_files: StampFiles | None = None, kept: Kept | None = None
    ) -> None:
        self.path = path
        self.wait = wait
        self.stamp_files = stamp_files
        self.kept = kept

    def view(self) -> ProofView | None:
        """Return the record's view of the lines; None if the mailbox has no record."""
        return None if self.kept is None else ProofView(self.kept, path=self.path)

    def attentively(
        self, read: Callable[[int, ProofView | None], T], *, whole: bool = True, noticed: Noticed | None = None
    ) -> T | None:
        """Call ``read`` with the open log and the record's view of it; return its answer, None if there is no log.

        ``read`` is repeated if the log was replaced meanwhile. If the log does not continue what our writers left, that
        is noted, and ``read`` is called again with nothing proven. ``whole``: it reads all deciding lines.
        ``noticed``: where ``Kept.look_at`` looked at the log's end, nobody looks once more.
        """
        doubts, why = 0, ""
        while doubts < DOUBTS:
            fd = self.open()
            if fd is None:
                if self.kept is None or not self.kept.entry().size:
                    return None
                if is_there(self.path):
                    continue  # its first writer made it since our look
                if not system.is_directory(home := system.dirname(self.path)):
                    check(home)  # who moved a whole mailbox cut no log of it
                    continue  # it is back since our look
                self.kept.custody.note_broken(f"{self.path} {self.kept.entry().difference(None)}")
                return None
            try:
                view = self.view()
                if view is None or not view.trusted:
                    return read(fd, view)
                there, seen, noticed = system.fstat(fd), noticed, None
                is_seen = seen is not None and seen[:2] == (there.st_ino, there.st_size)
                if view.follows(fd, seen[2] if seen is not None and is_seen else None):
                    found = read(fd, view)
                    if not whole or view.is_whole():
                        return found
                    why = "lacks a line that decided something, or has it changed"
                else:
                    why = view.kept.entry().difference(fd)
                doubts += self.is_at_path(fd)
            finally:
                system.close(fd)
        if self.kept is not None:
            self.kept.custody.note_broken(f"{self.path} {why}")
        return self.attentively(read, whole=whole)

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line without newline) from ``start`` on; see ``lines_of``."""
        fd = self.open()
        if fd is None:
            return
        with OpenFile(fd):
            yield from lines_of(fd, start)

    def open(self) -> int | None:
        """Return a descriptor to read from, or None if the log does not exist."""
        try:
            return open_file(self.path, system.O_RDONLY)
        except FileNotFoundError:
            return None

    def is_at_path(self, fd: int | None) -> bool:
        """Return whether the open file is still the one at the path: the steward may have swapped it."""
        try:
            there = system.stat(self.path)
        except OSError:
            return fd is None
        return fd is not None and system.is_same(there, system.fstat(fd))

    def held(self, patience: float = 0) -> HeldLog:
        """Return the log under its lock, for a ``with`` block that looks and then appends. ``patience``: the seconds to
        wait for the lock at least."""
        return HeldLog(self, patience)

    def decide(self, act: Callable[Concatenate[HeldLog, P], T], *given: P.args, **named: P.kwargs) -> T:
        """Return what ``act`` does with the log under its lock, and with what is ``given``: it looks, then appends."""
        with HeldLog(self) as log:
            return act(log, *given, **named)

    def decide_or_wait(
        self, _later: object, act: Callable[Concatenate[HeldLog, P], T], *given: P.args, **named: P.kwargs
    ) -> T | None:
        """Return the same: nothing that a log of one machine takes need wait."""
        with HeldLog(self) as log:
            return act(log, *given, **named)

    def append(
        self,
        lines: Iterable[bytes],
        disturbs: Iterable[str] | None = (),
        proofs: Sequence[Proof | None] = (),
        patience: float = 0,
    ) -> int:
        """Append whole lines (with their newlines) durably; raise ``StorageFailed`` if that is uncertain.

        See ``HeldLog.append``, and ``held`` for the ``patience``.
        """
        with HeldLog(self, patience) as log:
            return log.append(lines, disturbs, proofs)


class HeldLog(FileLock):
    """A locked log. Appends are synced when the block ends, *after* unlocking: the kernel then groups concurrent syncs.

    A failed sync is a failed command, never retried into an acknowledgement.
    """

    def __init__(self, log: Log, patience: float = 0) -> None:
        super().__init__(log.path, max(log.wait, patience))
        self.log = log
        self.stamp_files = log.stamp_files
        self.kept = log.kept
        self.view = log.view
        self._entry: LogEnd | None = None
        self._end = 0
        self._uncounted: int | None = None
        """The position of the first deciding line that no note counts; None: all are counted."""
        self._dirty = False
        self._begins = False
        self.is_undated = False
        """Whether a stamp stayed that should go: the log's end is not noted, so the guard believes none."""

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Return the log's lines, from ``start`` on."""
        return lines_of(self.fd, start)

    def begin_again(self) -> None:
        """Have every session read the log from its beginning, once it has the lines that the block appends."""
        self._begins = True

    def append(
        self,
        lines: Iterable[bytes],
        disturbs: Iterable[str] | None = (),
        proofs: Sequence[Proof | None] = (),
        *,
        durably: bool = True,
    ) -> int:
        """Write the lines in one go behind the log's end, and return how many bytes that was.

        A failed write takes back only its own bytes. ``disturbs`` are the sessions whose quiet stamps must go first, or
        ``EVERYONE`` (see ``stamps``). ``proofs`` say what is proven of each line's writer, whose line is then sealed
        for its place (``core.proofs``). ``durably``: sync the lines when the block ends.
        """
        todo = list(lines)
        about = [*proofs, *[None] * (len(todo) - len(proofs))]
        written = 0
        try:
            if todo and self.kept is not None:
                self._look_at_what_was_left(self.kept)
            while todo:
                there = system.fstat(self.fd)
                inode, size = there.st_ino, there.st_size
                left = self._left_by_us(inode, size)
                if size == 0 or (left is None and (durably or self.stamp_files is not None)):
                    # The process that made this file, or renamed it here, may have died before it synced the name.
                    system.sync_directory(system.dirname(self.path))
                # The same byte ends a whole record that lost its newline, and isolates a torn one.
                first = b"\n" if size and system.pread(self.fd, 1, size - 1) != b"\n" else b""
                data, decided = b"".join(todo), False
                if self.kept is not None and self._entry is not None and any(about):
                    data, decided = self.kept.sealed(todo, about, size + len(first), self._entry.generation)
                data = first + data
                if self.stamp_files is not None:
                    here, end = (self.path, inode, size), size + len(data)
                    self.is_undated |= not self.stamp_files.announce(*here, end, left, disturbs, begins=self._begins)
                self._write(data, size)
                self._dirty = self._dirty or durably
                written, self._end = written + len(data), size + len(data)
                todo = todo[: self._swallowed(data, size, about[: len(todo)], decided)]
                if decided and not todo and self.kept is not None:
                    self._count(self.kept, size)
        except OSError as error:
            raise storage_failed("append to", self.path, error) from None
        return written

    def _swallowed(self, data: bytes, size: int, about: Sequence[Proof | None], decided: bool) -> int:
        r"""Return how many of the lines must be written again: 0 unless a program wrote without the lock. ``about`` has
        what is proven of each line's writer, ``decided`` whether one decides.

        Its line may come between our look at the ``size`` and our write, and may be torn.

            expected   {"id":"a"}\n | {"id":"ours"}\n
            found      {"id":"a"}\n | {"id":"th{"id":"ours"}\n      ours is glued to a torn line: write it again
        """
        there = system.fstat(self.fd)
        more = there.st_size - size
        if more == len(data):
            if self.stamp_files is not None and not self.is_undated:
                self.stamp_files.date(self.path, there.st_mtime_ns)
            return 0
        found = system.pread(self.fd, more, size)
        place = found.find(data)
        is_read = self.path.endswith(READS)  # one of what the person asked must count at its place
        hangs_on_place = decided or any(proof and (is_read or proven.is_person(proof)) for proof in about)
        if place < 0 or (place and hangs_on_place):
            return len(about)  # cut in two, or not at the place in their seals
        if place == 0 or data.startswith(b"\n") or found[place - 1 : place] == b"\n":
            return 0
        return 1

    # -- what is proven, and where the log ended (``custody``) --------------------------------------------------------

    def _look_at_what_was_left(self, kept: Kept) -> None:
        """Note, before an append, a log that does not continue what our writers left; count the lines of a killed
        writer."""
        entry = kept.checked(self.fd)
        if entry is None:
            kept.custody.note_broken(f"{self.path} {kept.entry().difference(self.fd)}")
        elif entry.generation != kept.known.generation:
            # The writer that replaced the log was killed before it noted that, perhaps before it synced the new name.
            system.sync_directory(system.dirname(self.path))
            kept.follow(entry)
        if entry is not None and entry.size < system.fstat(self.fd).st_size:
            self._count(kept, entry.size, left=True)
        self._entry = entry or kept.known

    def _count(self, kept: Kept, start: int, *, left: bool = False) -> None:
        """Count the deciding lines from a position on. They are synced first: a counted line that is lost would look
        removed. ``left``: another writer left the lines, whose sync may have failed (see ``sync``); so would any of
        them, once the log's end is noted behind."""
        there = system.fstat(self.fd)
        size = there.st_size
        start = start if self._uncounted is None else min(start, self._uncounted)
        view = ProofView(kept)
        lines = [(at, line) for at, line in lines_of(self.fd, start, size) if kept.decides(line)]
        found = [line for at, line in lines if proven.proves(view.proof(line, at))]
        if left and (found or self._left_by_us(there.st_ino, size) is not None):
            self._write_again([(start, None)])
        if not found:
            return
        system.fdatasync(self.fd)
        self._uncounted = None if kept.change(LogEnd.counted, self.fd, size, found) else start

    def _left_by_us(self, inode: int, size: int) -> int | None:
        """Return the log's epoch if it is as our last writer left it; None if that is uncertain."""
        left = self.stamp_files.ended(self.path) if self.stamp_files is not None else None
        return left[2] if left is not None and left[:2] == (inode, size) else None

    def announce_replacement(self, size: int) -> None:
        """Note that the log ends at ``size``, before another takes its place. Stamps go as before an append."""
        inode = system.fstat(self.fd).st_ino
        if self.stamp_files is not None:
            left = self._left_by_us(inode, size)
            self.is_undated |= not self.stamp_files.announce(
                self.path, inode, size, size, left, (), begins=self._begins
            )

    def sync(self, found: Iterable[tuple[int, bytes]] | None = None) -> None:
        """Sync the log when the block ends, appended to or not: its last writer may have died before its sync.

        ``found`` are lines with their positions that are acknowledged again (None: all, unless some were appended).
        They are first written once more, as they are. A failed sync may have dropped their pages, which no later sync
        writes (fsync(2), EIO).
        """
        if found is not None:
            self._write_again([(max(position - 1, 0), position + len(line) + 1) for position, line in found])
        elif not self._dirty:
            self._write_again([(0, None)])
        self._dirty = True

    def sync_from(self, start: int) -> None:
        """Sync the log when the block ends; what is there from ``start`` on is first written again."""
        self._write_again([(start, None)])
        self._dirty = True

    def _write_again(self, spans: Sequence[tuple[int, int | None]]) -> None:
        """Write the log's bytes between pairs of positions (None: its end) to their places, where they are already."""
        if not spans:
            return
        there = system.fstat(self.fd)
        size, left = there.st_size, self._left_by_us(there.st_ino, there.st_size)
        flags = system.O_WRONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK
        with Storing("write", self.path):
            try:
                fd = system.open(self.path, flags)  # ours appends, wherever it is told to write
            except PermissionError:  # an append-only file (chattr +a) takes no write but at its end
                return
            with OpenFile(fd):
                for start, end in spans:
                    for chunk in chunks(self.fd, start, size if end is None else min(end, size)):
                        done = 0
                        while done < len(chunk):
                            done += system.pwrite(fd, chunk[done:], start + done)
                        start += done
            if left is None and self.stamp_files is not None:  # its name may not be durable either, as in ``append``
                system.sync_directory(system.dirname(self.path))
        if self.stamp_files is not None and left is not None:
            now = system.fstat(self.fd)
            if now.st_size == size:  # the note says what it said; the log alone has another time
                self.stamp_files.date(self.path, now.st_mtime_ns)

    def _write(self, data: bytes, size: int) -> None:
        written = 0
        try:
            while written < len(data):
                written += system.write(self.fd, data[written:])
        except OSError:
            if written and system.fstat(self.fd).st_size == size + written:
                system.ftruncate(self.fd, size)
            raise  # the announced end is too far: the next writer takes us for a foreign program, which is safe

    def __exit__(self, *raised: object) -> None:
        try:
            if self._dirty and (not raised or raised[0] is None):
                self._unlock_then_sync()
        finally:
            self.release()

    def _unlock_then_sync(self) -> None:
        try:
            system.flock(self.fd, system.LOCK_UN)
            system.fdatasync(self.fd)
            if self.kept is not None and self._end and self._uncounted is None:  # later lines may not be durable yet
                self.kept.change(LogEnd.ended, self.fd, self._end, self._entry.generation if self._entry else 0)
        except OSError as error:
            raise StorageFailed(
                f"cannot sync {self.path}: {error.strerror}; the last lines may be lost",
                f"see what is wrong with the disk{AGAIN}",
            ) from None
