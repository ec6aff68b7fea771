"""The locks on what is there already: a directory, and a file that this process may only read.

Belongs here: what ``lock`` has not, since a command that writes mail never needs it.
"""

from __future__ import annotations

from ..files import system
from ..files.small_files import open_file, storage_failed
from .lock import FileLock


class DirectoryLock(FileLock):
    """The same lock on an existing directory."""

    def _open(self) -> int:
        try:
            return system.open(self.path, system.O_RDONLY | system.O_DIRECTORY | system.O_CLOEXEC)
        except OSError as error:
            raise storage_failed("open", self.path, error) from None


class ReadLock(FileLock):
    """The same lock on an existing file that this process may only read: ``flock`` needs no right to write."""

    def _open(self) -> int:
        return open_file(self.path, system.O_RDONLY)
