"""The reader of an output: what did it take of what was written?

Belongs here: how the system is asked. A pipe and a socket tell what is left in them (Linux). A terminal and a file have
taken what was written. So has a pipe where the system cannot say: on macOS a pipe's write end is always empty.
"""

from __future__ import annotations

import sys

from ...errors import Busy, MailboxError, StorageFailed
from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_QUESTIONS = {system.S_IFIFO: 0x541B, system.S_IFSOCK: 0x5411}
"""The numbers for ioctl(2), by the kind of file: FIONREAD of a pipe, SIOCOUTQ of a socket (Linux)."""
_PAUSE, _LONGEST = 0.00002, 0.01
"""Seconds between the first two looks, and between two looks at most."""
_AT_ONCE = 8
"""Looks before one whether the reader is gone: most have taken everything by then."""


def question(fd: int) -> Callable[[], int] | None:
    """Return a function that tells how many bytes the reader has not taken; None if the system cannot say."""
    number = _QUESTIONS.get(system.fstat(fd).st_mode & system.S_IFMT)
    if number is None:
        return None

    def ask() -> int:
        left = int.from_bytes(system.ioctl(fd, number, b"\0\0\0\0"), sys.byteorder)
        if left == 0 and number == _QUESTIONS[system.S_IFSOCK] and system.is_broken(fd):
            return 1  # a socket drops what its reader left there
        return left

    try:
        ask()
    except OSError:
        return None
    return ask


def await_taken(fd: int, ask: Callable[[], int], until: float) -> tuple[int, MailboxError | None]:
    """Wait until that instant for the reader to take everything. Return how many bytes it left, and why."""
    pause, looks = _PAUSE, 0
    while left := ask():
        looks += 1
        if looks > _AT_ONCE:
            if system.is_broken(fd):
                return (left, _gone()) if (left := ask()) else (0, None)
            if system.monotonic() >= until:
                return left, stalled()
        system.sleep(pause)
        pause = min(pause * 2, _LONGEST)
    return 0, None


def why_untaken(fd: int, patience: float) -> MailboxError | None:
    """Return why the reader did not take everything that was written, for so many seconds; None once it did."""
    ask = question(fd)
    return None if ask is None else await_taken(fd, ask, system.monotonic() + patience)[1]


def _gone() -> StorageFailed:
    return StorageFailed(
        "the reader of the output left before its end", "nothing was marked as read; run it again", code="output"
    )


def stalled() -> Busy:
    """Return the error of a reader that does not read."""
    return Busy(
        "the reader of the output does not read; nothing was marked as read",
        "use `agent-mailbox check --peek` with a pager; let a plain `check` print to its end",
        code="output_blocked",
    )
