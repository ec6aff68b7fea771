"""What our own writers leave behind beside the logs: where each log ended, and who has nothing to read.

Belongs here: the quiet stamps the shell guard looks for, those that say nothing binds a session, and the record of a
log's end by which a writer notices that a foreign program has written since. All are derived: a missing one costs time.

**Why the guard is sound.** ``quiet/SESSION`` exists only if that session had nothing unread when it was made, and
nothing was written since that could change that:

1. A reader makes its stamp while it holds the locks of all three logs, after catching up to their ends and finding
   nothing (``Mailbox._settle``).
2. Every one of our writers, holding the lock of its log, removes the stamps of all whom its lines may concern *before*
   it appends (``HeldLog.append``): for mail by the roster as it is under the messages' lock, for a release everyone's,
   for a roster event the session's and its heirs'. No stamp can be made between the removal and the append.
3. Time alone only expires mail; it makes nothing unread. (A clock set back can. Like a foreign program's append it is
   noticed by the next explicit check or session start, which ask the logs. A changed configuration the shim notices.)
4. A foreign append leaves the log longer than our last writer did; the next of our writers removes every stamp.
5. Killed anywhere, a writer leaves a stamp removed and a line not written: a needless "maybe", never a false "nothing".
   No stamp outlives the mail's sync: its removal is the older of two changes of the same file system.
"""

from __future__ import annotations

from . import system
from .paths import storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

QUIET = "quiet"
UNBOUND, BOUND = "unbound", "bound"
ENDS = "ends"
GRANT_LIFE = 60_000
"""Milliseconds for which a decision answers the question that follows it at once."""


class Trail:
    """The derived files of one mailbox that writers maintain; ``directory`` is its ``.cache``."""

    def __init__(self, directory: str) -> None:
        self._quiet = system.join(directory, QUIET)
        self._unbound = system.join(directory, UNBOUND)
        self._bound = system.join(directory, BOUND)
        self._ends = system.join(directory, ENDS)

    # -- quiet stamps -------------------------------------------------------------------------------------------------

    def stamp(self, session_id: str, *, led: bool = False) -> None:
        """Say that the session has nothing to read; the caller holds the locks of all three logs. ``led``: the end of
        its turns is to be reported to its lead, for which the guard lets that hook through."""
        self._write(system.join(self._quiet, session_id), b"led\n" if led else b"")

    def is_quiet(self, session_id: str) -> bool:
        """Is there a stamp that says the session has nothing to read?"""
        return system.exists(system.join(self._quiet, session_id))

    def disturb(self, sessions: Iterable[str] | None) -> None:
        """Remove the stamps of these sessions (None: of everyone); raises ``StorageFailed`` if one would stay."""
        known = None if sessions is None else [*sessions]
        for directory in (self._quiet, self._unbound):
            try:
                for session_id in system.listdir(directory) if known is None else known:
                    try:
                        system.unlink(system.join(directory, session_id))
                    except (FileNotFoundError, ValueError):
                        pass
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                raise storage_failed("remove a stamp in", directory, error) from None

    # -- who is bound by a policy -------------------------------------------------------------------------------------

    def unbind(self, session_id: str) -> None:
        """Say that the session has neither lead nor policy; the caller holds the locks of messages and roster. Who is
        given one is written to there, which ends this stamp as it does the quiet one."""
        self._write(system.join(self._unbound, session_id), b"")
        self._remove(system.join(self._bound, session_id))

    def bind(self, session_id: str) -> None:
        """Note that the session has a lead or a policy, for whoever cannot read which."""
        if not self.is_bound(session_id):
            self._write(system.join(self._bound, session_id), b"")

    def is_bound(self, session_id: str) -> bool:
        """Had it a lead or a policy when somebody last looked?"""
        return system.exists(system.join(self._bound, session_id))

    def grant(self, path: str) -> None:
        """Note a decision for the question that follows."""
        self._write(path, b"")

    def take(self, path: str, now: int) -> bool:
        """Is there such a note, not older than ``GRANT_LIFE``? It answers once: taking it is removing it."""
        try:
            made = system.stat(path).st_mtime_ns // 1_000_000
            system.unlink(path)
        except OSError:
            return False
        return now - made <= GRANT_LIFE

    def _remove(self, path: str) -> None:
        try:
            system.unlink(path)
        except OSError:
            pass

    # -- where each log ended -----------------------------------------------------------------------------------------

    def ended(self, path: str) -> tuple[int, int, int] | None:
        """(inode, size, epoch) that our last writer left the log with; None if that is not known."""
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
        """The epoch of an open log up to ``end``; None if a foreign program may have written in it."""
        left = self.ended(path)
        return left[2] if left and left[0] == system.fstat(fd).st_ino and end <= left[1] else None

    def leave(self, path: str, inode: int, size: int, epoch: int) -> None:
        """Note how a log ends, or is about to: its writer holds its lock and says so before it writes. One small write
        over the same bytes, so that a reader sees the old note or the new."""
        self._write(self._end(path), b"%020d %020d %020d" % (inode, size, epoch), 0)

    def _end(self, path: str) -> str:
        return system.join(self._ends, system.basename(path).removesuffix(".jsonl"))  # it is no log itself

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


def new_epoch() -> int:
    """A number that no earlier stretch of a log bears."""
    return int.from_bytes(system.urandom(6), "big")
