"""Who carries mail to a client's team: the lock that a team's bridge holds.

Belongs here: where that lock is, and asking for it without disturbing who wants it.
"""

from __future__ import annotations

import fcntl

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .logs import Logs

DIRECTORY = "teams"
"""Where, among the derived files, bridges hold their locks."""
ASKED = 0.2
"""Seconds a bridge waits for its lock: who asks for it has it for a moment, too."""


def place(logs: Logs, tag: str) -> str:
    """The lock of a team, by its tag."""
    return system.join(logs.cache(DIRECTORY), tag.partition(":")[2])


def runs(logs: Logs, tag: str) -> bool:
    """Has the team a bridge at this moment?"""
    try:
        fd = system.open(place(logs, tag), system.O_RDONLY | system.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        system.close(fd)
    return False
