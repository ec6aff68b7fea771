"""The archived lines of ids that somebody gave, looked up ahead of a lock.

Belongs here: the index where there is one, a scan where there is none, and whether the answer still holds under the
lock. Others wait for that lock, so nobody reads the archive behind it.
"""

from __future__ import annotations

from ..files import system
from ..log.logs import end_of
from . import lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from ..archive.archive import Archive
    from ..log.logs import Logs

NEAR = 256 << 10
"""Bytes of an archive that are read about as fast as the index is opened."""


class ArchiveGrew(Exception):
    """The steward moved mail since the look; it is to be repeated, ahead of the lock."""


class ArchivedMail:
    """The archived lines that may have one of the ids; for a ``with`` block that looks, locks and asks ``lines``."""

    def __init__(self, logs: Logs, archive: Archive, ids: Collection[str]) -> None:
        self.ids = ids
        self._log = logs.messages
        self._fd = self._log.open()  # held open, so that no later file has its number
        try:
            self._found = find_lines(logs, archive, ids) if ids else []
        except BaseException:
            self.__exit__()
            raise

    def lines(self) -> list[bytes]:
        """Return the lines; raise ``ArchiveGrew`` if the live log was replaced, as the steward does who moves mail."""
        if self._fd is not None and not self._log.is_at_path(self._fd):
            raise ArchiveGrew
        return self._found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            system.close(self._fd)


def find_lines(logs: Logs, archive: Archive, ids: Collection[str]) -> list[bytes]:
    """Return the archived message lines that may have one of the ids."""
    if sum(end_of(archive.log(month).path)[1] for month in archive.months()) > NEAR:
        found = lookup.ask_index(logs, archive, lambda view: view.archived_lines(ids), at_once=True, patience=logs.wait)
        if found is not None:
            return found
    return [*archive.mentioning({*ids})]
