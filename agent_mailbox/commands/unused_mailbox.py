"""Taking away a mailbox that nobody used yet.

Belongs here: that alone. Whatever holds mail or sessions is for the person to delete.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from ..store.files import paths, system
from ..store.files.small_files import storage_failed
from ..store.locks.lock import FileLock
from ..store.user_state import own_files


def is_unused(directory: str) -> bool:
    """Return whether a mailbox holds nothing but what ``init`` makes: no mail, no session, no settings. Beside a
    project's files ``config.toml`` may be the project's, and stays."""
    ours = own_files.sure_paths(directory)
    if not own_files.is_shared(directory) and paths.CONFIG in os.listdir(directory):
        ours.append(os.path.join(directory, paths.CONFIG))
    remade = (os.path.join(directory, paths.CACHE), os.path.join(directory, paths.GITIGNORE))
    return not any(os.lstat(file).st_size for path in ours if not path.startswith(remade) for file in _files(path))


def _files(path: str) -> list[str]:
    if not system.is_own_directory(path):
        return [path]
    return [os.path.join(above, name) for above, names in system.tree(path) for name in names]


def remove_unused(directory: str) -> bool:
    """Remove a mailbox unless it is used; return whether it went. A project's files beside it stay.

    Under the lock of its messages, and by a renaming: a ``send`` beside it is in a mailbox that stays, or it fails.
    """
    try:
        with FileLock(os.path.join(directory, paths.MESSAGES)):
            if not is_unused(directory):
                return False
            aside = _put_aside(directory)
        shutil.rmtree(aside)
    except OSError as error:
        raise storage_failed("remove", directory, error) from None
    return True


def _put_aside(directory: str) -> str:
    """Move a mailbox out of its place; return where to. A directory stays that others use: a project, a shell."""
    if not own_files.is_shared(directory) and not f"{os.getcwd()}/".startswith(f"{directory}/"):
        aside = f"{directory}.removed"
        os.rename(directory, aside)
        return aside
    ours = own_files.sure_paths(directory)
    aside = tempfile.mkdtemp("", f"{paths.MESSAGES}.removed-", directory)
    for number, path in enumerate(ours):
        os.rename(path, os.path.join(aside, str(number)))
    return aside
