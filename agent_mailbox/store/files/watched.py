"""Notes of which agents are watched: for the writers who would tell of an event.

Belongs here: these files among the user's own records, one for each watched agent of a mailbox, with the ids of its
watchers. The watch itself is in the log; the steward writes a note again that is missing.
"""

from __future__ import annotations

from . import system
from .small_files import list_names, read_if_possible, remove_if_possible, write_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..log.stamps import StampFiles

WATCHED = "watched"


class Watched:
    """The notes of the mailbox that these stamps belong to."""

    def __init__(self, stamp_files: StampFiles) -> None:
        self._directory = stamp_files.kept_here(WATCHED)

    def is_watched(self, agent: str) -> bool:
        """Return whether anybody watches an agent."""
        return self._directory is not None and system.exists(system.join(self._directory, agent))

    def by(self, watcher: str) -> list[str]:
        """Return the agents that a session watches."""
        return [name for name in self._names() if watcher in self._watchers(name)]

    def note(self, agent: str, watcher: str) -> None:
        """Note that an agent is about to be watched; the writer of the watch does so before. No power failure takes a
        new note away: the watch will count."""
        is_new = not self.is_watched(agent)
        self._write(agent, [*self._watchers(agent), watcher])
        if is_new and self._directory is not None:
            try:
                system.sync_way(self._directory)
            except OSError:
                pass  # as in ``_write``: it costs a watcher time

    def settle(self, watchers: Mapping[str, Collection[str]]) -> None:
        """Note that these agents are watched by those, and no others; the caller holds the messages' lock since it
        looked."""
        for agent in self._names():
            if agent not in watchers:
                remove_if_possible(system.join(self._directory or "", agent))
        for agent, ids in watchers.items():
            if {*self._watchers(agent)} != {*ids}:
                self._write(agent, sorted(ids))

    def _names(self) -> list[str]:
        return [] if self._directory is None else list_names(self._directory)

    def _watchers(self, agent: str) -> list[str]:
        if self._directory is None:
            return []
        return (read_if_possible(system.join(self._directory, agent)) or b"").decode("utf-8", "replace").split()

    def _write(self, agent: str, words: Sequence[str]) -> None:
        """Replace a note; one that cannot be written costs a watcher time: it hears from the steward."""
        if self._directory is not None:
            write_if_possible(system.join(self._directory, agent), system.encoded("\n".join(words)))
