"""The files that our writers leave beside the logs: each log's end, the sessions with no news, the bound sessions.

Belongs here: the quiet stamps that the shell guard looks for, and the record of a log's end, by which a writer notices
foreign writes. Both are in the mailbox and derived; a missing one costs time.

Stamps that free or bind a session (``unbound``, ``bound``, ``grants``) decide what a tool may do. So they are among the
user's own records (``user_state``), where no checkout, file tool or sandboxed command writes. Each holds the mailbox's
real path on a line, and counts for that mailbox alone.

**Why the guard is sound.** ``quiet/SESSION`` exists only if that session had nothing unread when it was made, and no
later write could change that:

1. A reader makes its stamp while it holds the locks of all three logs, after catching up to their ends and finding
   nothing (``Delivery._settle``).
2. Each writer of ours, holding the lock of its log, removes the stamps of all whom its lines may concern *before* it
   appends (``HeldLog.append``). Mail concerns its readers, by the roster under the messages' lock. A release concerns
   everyone, a roster event the session and its heirs. No stamp can be made between the removal and the append.
3. Time alone only expires mail; it makes nothing unread. (A clock set back can. Like a foreign program's append it is
   noticed by the next explicit check or session start, which ask the logs. A changed configuration the shim notices.)
4. A foreign append leaves the log longer than our last writer did; the next of our writers removes every stamp.
5. Killed anywhere, a writer leaves a stamp removed and a line not written: a needless "maybe", never a false "nothing".
   No stamp outlives the mail's sync: its removal is the older of two changes of the same file system.

**Why nothing frees a bound session.** A stamp ``unbound/SESSION`` is made only while nothing binds that session, under
the locks of messages and roster (``Permit._unbind``). Rules 2, 4 and 5 hold for it as for the quiet stamps.

6. The stamp may be in another file system than the log, so a crash of the machine may bring it back. Such a crash ends
   the session's client as well, and a session's start removes its stamp.
7. A configuration newer than the stamp, or another mailbox than the stamp names, makes the guard ask Python.
"""

from __future__ import annotations

from . import system, user_state
from .paths import storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYONE = None
"""All sessions of a mailbox, as the ones that an append may disturb."""
QUIET = "quiet"
UNBOUND, BOUND, GRANTS = "unbound", "bound", "grants"
ENDS = "ends"
GRANT_LIFE = 60_000
"""Milliseconds for which a decision answers the question that follows it at once."""


