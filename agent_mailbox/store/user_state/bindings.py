"""The sessions that a lead or a policy binds, among the user's own records.

Belongs here: the stamps that decide what a tool may do, made and read. They are where no checkout, file tool or
sandboxed command writes (``user_state``). Each holds the mailbox's real path on a line, and counts for that mailbox
alone.

    bound/SESSION      it had a lead or a policy at the last look
    unbound/SESSION    nothing binds it: the guard lets its tool calls through
    grants/CALL        a decision answers the question that follows it

**Why nothing frees a bound session.** A stamp ``unbound/SESSION`` is made only while nothing binds that session, under
the locks of messages and roster (``Permit._spare_hooks``). Rules 2 and 4 to 7 of ``stamps`` hold for it as for the
quiet stamps. Another mailbox than the stamp names makes the guard ask Python.
"""

from __future__ import annotations

from ..files import paths, system
from ..files.paths import BOUND
from ..files.small_files import names_in, read_file, remove_if_possible, set_time, write_if_possible
from ..log import stamps
from ..log.stamps import TICK, UNBOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.stamps import StampFiles

GRANTS = "grants"
GRANT_LIFE = 60_000
"""Milliseconds for which a decision answers the question that follows it at once."""


def here(state: str, directory: str) -> list[str]:
    """Return the sessions that are bound in the mailbox; raise ``StorageFailed`` if that cannot be told."""
    bound, place = system.join(state, BOUND), system.encoded(directory)
    return [name for name in names_in(bound) if place in (read_file(system.join(bound, name)) or b"").split(b"\n")]


def bind(stamp_files: StampFiles, session_id: str) -> bool:
    """Note that the session has a lead or a policy, for readers that cannot tell which; return whether that is noted.

    A full disk leaves a mark that names no mailbox. It binds, too."""
    path = stamp_files.kept(BOUND, session_id)
    return _is_said(stamp_files, path) or write_if_possible(path, stamp_files.line(), system.O_APPEND)


def named(state: str, session_id: str) -> list[str] | None:
    """Return the mailboxes that the session's mark names, each of which may bind it; None if it has no mark.

    None is named by a mark that cannot be read: which mailbox binds the session is unknown then."""
    if not paths.is_bound(state, session_id):
        return None
    lines = stamps.lines_of_stamp(system.join(state, BOUND, session_id))
    return [line.decode("utf-8", "surrogateescape") for line in lines]


def is_bound(stamp_files: StampFiles, session_id: str) -> bool:
    """Return whether the session had a lead or a policy at the last look. A stamp that cannot be read says so."""
    return paths.is_bound(stamp_files.kept(), session_id) and not stamp_files.is_of_another(
        stamp_files.kept(BOUND, session_id)
    )


def unbind(stamp_files: StampFiles, session_id: str, now: int) -> None:
    """Say that the session has neither lead nor policy at ``now`` (ms); the caller holds the locks of all logs.

    Giving it one is a write to those logs, which ends this stamp as it does the quiet one.
    """
    free = stamp_files.kept(UNBOUND, session_id)
    write_if_possible(free, stamp_files.line())
    set_time(free, now * 1_000_000 - TICK)
    forget(stamp_files, session_id)


def forget(stamp_files: StampFiles, session_id: str) -> None:
    """Take this mailbox out of the session's mark, and the mark away if it names no other."""
    bound = stamp_files.kept(BOUND, session_id)
    said = stamps.lines_of_stamp(bound)
    others = [line for line in said if not stamp_files.is_here(line)]
    if others and len(others) < len(said):
        write_if_possible(bound, b"".join(line + b"\n" for line in others))
    elif said and not others:
        remove_if_possible(bound)


def frees(stamp_files: StampFiles, session_id: str, now: int) -> bool:
    """Return whether the guard believes a stamp, at ``now`` (ms), that nothing binds the session."""
    free = stamp_files.kept(UNBOUND)
    return _is_said(stamp_files, f"{free}/{session_id}") and stamp_files.believed(session_id, now, free) is not None


def unbound(stamp_files: StampFiles) -> list[str]:
    """Return the sessions of this mailbox that have such a stamp."""
    free = stamp_files.kept(UNBOUND)
    return [name for name in names_in(free) if _is_said(stamp_files, system.join(free, name))]


def has_grants(stamp_files: StampFiles) -> bool:
    """Return whether any decision may wait for the question that follows it."""
    return system.exists(stamp_files.kept(GRANTS))


def grant(stamp_files: StampFiles, call: str) -> None:
    """Note a decision for the question that follows; ``call`` identifies it."""
    write_if_possible(stamp_files.kept(GRANTS, call), stamp_files.line())


def take(stamp_files: StampFiles, call: str, now: int) -> bool:
    """Return whether there is such a note, not older than ``GRANT_LIFE``. It answers once: taking removes it."""
    path = stamp_files.kept(GRANTS, call)
    try:
        made = system.stat(path).st_mtime_ns // 1_000_000
        if not _is_said(stamp_files, path):
            return False  # another mailbox's: each that binds the session decides
        system.unlink(path)
    except OSError:
        return False
    return now - made <= GRANT_LIFE


def _is_said(stamp_files: StampFiles, path: str) -> bool:
    """Return whether a stamp names this mailbox."""
    return any(map(stamp_files.is_here, stamps.lines_of_stamp(path)))
