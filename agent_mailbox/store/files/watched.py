"""Notes of which agents are watched: for the writers who would tell of an event.

Belongs here: these files among the user's own records, one for each watched agent of a mailbox, with the ids of its
watchers. The watch itself is in the log; the steward writes a note again that is missing.
"""

from __future__ import annotations

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..log.stamps import StampFiles

WATCHED = "watched"
_MOST = 1 << 16


class Watched:
    """The notes of the mailbox that a trail belongs to."""

    def __init__(self, trail: StampFiles) -> None:
        self._directory = trail.kept_here(WATCHED)

    def is_watched(self, agent: str) -> bool:
        """Return whether anybody watches an agent."""
        return self._directory is not None and system.exists(system.join(self._directory, agent))

    def by(self, watcher: str) -> list[str]:
        """Return the agents that a session watches."""
        return [name for name in self._names() if watcher in self._watchers(name)]

    def note(self, agent: str, watcher: str) -> None:
        """Note that an agent is about to be watched; the writer of the watch does so before."""
        self._write(agent, [*self._watchers(agent), watcher])

    def settle(self, watchers: Mapping[str, Collection[str]]) -> None:
        """Note that these agents are watched by those, and no others; the caller holds the messages' lock since it
        looked."""
        for agent in self._names():
            if agent not in watchers:
                self._remove(agent)
        for agent, ids in watchers.items():
            if {*self._watchers(agent)} != {*ids}:
                self._write(agent, sorted(ids))

    def _names(self) -> list[str]:
        try:
            return [] if self._directory is None else sorted(system.listdir(self._directory))
        except OSError:
            return []

    def _watchers(self, agent: str) -> list[str]:
        if self._directory is None:
            return []
        try:
            fd = system.open(
                system.join(self._directory, agent),
                system.O_RDONLY | system.O_NOFOLLOW | system.O_NONBLOCK | system.O_CLOEXEC,
            )
        except (OSError, ValueError):
            return []
        try:
            return system.read(fd, _MOST).decode("utf-8", "replace").split()
        except OSError:
            return []
        finally:
            system.close(fd)

    def _write(self, agent: str, words: Sequence[str]) -> None:
        """Replace a note; one that cannot be written costs a watcher time: it hears from the steward."""
        if self._directory is None:
            return
        flags = system.O_WRONLY | system.O_CREAT | system.O_TRUNC | system.O_CLOEXEC | system.O_NOFOLLOW
        try:
            system.make_directory(self._directory)
            fd = system.open(system.join(self._directory, agent), flags | system.O_NONBLOCK, 0o600)
        except (OSError, ValueError):
            return
        try:
            system.write_whole(fd, system.encoded("\n".join(words)))
        except OSError:
            pass
        finally:
            system.close(fd)

    def _remove(self, agent: str) -> None:
        try:
            system.unlink(system.join(self._directory or "", agent))
        except OSError:
            pass
