"""The signs by which a sender is told when each reader will see the mail.

Belongs here: gathering them, for the agents that a message reaches alone, and without the network. ``core.arrival``
has the rule, ``store.locks.doorbell_lock`` the waiting process's side.
"""

from __future__ import annotations

from ..core import arrival
from ..core.recipients import mates
from ..store.files import system
from ..store.files.paths import DOORBELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.arrival import Arrival
    from ..core.roster import Roster
    from .opened import OpenMailbox
    from .sending import Sent

_FEW = 8
"""Sessions up to which each one's file is tried: listing a directory costs as much."""
_TURNS = 10
"""Tries while a process is about to wait: it holds the directory's lock for some 0.1 ms."""


def arrival_of(desk: OpenMailbox, sent: Sent, roster: Roster) -> Arrival:
    """Return when the agents that a sent message reaches will see it."""
    readers = sent.delivery.agents
    return arrival.sort(
        sent.message,
        sent.delivery,
        roster,
        waking=armed(desk.logs.cache(), readers),
        hooked=sent.delivery.running,
        carried=mates(readers, roster),
        elsewhere=desk.elsewhere(readers),
        queued=sent.queued,
    )


def armed(cache: str, sessions: Collection[str]) -> set[str]:
    """Return those sessions beside which a process waits at this moment: it holds its lock, which a dead one cannot.

    Asking takes each lock as a reader, for a moment. The directory's lock keeps those out that are about to wait: they
    would find their lock taken, and end.
    """
    try:
        directory = system.open(
            f"{cache}/{DOORBELL}", system.O_RDONLY | system.O_DIRECTORY | system.O_CLOEXEC | system.O_NOFOLLOW
        )
    except OSError:
        return set()  # nobody ever waited here
    try:
        if not sessions or not _is_shared(directory, _TURNS):
            return set()
        names = sessions if len(sessions) <= _FEW else {*system.listdir(f"{cache}/{DOORBELL}")} & {*sessions}
        return {who for who in names if "/" not in who and _is_taken(f"{cache}/{DOORBELL}/{who}")}
    finally:
        system.close(directory)


def _is_taken(path: str) -> bool:
    """Return whether a process holds the lock of the file."""
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
    except OSError:
        return False
    try:
        return not _is_shared(fd, 1)
    finally:
        system.close(fd)


def _is_shared(fd: int, turns: int) -> bool:
    """Return whether the file gave a reader's lock, which closing it gives back."""
    for _ in range(turns):
        try:
            system.flock(fd, system.LOCK_SH | system.LOCK_NB)
            return True
        except OSError:
            system.sched_yield()
    return False
