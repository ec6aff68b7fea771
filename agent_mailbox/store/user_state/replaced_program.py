"""Whether the program was replaced while this process ran, as by an upgrade.

Belongs here: comparing the modules that a process loaded with their files. A process imports much only when it needs
it, so one that runs long meets modules of the other version, and those do not fit.
"""

from __future__ import annotations

import sys

from ..files import system
from . import processes

WHAT = "agent-mailbox was replaced while this ran, as by an upgrade"
_SOON = 100_000_000
"""Nanoseconds of a start in which a change does not count: the system tells a start by hundredths of a second. Two
changes that are less apart may be one."""


def was_replaced() -> bool:
    """Return whether a module's file was written or exchanged after the process started, or is gone. Another link to
    it, or other rights, are no change: installers share files by links. Without ``/proc`` no change counts."""
    process = processes.read(system.getpid())
    ticks = int(process.start) if process else 0
    started = system.booted() + ticks * 1_000_000_000 // system.sysconf("SC_CLK_TCK") if process else 0
    latest = started + _SOON
    package = __name__.partition(".")[0]
    for name, module in [*sys.modules.items()]:
        path = getattr(module, "__file__", None)
        if path and name.partition(".")[0] == package:
            try:
                file = system.stat(path)
                if not process or file.st_ctime_ns <= latest:
                    continue
                place = system.stat(system.dirname(path))
            except OSError:
                return True
            # what is put in a file's place may have an old time of its own, but the directory changes with it
            if file.st_mtime_ns > latest or file.st_ctime_ns <= place.st_mtime_ns + _SOON:
                return True
    return False
