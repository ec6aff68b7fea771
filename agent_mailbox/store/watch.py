"""Waiting for directories and files to change: inotify if the system has it, else a look now and then.

Belongs here: blocking, and nothing about mail. inotify(7) comes through ``ctypes``: the standard library has no
binding, and three calls do not justify a dependency.
"""

from __future__ import annotations

import ctypes
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

# IN_MODIFY, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_MOVE_SELF (its own deletion is always reported)
_MASK = 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x800
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
LOOKS = 0.25
"""Seconds between two looks without inotify."""


def deadline(timeout: float | None) -> float | None:
    """Return the monotonic instant ``timeout`` seconds from now."""
    return None if timeout is None else time.monotonic() + timeout


class Watch:
    """Changes in some directories or files, for a ``with`` block, those before ``wait`` included.

    ``looks`` are the seconds between two looks without inotify.
    """

    def __init__(self, places: Sequence[str], looks: float = LOOKS) -> None:
        self._fd = _inotify(places)
        self._looks = looks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def wait(self, until: float | None, *others: int) -> bool:
        """Block until something may have changed, or another descriptor has data; return False at ``until``."""
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return False
        if self._fd < 0:
            time.sleep(self._looks if left is None else min(self._looks, left))
            return True
        ready, _, _ = select.select([self._fd, *others], [], [], left)
        if self._fd in ready:
            os.read(self._fd, 1 << 16)
        return bool(ready)


def _inotify(places: Sequence[str]) -> int:
    """Return a descriptor that becomes readable on a change, or -1 if the system gives none."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        fd: int = libc.inotify_init1(_NONBLOCK_CLOEXEC)
        if fd >= 0 and any(libc.inotify_add_watch(fd, os.fsencode(place), _MASK) < 0 for place in places):
            os.close(fd)
            return -1
        return fd
    except (OSError, AttributeError):
        return -1
