"""The files that our writers leave beside the logs: each log's end, and the sessions with no news.

Belongs here: the quiet stamps that the shell guard looks for, and the note of a log's end, by which a writer notices
foreign writes. Both are in the mailbox and derived; a missing one costs time. The stamps that free or bind a session
are elsewhere (``bindings``); those that free one go here, with the quiet ones.

**Why the guard is sound.** ``quiet/SESSION`` exists only if that session had nothing unread when it was made, and no
later write could change that:

1. A reader makes its stamp while it holds the locks of all three logs, after catching up to their ends and finding
   nothing (``Delivery._settle``).
2. Each writer of ours, holding the lock of its log, removes the stamps of all whom its lines may concern *before* it
   appends (``HeldLog.append``). Mail concerns its readers, by the roster under the messages' lock. A release concerns
   everyone, a roster event the session and its successors. No stamp can be made between the removal and the append. The
   stamps of many go by renaming their directory: the guard looks in no other, and a later stamp makes a new one.
3. Time alone expires mail, and ends another's claim of role mail: a session gets no stamp while there is such a claim.
   Nothing else becomes unread by it. A clock set back can make mail unread. So a stamp has the time at which it was
   judged. The guard beats the heart first: a stamp newer than that does not count.
4. Stamps count for the logs as our writers left them, and for one configuration. The note of each file has the
   file's time: see ``vouch``. If a time differs, the guard asks Python, which reads the logs and removes every stamp.
   So an old ``.cache`` beside new logs, a new one beside old logs, and another mailbox's vouch for nothing.
   A poll that makes the notes fit again removes the stamps first. So the guard looks at its stamp once more at the end.
5. Killed anywhere, a writer leaves a stamp removed and a line not written: a needless "maybe", never a false "nothing".
   A stamp that has a word for the guard comes with it, by a rename. Without it nobody would be told of a turn's end.
6. A stamp that cannot be removed stops no mail. Its writer notes no new end of the log, and takes the time from the old
   note (``doubt``). So no stamp counts until a writer or a poll removed all of them.
7. A power failure may bring a removed stamp back: some file systems keep no order of changes, and the log may be in
   another one. It may take the word of a stamp. So one from before the machine's start is none (``STARTED``).
   If that start is unknown, a session that starts removes its stamp (``session.enter_session``).
"""

from __future__ import annotations

from ...errors import StorageFailed
from ..files import paths, system
from ..files.paths import CONFIG, MESSAGES, READS, ROSTER, is_there
from ..files.small_files import read_if_possible, remove_if_possible, set_time, storage_failed, write_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EVERYONE = None
"""All sessions of a mailbox, as the ones that an append may disturb."""
QUIET = "quiet"
LED, AT_TURN = "led", "turn"
"""Words of a quiet stamp that let hooks through; the shim has the same."""
OFFERED = "tasks"
LOOKED, LOOK_REST = ".looked", 60_000
"""The file among these that says when somebody last looked at the holders of tasks. A hook looks again after these
milliseconds."""
UNBOUND = "unbound"
WOKEN = "wakes"
"""Among the user's own records: what woke each session lately (``mailbox.session_brake``)."""
NOWHERE = "/dev/null/gone"
"""A place at which nothing can be: where a mailbox that is not there keeps what is its own."""
ENDS = "ends"
_PRIME = 9_999_999_967
"""Largest of ten digits: no change of one digit is a multiple of it."""
MANY = 500
"""Stamps of which the whole directory is put aside: to remove ten thousand one by one takes ten starts of Python. Their
sessions look one extra time, and so do those of other mailboxes that have stamps in it."""
ASIDES = 10
"""Directories of stamps that wait for the steward, at most; after that, stamps go one by one."""
LOGS = (MESSAGES, READS, ROSTER)
VOUCHED = (*LOGS, CONFIG)
"""The files that a stamp counts for; the shim has the same list."""
STARTED = "/proc"
"""A directory with the time of the machine's start (Linux), or of the container's; the shim asks it, too. macOS has
none. A clock that is ahead at the start makes it a time to come, which tells nothing."""
TICK = 20_000_000
"""Nanoseconds that the time of a new file may be behind the clock: file systems take it from the kernel's last tick."""


