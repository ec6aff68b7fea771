"""The system calls, from where Python keeps them.

Belongs here: ``posix``, and the few path functions the hot path needs. ``os`` is the same with a layer on top. Its
import costs 1.2 ms, a third of a poll's budget; modules off the hot path use it as usual.
"""

from __future__ import annotations

import posix
from posix import *  # noqa: F403 - this module is their name; ``system.open`` is the system's open, not Python's
from posix import lstat, mkdir, stat  # used below

if not hasattr(posix, "fdatasync"):  # macOS
    from posix import fsync as fdatasync  # noqa: F401

S_IFMT, S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK = 0o170000, 0o100000, 0o040000, 0o010000, 0o140000
"""The bits of ``st_mode`` that tell a file's kind (inode(7))."""


def environment() -> dict[str, str]:
    """Return the environment as text (``os.environ`` would be the first to import ``os``)."""
    return {
        key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for key, value in posix.environ.items()
    }


def join(*names: str) -> str:
    """Return the names as one path; an absolute one replaces all before it, as in ``os.path.join``."""
    path = ""
    for name in names:
        path = name if not path or name.startswith("/") else f"{path.rstrip('/')}/{name}"
    return path


def dirname(path: str) -> str:
    """Return everything before the last slash."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def basename(path: str) -> str:
    """Return everything after the last slash."""
    return path.rpartition("/")[2]


def exists(path: str) -> bool:
    """Return whether anything is at the path, even a broken link."""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def size(path: str) -> int:
    """Return the bytes of the file at the path; 0 for none."""
    try:
        return stat(path).st_size
    except (OSError, ValueError):
        return 0


def is_directory(path: str) -> bool:
    """Return whether the path is a directory, or a link to one."""
    try:
        return stat(path).st_mode & S_IFMT == S_IFDIR
    except (OSError, ValueError):
        return False


def real_directory(path: str) -> str:
    """Return a directory's path without links; the path itself if there is no directory."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    except OSError:
        return path
    try:
        return posix.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # no /proc, as on macOS
        from os.path import realpath

        return realpath(path)
    finally:
        posix.close(fd)


def make_directory(path: str, mode: int = 0o700, parents: int = 0o700) -> None:
    """Make a directory and its missing parents, each with no more rights than these, whatever the umask."""
    try:
        mkdir(path, mode)
    except FileExistsError:
        if not is_directory(path):
            raise
    except FileNotFoundError:
        make_directory(dirname(path), parents, parents)
        make_directory(path, mode, parents)


def sync_directory(path: str) -> None:
    """Make a new or renamed name in a directory durable."""
    fd = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        posix.fsync(fd)
    finally:
        posix.close(fd)


def checksum(data: bytes) -> int:
    """Return a number that changes with any flipped, lost or added byte: the data modulo a prime.

    A CRC would cost the import of ``zlib``, 0.35 ms.
    """
    return (int.from_bytes(data, "little") * 257 + len(data)) % 1_073_741_789
