"""Waiting for directories and files to change: inotify if the system has it, else a look now and then.

Belongs here: blocking, and nothing about mail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from . import system

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOKS = 0.25
"""Seconds between two looks without inotify."""


def deadline(timeout: float | None) -> float | None:
    """Return the monotonic instant ``timeout`` seconds from now."""
    return None if timeout is None else system.monotonic() + timeout


class Watch:
    """Changes in some directories or files, for a ``with`` block, those before ``wait`` included.

    ``looks`` are the seconds between two looks without inotify.
    """

    def __init__(self, places: Sequence[str], looks: float = LOOKS) -> None:
        self._fd = system.watched(places)
        self._looks = looks

    @property
    def hears(self) -> bool:
        """Return whether the system tells of changes; else ``wait`` looks now and then."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            system.close(self._fd)

    def wait(self, until: float | None, *others: int) -> bool:
        """Block until something may have changed, or another descriptor has data; return False at ``until``."""
        left = None if until is None else until - system.monotonic()
        if left is not None and left <= 0:
            return False
        if self._fd < 0:
            system.sleep(self._looks if left is None else min(self._looks, left))
            return True
        ready = system.readable([self._fd, *others], left)
        if self._fd in ready:
            system.read(self._fd, 1 << 16)
        return bool(ready)