class StampFiles:
    """The derived files of one mailbox that writers maintain.

    ``directory`` is its ``.cache``, ``state`` the user's own records (default: of this process's user).
    """

    def __init__(self, directory: str, state: str | None = None) -> None:
        self._mailbox = directory.rpartition("/")[0] or "/"
        self._quiet = f"{directory}/{QUIET}"
        self._ends = f"{directory}/{ENDS}"
        self._state = state

    def kept(self, *names: str) -> str:
        """Return a path among the user's own records."""
        if self._state is None:
            self._state = paths.state_directory(system.environment())
        return "/".join((self._state, *names))

    def kept_here(self, name: str) -> str:
        """Return a directory of this mailbox's own among these records; ``NOWHERE`` if the mailbox is not there."""
        try:
            there = system.stat(self._mailbox)
        except OSError:
            return NOWHERE
        return self.kept(name, f"{there.st_dev:x}-{there.st_ino:x}")

    def is_offered(self, session_id: str) -> bool:
        """Return whether a task may be open to the session of which it was not told: no stamp may spare its next
        hook."""
        return system.exists(f"{self.kept_here(OFFERED)}/{session_id}")

    def is_board_due(self, session_id: str, clock: Callable[[], int]) -> bool:
        """Return whether a prompt's hook looks at the tasks.

        One may be open to the session, or nobody looked at their holders for a while."""
        board = self.kept_here(OFFERED)
        if not system.exists(board):
            return False
        looked = (_time(f"{board}/{LOOKED}") or 0) // 1_000_000
        return system.exists(f"{board}/{session_id}") or clock() - looked >= LOOK_REST

    def was_woken(self, session_id: str) -> bool:
        """Return whether mail woke the session lately, or would have."""
        return system.exists(f"{self.kept_here(WOKEN)}/{session_id}")

    # -- quiet stamps -------------------------------------------------------------------------------------------------

    def stamp(self, session_id: str, now: int, *, word: str = "") -> None:
        """Say that the session has no unread mail at ``now`` (ms); the caller holds the locks of all three logs.

        ``word``: the guard lets some hooks through. ``LED``: the one at a turn's end, which reports to the session's
        lead. ``AT_TURN``: that one and a prompt's, which show mail that waits for them.
        """
        path = f"{self._quiet}/{session_id}"
        begun = f"{self._quiet}/.{session_id}" if word else path  # the guard looks for no such name
        if not write_if_possible(begun, f"{word}\n".encode() if word else b""):
            return
        set_time(begun, now * 1_000_000 - TICK)
        if word:  # killed without its word it would be another stamp
            try:
                system.rename(begun, path)
            except OSError:
                pass

    def is_quiet(self, session_id: str) -> bool:
        """Return whether a stamp says that the session has no unread mail."""
        return system.exists(f"{self._quiet}/{session_id}")

    def believed(self, session_id: str, now: int, directory: str | None = None) -> tuple[int, int, int] | None:
        """Return the identity of the session's stamp if the guard believes it at ``now`` (ms): another one differs.

        ``directory`` has it; by default that of the quiet stamps."""
        try:
            there = system.stat(f"{directory or self._quiet}/{session_id}")
        except (OSError, ValueError):
            return None
        if there.st_mtime_ns > now * 1_000_000 or not all(map(self._is_dated, VOUCHED)):
            return None
        if there.st_mtime_ns < (_time(STARTED) or 0) <= now * 1_000_000:
            return None  # a power failure may have brought it back
        return there.st_ino, there.st_mtime_ns, there.st_ctime_ns

    def disturb(self, sessions: Iterable[str] | None) -> None:
        """Remove the stamps of these sessions (or ``EVERYONE``); raise ``StorageFailed`` if one stays."""
        known = EVERYONE if sessions is EVERYONE else sorted(sessions)  # the same order each time: it can be replayed
        if known is not EVERYONE and len(known) > MANY:
            known = EVERYONE
        failed: StorageFailed | None = None
        for directory in (self._quiet, self.kept(UNBOUND)):
            try:
                there = system.listdir(directory) if known is EVERYONE else known
                if known is EVERYONE and len(there) > MANY and _is_put_aside(directory):
                    continue
                for session_id in there:
                    path = f"{directory}/{session_id}"
                    if known is EVERYONE and directory != self._quiet and self.is_of_another(path):
                        continue
                    try:
                        system.unlink(path)
                    except (FileNotFoundError, ValueError):
                        pass
                    except OSError as error:
                        if is_there(path):  # a read-only disk refuses before it looks
                            failed = storage_failed("remove", path, error)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                failed = storage_failed("look through", directory, error)
        if failed is not None:
            raise failed

    def try_to_disturb(self, session_id: str) -> None:
        """Remove a session's stamps; one that stays costs whoever waits for the session time."""
        try:
            self.disturb([session_id])
        except StorageFailed:
            pass

    def doubt(self, path: str) -> None:
        """Have the guard believe no stamp until the note of a log is made again: one of them should go, and stays."""
        set_time(self._end(path), 0)

    def sweep(self) -> None:
        """Remove the directories of stamps that were put aside."""
        for directory in (self._quiet, self.kept(UNBOUND)):
            for aside in _asides(directory):
                try:
                    for name in system.listdir(aside) if system.is_own_directory(aside) else ():
                        system.unlink(system.join(aside, name))
                    system.rmdir(aside)
                except OSError:
                    pass  # most often there is none

    # -- among the user's own records --------------------------------------------------------------------------------

    def line(self) -> bytes:
        """Return the line by which a stamp names this mailbox: its real path."""
        return system.real_path(self._mailbox).encode("utf-8", "surrogateescape") + b"\n"

    def is_of_another(self, path: str) -> bool:
        """Return whether a stamp names other mailboxes alone. One that cannot be read may name this one."""
        said = lines_of_stamp(path)
        return bool(said) and not any(self.is_here(line, unsure=True) for line in said)

    def is_here(self, line: bytes, *, unsure: bool = False) -> bool:
        """Return whether a line names this mailbox; ``unsure``: the answer where that cannot be told."""
        try:
            that, this = system.stat(line), system.stat(self._mailbox)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            return unsure
        return system.is_same(that, this)

    # -- where each log ended -----------------------------------------------------------------------------------------

    def ended(self, path: str) -> tuple[int, int, int, int] | None:
        """Return (inode, size, epoch, start) that our last writer left the log with; None if that is unknown.

        Its lines begin at ``start``. If it was killed, they may be missing.
        """
        try:
            *said, check = map(int, (read_if_possible(self._end(path), 1) or b"").split())
            inode, size, epoch, start = said
            return (inode, size, epoch, start) if check == _check(*said) else None
        except ValueError:
            return None

    def grown(self, path: str, inode: int, size: int) -> tuple[int, int] | None:
        """Return where our last writer left a messages log that grew since, and its epoch; None for any other log.

        A poll looks at what was appended there. Until then the note stays: whatever is behind it may be foreign.
        """
        left = self.ended(path) if path.endswith(MESSAGES) else None
        return left[1:3] if left and left[0] == inode and left[1] < size else None

    def epoch(self, path: str, fd: int, end: int) -> int | None:
        """Return the epoch of an open log up to ``end``; None if a foreign program may have written in it.

        It may have, if the log ends within the lines that a writer was about to write:

            note     of 3984 to 7282: the writer is killed
            log      4223 bytes: a foreign line of 239
        """
        left = self.ended(path)
        if not left or left[0] != system.fstat(fd).st_ino:
            return None
        _, size, epoch, start = left
        return epoch if end <= start or end == size else None

    def began(self, path: str, end: int) -> bool:
        """Return whether a log up to ``end`` has all lines with which its epoch began, by its note."""
        left = self.ended(path)
        return left is not None and (end == left[1] or 0 < left[3] <= end)

    def announce(
        self,
        path: str,
        inode: int,
        size: int,
        end: int,
        epoch: int | None,
        disturbs: Iterable[str] | None,
        *,
        begins: bool,
    ) -> bool:
        """Remove stamps before an append from ``size`` to ``end``, and note that end; return whether no stamp stays.

        All of them go if a foreign program wrote since our last writer (no ``epoch``). ``begins``: an epoch does."""
        try:
            self.disturb(EVERYONE if epoch is None else disturbs)
        except StorageFailed:  # what is derived stops no mail (6); the doctor tells of it
            self.doubt(path)
            return False
        if epoch is not None or not self.grown(path, inode, size):
            known = None if begins else epoch
            self.leave(path, inode, end, known or new_epoch(), 0 if begins else size)
        return True

    def leave(self, path: str, inode: int, size: int, epoch: int, start: int | None = None) -> None:
        """Note how a log ends, or is about to: its writer holds its lock and notes it before writing.

        Its lines begin at ``start``; None: it writes none; 0: the epoch is one of all of them. One small write replaces
        the same bytes, so that a reader sees the old note or the new.
        """
        said = (inode, size, epoch, size if start is None else start)
        write_if_possible(self._end(path), b"%020d %020d %020d %020d %010d" % (*said, _check(*said)), 0)

    def date(self, path: str, time: int) -> None:
        """Give the note of a log the log's time (ns), now that it holds what the note says."""
        set_time(self._end(path), time)

    def vouch(self, config: Sequence[int]) -> bool:
        """Make the notes say how the files are now; return False if any file was not as noted. Then no stamp stays.

        The caller holds the locks of all three logs. ``config`` identifies the configuration that it read. A log that
        differs gets a new epoch, unless the file system cannot keep the time: then it would differ at each look.

            log      2026-11-22 17:47:26.808750475   7132 bytes
            note     2026-11-22 17:47:26.808750475   inode, 7132, epoch: the stamps count
            note     2026-11-20 09:12:00.000000000   of an older .cache: the stamps go
        """
        wanted = config[2] if config else None
        strange = [name for name in LOGS if not self._is_dated(name)]
        if not strange and _time(self._end(CONFIG)) == wanted:
            return True
        self.disturb(EVERYONE)
        for name in strange:
            self._renew(f"{self._mailbox}/{name}")
        note = self._end(CONFIG)
        if wanted is None:
            remove_if_possible(note)
        else:
            write_if_possible(note, b"")
            set_time(note, wanted)
        return False

    def _renew(self, path: str) -> None:
        there, left = system.stat(path), self.ended(path)
        if self.grown(path, there.st_ino, there.st_size):
            self.date(path, there.st_mtime_ns)
            return
        known = left[2] if left is not None and left[:2] == (there.st_ino, there.st_size) else None
        if known is None:
            try:  # a foreign program may have made the log; writers take the note for a sign that its name is durable
                system.sync_directory(self._mailbox)
            except OSError:
                return
        self.leave(path, there.st_ino, there.st_size, new_epoch() if known is None else known)
        self.date(path, there.st_mtime_ns)
        if known is not None and self._is_dated(system.basename(path)):
            self.leave(path, there.st_ino, there.st_size, new_epoch())
            self.date(path, there.st_mtime_ns)

    def _is_dated(self, name: str) -> bool:
        """Return whether the note has the time of the file with that name, or both are missing."""
        return _time(self._end(name)) == _time(f"{self._mailbox}/{name}")

    def _end(self, path: str) -> str:
        name = path.rpartition("/")[2].removesuffix(".jsonl")  # the note is no log itself
        return f"{self._ends}/{name}"


def _check(inode: int, size: int, epoch: int, start: int) -> int:
    """Return a number that tells a damaged note: one that is too far ahead would hide what other programs write."""
    return (inode * 3 + size * 5 + epoch * 7 + start * 11) % _PRIME


def _asides(directory: str) -> list[str]:
    return [f"{directory}.gone-{number}" for number in range(ASIDES)]


def _is_put_aside(directory: str) -> bool:
    """Rename a directory of stamps, which removes all at once; return whether there was room for it."""
    for aside in _asides(directory):
        try:
            system.rename(directory, aside)
        except FileNotFoundError:
            return True  # another writer did it meanwhile
        except OSError:
            continue  # there are others in it
        return True
    return False


def _time(path: str) -> int | None:
    """Return the time (ns) of a file's last change; None if there is none."""
    try:
        return system.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return None


def lines_of_stamp(path: str) -> list[bytes]:
    """Return the lines of a stamp; none if it cannot be read."""
    return [line for line in (read_if_possible(path) or b"").split(b"\n") if line]


def new_epoch() -> int:
    """Return a number that no earlier stretch of a log has."""
    return int.from_bytes(system.urandom(6), "big")
