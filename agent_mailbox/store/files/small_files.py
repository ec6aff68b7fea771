"""Small files: those that are replaced as a whole, durably, and those of which only the time counts.

Belongs here: writing one. Each owner reads its own.
"""

from __future__ import annotations

from . import paths, system


def replace_file(path: str, data: bytes) -> None:
    """Replace a small file, atomically and durably."""
    aside, flags = f"{path}~", system.O_WRONLY | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW
    try:
        try:
            fd = system.open(aside, flags | system.O_EXCL, 0o600)
        except FileExistsError:  # another writes it at this moment, or died writing it
            aside = f"{path}.{system.getpid()}~"
            fd = system.open(aside, flags | system.O_TRUNC, 0o600)
        try:
            system.write_whole(fd, data)
            system.fsync(fd)
        finally:
            system.close(fd)
        system.rename(aside, path)
        system.sync_directory(system.dirname(path))
    except OSError as error:
        raise paths.storage_failed("write", path, error) from None


def remove_file(path: str) -> None:
    """Remove a small file, if there is one."""
    try:
        system.unlink(path)
    except FileNotFoundError:
        pass


def note_time(path: str, now: int) -> None:
    """Give an empty derived file a time (ms), which is all it says; if that fails, a later look just knows less."""
    try:
        system.make_directory(system.dirname(path))
        system.close(system.open(path, system.O_WRONLY | system.O_CREAT | system.O_NOFOLLOW | system.O_CLOEXEC, 0o600))
        system.utime(path, ns=(now * 1_000_000, now * 1_000_000))
    except OSError:
        pass
