"""Marks that a mailbox has tasks or notes, and what of them each session was told: hooks skip both without a mark.

Belongs here: these files among the user's own records. A mailbox without tasks and notes has none of them, and costs a
hook one look for a file. The tasks and notes themselves are in the log.
"""

from __future__ import annotations

from . import system
from .small_files import list_names, read_if_possible, write_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..log.stamps import StampFiles

TASKS, NOTES, TREES = "tasks", "notes", "trees"
"""Those of trees say which sessions came to a session's tree. Among the tasks' are empty files with the names of
sessions that have to be told of a task or a neighbour (``StampFiles.is_offered``)."""
_MOST = 1 << 16
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
        return self._directory is not None and system.exists(self._directory)

    def note_use(self) -> None:
        """Note that somebody is about to; one that cannot be written costs hooks their lines."""
        try:
            if self._directory is not None:
                system.make_directory(self._directory)
        except OSError:
            pass

    def read_told(self, name: str) -> list[str]:
        """Return the words that were kept under a name."""
        data = read_if_possible(system.join(self._directory or "", name), _MOST)
        return (data or b"").decode("utf-8", "replace").split()

    def keep_told(self, name: str, words: list[str]) -> None:
        """Keep words under a name; those that cannot be kept are told again."""
        if self._directory is not None:
            write_if_possible(system.join(self._directory, name), system.encoded("\n".join(words)))

    def forget(self, name: str) -> None:
        """Forget what was kept under a name."""
        try:
            system.unlink(system.join(self._directory or "", name))
        except OSError:
            pass

    def sweep(self, is_dead: Callable[[str], bool], now: int) -> None:
        """Remove what was kept for sessions that are dead, and what was told long ago; ``now`` in ms."""
        for name in list_names(self._directory or ""):
            path = system.join(self._directory or "", name)
            session_id = name.partition("-")[2] if name.startswith(".told-") else "" if name.startswith(".") else name
            try:
                if (session_id and is_dead(session_id)) or is_past(path, now):
                    system.unlink(path)
            except OSError:
                pass  # another process was first

    def has(self, name: str) -> bool:
        """Return whether anything was kept under a name."""
        return self._directory is not None and system.exists(system.join(self._directory, name))

    def is_first(self, name: str) -> bool:
        """Return whether nobody asked this before under the name: of several processes one is the first."""
        return self._directory is not None and write_if_possible(system.join(self._directory, name), b"", system.O_EXCL)
