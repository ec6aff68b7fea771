"""The lines that an archive has, kept in mind by a process that adds to it again and again.

Belongs here: whether a line is archived, by its content without its seal. An archive only grows, so a second look reads
what is new.
"""

from __future__ import annotations

from ..log.growing_log import GrowingLog
from ..log.unordered import digest, unsealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.log import Log
    from .archive import Archive


class ArchivedDigests:
    """A digest of each line of an archive's files."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: dict[str, tuple[GrowingLog, set[bytes]]] = {}
        self._durable: set[str] = set()
        """The files that this process made durable: a killed one may have written to them."""

    def of(self, log: Log) -> set[bytes]:
        """Return the digests of an archived log's lines, without a torn one that a killed run left: it is cut off."""
        growing, found = self._known.setdefault(log.path, (GrowingLog(log), set[bytes]()))
        with growing.news() as (_, lines):
            found.update(digest(unsealed(line)) for _, line in lines)
        return found

    def has(self, key: bytes) -> bool:
        """Return whether any file had a line with that digest when it was last looked at: see ``look``."""
        return any(key in found for _, found in self._known.values())

    def look(self) -> None:
        """Look at every file."""
        for name in self._archive.files():
            self.of(self._archive.file(name))

    def add(self, log: Log, lines: list[bytes]) -> None:
        """Append lines to an archived log, those that it has left out; durable when this returns."""
        known = self.of(log)
        new = list({digest(line): line for line in lines if digest(line) not in known}.values())
        if len(new) < len(lines) and log.path not in self._durable:
            with log.held() as held:
                held.sync()
        self._durable.add(log.path)
        if new:
            log.append([line + b"\n" for line in new])
