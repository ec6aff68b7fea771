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
SELDOM = 30.0
"""Seconds between two looks whether the places are still those that are watched: whoever moves a directory above them
changes nothing in them."""


def deadline(timeout: float | None) -> float | None:
    """Return the monotonic instant ``timeout`` seconds from now."""
    return None if timeout is None else system.monotonic() + timeout


class Watch:
    """Changes in some directories or files, for a ``with`` block, those before ``wait`` included.

    Another one in the place of one of them is watched from then on. ``looks`` are the seconds between two looks without
    inotify.
    """

    def __init__(self, places: Sequence[str], looks: float = LOOKS) -> None:
        self._places = places
        self._looks = looks
        self._begin()

    def _begin(self) -> None:
        self._found = self._identify()  # before the watch, to notice a replacement meanwhile
        self._fd = system.watched(self._places)

    def _identify(self) -> list[tuple[int, int] | None]:
        return [system.identity(place) for place in self._places]

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
        while (left := SELDOM if until is None else min(SELDOM, until - system.monotonic())) > 0:
            if self._fd < 0:
                system.sleep(min(self._looks, left))
                self._begin()
                return True
            ready = system.readable([self._fd, *others], left)
            if self._fd in ready:
                system.read(self._fd, 1 << 16)
            if self._identify() != self._found:
                system.close(self._fd)
                self._begin()
                return True
            if ready:
                return True
        return False
