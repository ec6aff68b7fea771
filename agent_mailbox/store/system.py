"""The system calls, from where Python keeps them.

Belongs here: ``posix``, and the few path functions the hot path needs. ``os`` is the same with a layer on top whose
import costs 1.2 ms, a third of what a poll may cost; off the hot path it is used as anywhere.
"""

from __future__ import annotations

import posix
from posix import *  # noqa: F403 - this module is their name; ``system.open`` is the system's open, not Python's
from posix import lstat, mkdir, stat  # the ones used here

if not hasattr(posix, "fdatasync"):  # macOS
    from posix import fsync as fdatasync  # noqa: F401

S_IFMT, S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK = 0o170000, 0o100000, 0o040000, 0o010000, 0o140000
"""What ``st_mode`` says of a file's kind (inode(7))."""


def environment() -> dict[str, str]:
    """The environment as text (``os.environ`` would be the first to import ``os``)."""
    return {
        key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for key, value in posix.environ.items()
    }


def join(*names: str) -> str:
    """The names as one path; an absolute one starts anew, as ``os.path.join`` has it."""
    path = ""
    for name in names:
        path = name if not path or name.startswith("/") else f"{path.rstrip('/')}/{name}"
    return path


def dirname(path: str) -> str:
    """Everything before the last slash."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def basename(path: str) -> str:
    """Everything after the last slash."""
    return path.rpartition("/")[2]


def exists(path: str) -> bool:
    """Is there something at the path, be it a broken link?"""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def size(path: str) -> int:
    """Bytes of the file at the path; 0 for none."""
    try:
        return stat(path).st_size
    except (OSError, ValueError):
        return 0


def is_directory(path: str) -> bool:
    """Is there a directory at the path, or a link to one?"""
    try:
        return stat(path).st_mode & S_IFMT == S_IFDIR
    except (OSError, ValueError):
        return False


def real_directory(path: str) -> str:
    """Return a directory's path without links; the path itself where there is none."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    except OSError:
        return path
    try:
        return posix.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # no such file system, as on macOS
        from os.path import realpath

        return realpath(path)
    finally:
        posix.close(fd)


def make_directory(path: str) -> None:
    """Make a directory and those above it, each 0700, where they are missing."""
    try:
        mkdir(path, 0o700)
    except FileExistsError:
        if not is_directory(path):
            raise
    except FileNotFoundError:
        make_directory(dirname(path))
        mkdir(path, 0o700)


def sync_directory(path: str) -> None:
    """Make a new or renamed name in a directory durable."""
    fd = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        posix.fsync(fd)
    finally:
        posix.close(fd)


def checksum(data: bytes) -> int:
    """A number that changes with any flipped, lost or added byte: the data modulo a prime. (A CRC would take importing
    ``zlib``, 0.35 ms.)"""
    return (int.from_bytes(data, "little") * 257 + len(data)) % 1_073_741_789
