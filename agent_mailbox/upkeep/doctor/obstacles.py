"""Obstacles to writing a file or a directory, found by trying, and the command that removes each.

Belongs here: trying as the writers do, without a byte written or a name made, and the words for each failure. The
steward asks before it moves anything, the doctor asks about everything.
"""

from __future__ import annotations

import errno

from ...core.records import Record
from ...core.text import typed
from ...store.files import mounts, paths, system
from ...store.files.small_files import OpenFile

FULL = (errno.ENOSPC, errno.EDQUOT)
_WRITES = system.O_WRONLY | system.O_NOFOLLOW | system.O_NONBLOCK | system.O_CLOEXEC
_PROBE = ".agent-mailbox-doctor-"
"""The beginning of the name of a file that is made and removed at once, where the system makes none without a name."""
_AWAY = ".away"
"""The end of a name that the person moved aside. It is in nobody's way, though all names of a directory are tried."""
_KINDS = {
    system.S_IFDIR: "a directory is",
    system.S_IFIFO: "a FIFO is",
    system.S_IFSOCK: "a socket is",
    system.S_IFLNK: "a symbolic link is",
}


class Obstacle(Record):
    """Why a path cannot be written, and what to do: a sentence's beginning each.

    ``passes``: it may pass without that, as a disk gets room again.
    """

    path: str
    why: str
    repair: str
    passes: bool = False


def to_append(path: str) -> Obstacle | None:
    """Return what keeps lines from being appended to a file; None for a missing one."""
    return _to_open(path, _WRITES | system.O_APPEND)


def to_write(path: str) -> Obstacle | None:
    """Return what keeps a file from being written anywhere, or replaced; None for a missing one."""
    return _to_open(path, _WRITES)


def to_replace(path: str) -> Obstacle | None:
    """Return what keeps a fresh file from taking the place of one; None if nothing does."""
    if (found := to_write(path) or to_create(system.dirname(path))) is not None:
        return found
    if mounts.point(path) == system.real_path(path):
        return Obstacle(path, "a mount point of its own, which no rename replaces", "mount its whole directory instead")
    return None


def to_create(directory: str) -> Obstacle | None:
    """Return what keeps files from being made in a directory, as large as one page; None for a missing one."""
    try:
        mode = system.stat(directory).st_mode
    except (FileNotFoundError, NotADirectoryError):
        is_link = paths.is_there(directory)
        return _advise_moving(directory, "a link to nothing is in the place of this directory") if is_link else None
    except OSError as error:
        return _of_error(directory, error)
    if mode & system.S_IFMT != system.S_IFDIR:
        return _advise_moving(directory, "a file is in the place of this directory")
    if not mode & 0o200:
        return _of_mode(directory, mode)
    try:
        _try_making_file(directory)
    except OSError as error:
        return _of_error(directory, error)
    return _of_mark(directory)


def to_own(directory: str) -> Obstacle | None:
    """Return what makes a directory another's, whose files are not ours to remove: a link in its place."""
    try:
        is_link = system.lstat(directory).st_mode & system.S_IFMT == system.S_IFLNK and system.is_directory(directory)
    except OSError:
        return None
    return _advise_moving(directory, "a symbolic link is in the place of this directory") if is_link else None


def _try_making_file(directory: str) -> None:
    """Make a file, and leave none. Only a name of its own is made and removed, whoever else tries or left one."""
    try:
        fd = system.open(directory, (_WRITES & ~system.O_NOFOLLOW) | getattr(system, "O_TMPFILE", 0), 0o600)
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT):
            raise
        path = system.join(directory, f"{_PROBE}{system.urandom(8).hex()}~")
        fd = system.open(path, _WRITES | system.O_CREAT | system.O_EXCL, 0o600)
        system.unlink(path)
    with OpenFile(fd):
        system.write_whole(fd, bytes(4096))


def _to_open(path: str, flags: int) -> Obstacle | None:
    try:
        mode = system.lstat(path).st_mode
        if (kind := _KINDS.get(mode & system.S_IFMT)) is not None:
            if path.endswith(_AWAY):
                return None
            return _advise_moving(path, f"{kind} in the place of this file")
        if not mode & 0o200:
            return _of_mode(path, mode)
        system.close(system.open(path, flags))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _of_error(path, error)
    return None


def _advise_moving(path: str, why: str) -> Obstacle:
    return Obstacle(path, why, f"run `mv {typed(path)} {typed(path + _AWAY)}`")


def _of_mode(path: str, mode: int) -> Obstacle:
    return Obstacle(path, f"read-only: mode {mode & 0o7777:04o}", f"run `chmod -R u+w {typed(path)}`")


def _of_mark(path: str) -> Obstacle | None:
    """Return a mark of chattr(1) as an obstacle."""
    marks = system.marks(path)
    if not marks:
        return None
    why = "immutable (chattr +i)" if "i" in marks else "append-only (chattr +a)"
    return Obstacle(path, why, f"run `sudo chattr -{marks} {typed(path)}`")


def _of_error(path: str, error: OSError) -> Obstacle:
    """Return the obstacle that a failed call met at a path."""
    if error.errno == errno.EPERM and (found := _of_mark(path)) is not None:
        return found
    if error.errno == errno.EROFS:
        point = mounts.point(path)
        return Obstacle(path, "on a read-only file system", f"run `sudo mount -o remount,rw {typed(point)}`")
    if error.errno in FULL:
        return _advise_freeing(path, error)
    if error.errno == errno.EACCES and (owner := _owner_of(path)) not in (None, system.geteuid()):
        return Obstacle(path, f"another user's (uid {owner})", f"run `sudo chown -R {system.geteuid()} {typed(path)}`")
    why = f"not to be opened ({error.strerror})"
    return Obstacle(path, why, f"look at it with `ls -ld {typed(path)}`")


def _owner_of(path: str) -> int | None:
    try:
        return system.lstat(path).st_uid
    except OSError:
        return None


def _advise_freeing(path: str, error: OSError) -> Obstacle:
    if error.errno == errno.EDQUOT:
        return Obstacle(path, "without room: your quota is used up", "free some space; `quota -s` shows how much", True)
    place = typed(mounts.point(path) or path)
    try:
        lacks_inodes = system.statvfs(path).f_favail == 0
    except OSError:
        lacks_inodes = False
    if lacks_inodes:
        why = "without room for one more file: its file system has no inode left"
        return Obstacle(path, why, f"remove some files there; `df -i {place}` counts them", True)
    why = "without room: its file system is full, and no line can be added"
    return Obstacle(path, why, f"free some space there; `df -h {place}` shows how much", True)