class Trail:
    """The derived files of one mailbox that writers maintain.

    ``directory`` is its ``.cache``, ``state`` the user's own records (default: of this process's user).
    """

    def __init__(self, directory: str, state: str | None = None) -> None:
        self._mailbox = system.dirname(directory)
        self._quiet = system.join(directory, QUIET)
        self._ends = system.join(directory, ENDS)
        self._state = state

    def kept(self, *names: str) -> str:
        """Return a path among the user's own records."""
        if self._state is None:
            self._state = user_state.of_process()
        return system.join(self._state, *names)

    # -- quiet stamps -------------------------------------------------------------------------------------------------

    def stamp(self, session_id: str, *, led: bool = False) -> None:
        """Say that the session has no unread mail; the caller holds the locks of all three logs.

        ``led``: the guard lets the hook at a turn's end through, which reports to the session's lead.
        """
        self._write(system.join(self._quiet, session_id), b"led\n" if led else b"")

    def is_quiet(self, session_id: str) -> bool:
        """Return whether a stamp says that the session has no unread mail."""
        return system.exists(system.join(self._quiet, session_id))

    def disturb(self, sessions: Iterable[str] | None) -> None:
        """Remove the stamps of these sessions (or ``EVERYONE``); raise ``StorageFailed`` if one would stay."""
        known = EVERYONE if sessions is EVERYONE else [*sessions]
        for directory in (self._quiet, self.kept(UNBOUND)):
            try:
                for session_id in system.listdir(directory) if known is EVERYONE else known:
                    path = system.join(directory, session_id)
                    if known is EVERYONE and directory != self._quiet and not self._is_said(path):
                        continue  # of another mailbox
                    try:
                        system.unlink(path)
                    except (FileNotFoundError, ValueError):
                        pass
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                raise storage_failed("remove a stamp in", directory, error) from None

    # -- who is bound by a policy -------------------------------------------------------------------------------------

    def unbind(self, session_id: str) -> None:
        """Say that the session has neither lead nor policy; the caller holds the locks of messages and roster.

        Giving it one is a write to those logs, which ends this stamp as it does the quiet one.
        """
        self._write(self.kept(UNBOUND, session_id), self._line())
        bound = self.kept(BOUND, session_id)
        if self._is_said(bound):
            others = [line for line in _lines(bound) if not self._is_here(line)]
            if others:
                self._write(bound, b"".join(line + b"\n" for line in others))
            else:
                self._remove(bound)

    def bind(self, session_id: str) -> None:
        """Note that the session has a lead or a policy, for readers that cannot tell which."""
        if not self.is_bound(session_id):
            self._write(self.kept(BOUND, session_id), self._line(), system.O_APPEND)

    def is_bound(self, session_id: str) -> bool:
        """Return whether the session had a lead or a policy at the last look."""
        return self._is_said(self.kept(BOUND, session_id))

    def is_unbound(self, session_id: str) -> bool:
        """Return whether a stamp says that nothing binds the session."""
        return self._is_said(self.kept(UNBOUND, session_id))

    def unbound(self) -> list[str]:
        """Return the sessions of this mailbox that have such a stamp."""
        try:
            return sorted(name for name in system.listdir(self.kept(UNBOUND)) if self.is_unbound(name))
        except OSError:
            return []

    def has_grants(self) -> bool:
        """Return whether any decision may wait for the question that follows it."""
        return system.exists(self.kept(GRANTS))

    def grant(self, call: str) -> None:
        """Note a decision for the question that follows; ``call`` identifies it."""
        self._write(self.kept(GRANTS, call), self._line())

    def take(self, call: str, now: int) -> bool:
        """Return whether there is such a note, not older than ``GRANT_LIFE``. It answers once: taking removes it."""
        path = self.kept(GRANTS, call)
        try:
            made = system.stat(path).st_mtime_ns // 1_000_000
            said = self._is_said(path)
            system.unlink(path)
        except OSError:
            return False
        return said and now - made <= GRANT_LIFE

    def _remove(self, path: str) -> None:
        try:
            system.unlink(path)
        except OSError:
            pass

    def _line(self) -> bytes:
        return system.real_path(self._mailbox).encode("utf-8", "surrogateescape") + b"\n"

    def _is_said(self, path: str) -> bool:
        """Return whether a stamp names this mailbox."""
        return any(map(self._is_here, _lines(path)))

    def _is_here(self, line: bytes) -> bool:
        try:
            that, this = system.stat(line), system.stat(self._mailbox)
        except (OSError, ValueError):
            return False
        return (that.st_dev, that.st_ino) == (this.st_dev, this.st_ino)

    # -- where each log ended -----------------------------------------------------------------------------------------

    def ended(self, path: str) -> tuple[int, int, int] | None:
        """Return (inode, size, epoch) that our last writer left the log with; None if that is unknown."""
        try:
            fd = system.open(self._end(path), system.O_RDONLY | system.O_CLOEXEC)
        except OSError:
            return None
        try:
            inode, size, epoch = system.read(fd, 100).split()
            return int(inode), int(size), int(epoch)
        except (OSError, ValueError):
            return None
        finally:
            system.close(fd)

    def epoch(self, path: str, fd: int, end: int) -> int | None:
        """Return the epoch of an open log up to ``end``; None if a foreign program may have written in it."""
        left = self.ended(path)
        return left[2] if left and left[0] == system.fstat(fd).st_ino and end <= left[1] else None

    def leave(self, path: str, inode: int, size: int, epoch: int) -> None:
        """Note how a log ends, or is about to: its writer holds its lock and notes it before writing.

        One small write replaces the same bytes, so that a reader sees the old note or the new.
        """
        self._write(self._end(path), b"%020d %020d %020d" % (inode, size, epoch), 0)

    def _end(self, path: str) -> str:
        return system.join(self._ends, system.basename(path).removesuffix(".jsonl"))  # the note is no log itself

    def _write(self, path: str, data: bytes, truncate: int = system.O_TRUNC) -> None:
        flags = system.O_WRONLY | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW | truncate
        try:
            try:
                fd = system.open(path, flags, 0o600)
            except FileNotFoundError:
                system.make_directory(system.dirname(path))
                fd = system.open(path, flags, 0o600)
            try:
                if data:
                    system.write(fd, data)
            finally:
                system.close(fd)
        except OSError:
            pass


def _lines(path: str) -> list[bytes]:
    """Return the lines of a stamp; none if it cannot be read."""
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
    except (OSError, ValueError):
        return []
    try:
        return [line for line in system.read(fd, 1 << 16).split(b"\n") if line]
    except OSError:
        return []
    finally:
        system.close(fd)


def new_epoch() -> int:
    """Return a number that no earlier stretch of a log bears."""
    return int.from_bytes(system.urandom(6), "big")
