"""Marks that a mailbox has tasks, notes or watches, and what of them each session was told: hooks skip all without a
mark.

Belongs here: these files among the user's own records. A mailbox without tasks, notes and watches has none of them, and
costs a hook one look for a file. The tasks, notes and watches themselves are in the log.
"""

from __future__ import annotations

from . import system
from .small_files import list_names, read_if_possible, remove_if_possible, write_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..log.stamps import StampFiles

TASKS, NOTES, TREES, WATCHED = "tasks", "notes", "trees", "watched"
"""Those of trees say which sessions came to a session's tree. Among the tasks' are empty files with the names of
sessions that have to be told of a task or a neighbour (``StampFiles.is_offered``). The names of those watched are
agents, and the words below each its watchers, for the writers who would tell of an event. The steward writes one of
these again that is missing."""
LONG = 30 * 24 * 3600 * 1000
"""Milliseconds after which nobody needs a file of these: what it told is told once more, if it is still so."""


def is_past(path: str, now: int) -> bool:
    """Return whether a file was last written long ago; raise ``OSError`` if there is none."""
    return now - system.lstat(path).st_mtime_ns // 1_000_000 >= LONG


class Board:
    """The marks of one kind, of the mailbox that these stamps belong to."""

    def __init__(self, stamp_files: StampFiles, kind: str) -> None:
        self._directory = stamp_files.kept_here(kind)

    def is_used(self) -> bool:
        """Return whether anybody ever put something of this kind into the mailbox."""
        return system.exists(self._directory)

    def note_use(self) -> None:
        """Note that somebody is about to; one that cannot be written costs hooks their lines."""
        try:
            system.make_directory(self._directory)
        except OSError:
            pass

    def read_told(self, name: str) -> list[str]:
        """Return the words that were kept under a name."""
        return (read_if_possible(system.join(self._directory, name)) or b"").decode("utf-8", "replace").split()

    def keep_told(self, name: str, words: Sequence[str]) -> None:
        """Keep words under a name; those that cannot be kept are told again, or later by the steward."""
        write_if_possible(system.join(self._directory, name), system.encoded("\n".join(words)))

    def forget(self, name: str) -> None:
        """Forget what was kept under a name."""
        remove_if_possible(system.join(self._directory, name))

    def sweep(self, is_dead: Callable[[str], bool], now: int) -> None:
        """Remove what was kept for sessions that are dead, and what was told long ago; ``now`` in ms."""
        for name in list_names(self._directory):
            path = system.join(self._directory, name)
            session_id = name.partition("-")[2] if name.startswith(".told-") else "" if name.startswith(".") else name
            try:
                if (session_id and is_dead(session_id)) or is_past(path, now):
                    system.unlink(path)
            except OSError:
                pass  # another process was first

    def has(self, name: str) -> bool:
        """Return whether anything was kept under a name."""
        return system.exists(system.join(self._directory, name))

    def is_first(self, name: str) -> bool:
        """Return whether nobody asked this before under the name: of several processes one is the first."""
        return write_if_possible(system.join(self._directory, name), b"", system.O_EXCL)

    def find_names(self, word: str) -> list[str]:
        """Return the names under which a word was kept."""
        return [name for name in list_names(self._directory) if word in self.read_told(name)]

    def add_told(self, name: str, word: str) -> None:
        """Keep one more word under a name. No power failure takes a new name away."""
        is_new = not self.has(name)
        self.keep_told(name, [*self.read_told(name), word])
        if is_new:
            try:
                system.sync_way(self._directory)
            except OSError:
                pass  # as for one that cannot be kept

    def settle_told(self, told: Mapping[str, Collection[str]]) -> None:
        """Keep these words under these names, and no others."""
        for name in list_names(self._directory):
            if name not in told:
                self.forget(name)
        for name, words in told.items():
            if {*self.read_told(name)} != {*words}:
                self.keep_told(name, sorted(words))
