"""Taking away a mailbox that nobody used yet.

Belongs here: that alone. Whatever holds mail or sessions is for the person to delete.
"""

from __future__ import annotations

import os
import shutil

from ..store.files import paths
from ..store.files.small_files import storage_failed
from ..store.locks.lock import FileLock

_REMADE = (paths.CACHE, paths.GITIGNORE)


def is_unused(directory: str) -> bool:
    """Return whether a mailbox holds nothing but what ``init`` makes: no mail, no session, no settings."""
    below = (path for name in os.listdir(directory) if name not in _REMADE for path in _files(directory, name))
    return not any(map(os.path.getsize, below))


def _files(directory: str, name: str) -> list[str]:
    path = os.path.join(directory, name)
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(above, one) for above, _, names in os.walk(path) for one in names]


def remove_unused(directory: str) -> bool:
    """Remove a mailbox unless it is used; return whether it went.

    Under the lock of its messages, and by one renaming: a ``send`` beside it is in a mailbox that stays, or it fails.
    """
    aside = f"{directory}.removed"
    try:
        with FileLock(os.path.join(directory, paths.MESSAGES)):
            if not is_unused(directory):
                return False
            os.rename(directory, aside)
        shutil.rmtree(aside)
    except OSError as error:
        raise storage_failed("remove", directory, error) from None
    return True
