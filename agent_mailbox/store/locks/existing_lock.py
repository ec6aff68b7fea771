"""The locks on what is there already: a directory, and a file that this process may only read.

Belongs here: what ``lock`` has not, since a command that writes mail never needs it.
"""

from __future__ import annotations

from ..files import system
from ..files.small_files import Storing, open_file
from .lock import FileLock


class DirectoryLock(FileLock):
    """The same lock on an existing directory."""

    def _open(self) -> int:
        with Storing("open", self.path):
            return system.open(self.path, system.O_RDONLY | system.O_DIRECTORY | system.O_CLOEXEC)


class ReadLock(FileLock):
    """The same lock on an existing file that this process may only read: ``flock`` needs no right to write."""

    def _open(self) -> int:
        return open_file(self.path, system.O_RDONLY)
