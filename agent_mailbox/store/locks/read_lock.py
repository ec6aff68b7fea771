"""The lock on a file that this process may only read.

Belongs here: what ``lock`` has not, since a command that writes never needs it.
"""

from __future__ import annotations

from ..files import system
from ..files.small_files import open_file
from .lock import FileLock


class ReadLock(FileLock):
    """The same lock on an existing file that this process may only read: ``flock`` needs no right to write."""

    def _open(self) -> int:
        return open_file(self.path, system.O_RDONLY)
