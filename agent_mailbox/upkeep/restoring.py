"""Restore a mailbox from a backup.

Belongs here: the order of steps. ``backup`` knows the file. The mailbox is unpacked under another name, synced,
verified and then renamed. So a kill at any step leaves a whole mailbox or none; a retry takes over the remains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.attachments import DIRECTORY
from ..core.text import typed
from ..errors import Refused
from ..space import space as spaces
from ..store.files import paths, system
from ..store.files.small_files import OpenFile, Storing
from ..store.locks.existing_lock import DirectoryLock
from ..store.log import custody_setup, logs
from ..store.user_state import creation, own_files
from . import backup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .backup import Backup


def restore_backup(file: str, directory: str, environ: Mapping[str, str], *, alone: bool = False) -> Backup:
    """Make ``directory`` a mailbox from a backup, and record it as the user's own like ``init``.

    Raises as ``verify_backup`` does, and ``Refused`` if the directory exists and is not empty, or if a replicator still
    serves the mailbox that was there. Unless ``alone``, it does so for a backup of a machine of a space, too, if the
    directory is not that machine's.
    """
    directory = system.real_path(directory)
    _refuse_used(directory)
    custody_setup.refuse_served(directory, environ)
    parent, name = system.dirname(directory), system.basename(directory)
    aside = system.join(parent, f".{name}.restoring")
    missing = _missing_directories(parent)
    with Storing("restore", directory):
        system.make_directory(parent, parents=0o755)
        if not system.exists(aside):
            system.mkdir(aside, 0o700)
        _refuse_strange(aside)
        with DirectoryLock(aside, 0):
            try:
                found = _unpack_backup(file, aside)
                if found.machine and not alone:
                    _refuse_beside_space(found, directory, environ)
                _refuse_used(directory)
                system.rename(aside, directory)
            except BaseException:
                _remove_remains(aside, missing)
                raise
    custody_setup.begin_again(directory, environ)  # only ``init --adopt`` confirms a restored one
    creation.create(directory, environ)  # makes its name durable, too
    return found


def check_backup(file: str, directory: str) -> None:
    """Raise for a file that is no backup, and then for a directory that is used: that would hide that it is missing."""
    backup.open_backup(file).close()
    _refuse_used(system.real_path(directory))


def _missing_directories(directory: str) -> list[str]:
    """Return the directories on a path that are not there, the innermost first."""
    found = []
    while not system.exists(directory):
        found.append(directory)
        directory = system.dirname(directory)
    return found


def _remove_remains(aside: str, made: Iterable[str]) -> None:
    """Leave nothing of a refused restore: neither what it unpacked, nor the directories made for that."""
    try:
        system.empty(aside)
        for directory in (aside, *made):
            system.rmdir(directory)
    except OSError:
        pass  # another process uses a directory, or took the rest away


def _refuse_used(directory: str) -> None:
    if paths.is_mailbox(directory):
        paths.check(directory)
        hint = f"name another directory; if you just restored this one, run `agent-mailbox init {typed(directory)}`"
        raise Refused(f"the directory is a mailbox already: {directory}", hint, code="exists")
    if system.exists(directory) and not (system.is_directory(directory) and not system.listdir(directory)):
        raise Refused(f"the directory is not empty: {directory}", "name an empty or new directory", code="exists")
    if system.identity(directory) == system.identity("."):
        raise Refused(
            f"the working directory would be replaced: {directory}",
            "run `cd ..`, and name it from there",
            code="exists",
        )


def _refuse_beside_space(found: Backup, directory: str, environ: Mapping[str, str]) -> None:
    """Raise ``Refused`` unless the directory is that of the machine of which this is a backup.

    Elsewhere its sessions would be shown what they read since, and what others claimed."""
    there = spaces.space_of(logs.of_mailbox(directory, 0, environ))
    if there is None or (there.machine, there.space) != (found.machine, found.space):
        raise Refused(
            f"backup is of machine {found.machine} of space {found.space}, which has its mail: {found.file}",
            f"run `agent-mailbox init {typed(directory)}`, and there `agent-mailbox engine join URL --space"
            f" {found.space} --machine {found.machine}`; or, if the space is gone for good, restore it with --alone",
            code="shared",
        )


def _refuse_strange(aside: str) -> None:
    """Raise ``Refused`` unless the path, about to be emptied, is the user's own directory and no link."""
    there = system.lstat(aside)
    if there.st_mode & system.S_IFMT != system.S_IFDIR or there.st_uid != system.geteuid():
        raise Refused(
            f"the path for unpacking is taken: {aside}",
            "move it away, then repeat `agent-mailbox restore`",
            code="exists",
        )


def _unpack_backup(file: str, aside: str) -> Backup:
    """Empty the directory of a killed restore's remains, unpack the backup into it, and sync it."""
    system.empty(aside)
    own_files.hide_from_git(aside)
    for name in (paths.ARCHIVE, paths.HEARTBEATS, DIRECTORY):
        system.mkdir(system.join(aside, name), 0o700)

    def write_member(name: str, chunks: Iterator[bytes]) -> None:
        with OpenFile(_create_file(system.join(aside, name))) as fd:
            for chunk in chunks:
                system.write_whole(fd, chunk)
            system.fsync(fd)

    found = backup.verify_backup(file, write_member)
    for session_id, at in found.heartbeats.items():
        path = system.join(aside, paths.HEARTBEATS, session_id)
        system.close(_create_file(path))
        system.utime(path, ns=(at, at))
    for name in (paths.ARCHIVE, paths.HEARTBEATS, DIRECTORY, ""):
        system.sync_directory(system.join(aside, name))
    return found


def _create_file(path: str) -> int:
    return system.open(
        path, system.O_WRONLY | system.O_CREAT | system.O_EXCL | system.O_NOFOLLOW | system.O_CLOEXEC, 0o600
    )
