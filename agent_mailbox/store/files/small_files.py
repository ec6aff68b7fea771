"""Small files: those that are read, made, replaced or touched as a whole.

Belongs here: opening one, and what follows if that fails. A failure is ``StorageFailed`` for what decides, and silent
for what is derived. No file of ours is opened through a link, and none is waited for.

A derived file has a seal. It may be torn, stale, forged or missing, and is never the truth: one that fails its check
counts as missing. A ``Mark`` tells whether a log is still the one that a file was derived from. Its checksum tells
whether a log holds what it held up to a position.
"""

from __future__ import annotations

from ...core.text import typed
from ...errors import AGAIN, StorageFailed
from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ANY = system.O_CLOEXEC | system.O_NONBLOCK
_OURS = _ANY | system.O_NOFOLLOW
_CHUNK = 1 << 16
_MOST = 1 << 26
"""Bytes of a small file: what is larger is no file of ours."""
SECOND = 1_000_000_000
VERSION = b"agent-mailbox 11"
"""Changes with any format below; a file of another version is rebuilt, never migrated."""
_HEAD = 64
"""Bytes that hold the first line of a derived file: the version, the length of what follows, its seal."""

TAIL = 512
"""Bytes before a position that are compared: inodes are reused, and a restored file may have the same size."""
Mark = tuple[int, int, int]
"""(inode, position, checksum of the ``TAIL`` bytes before the position) of a log read so far."""
NOWHERE: Mark = (0, 0, 0)


def storage_failed(action: str, path: str, error: OSError) -> StorageFailed:
    """Return the error for a failed system call on a file."""
    reason = error.strerror or str(error)
    hints = {
        "ELOOP": "move the target here: it is a symbolic link, and mailbox files must be regular files",
        "EISDIR": "move away the directory that is in the place of this file",
        "EACCES": "check its owner and mode, and its directory's (in a mailbox: files 0600, directories 0700)",
        "EPERM": f"if `lsattr {typed(path)}` shows i or a, run `sudo chattr -ia {typed(path)}`",
        "ENXIO": "move it away: it is no regular file",
        "EROFS": "make the file system writable: it is read-only",
        "ENOSPC": f"free some space{AGAIN}",
        "ENOENT": "look whether its directory is still there, and takes files",
        "EEXIST": "a file is in the place of a directory: name another path, or move that file away",
        "ENOTDIR": "a file is in the place of a directory: name another path, or move that file away",
        "EDQUOT": f"free some space{AGAIN}",
        "ENAMETOOLONG": "name a shorter path",
        "EMFILE": "let programs open more files: `ulimit -n 4096`, then run the command again",
        "EFBIG": "let files be larger: `ulimit -f unlimited`, then run the command again",
    }
    import errno  # only to name a failure

    hint = hints.get(errno.errorcode.get(error.errno or 0, ""), "see whether the disk is well: `agent-mailbox doctor`")
    return StorageFailed(f"cannot {action} {path}: {reason}", hint)


class Storing:
    """Work on files in a ``with`` block: what the system refuses is told as ``StorageFailed``."""

    def __init__(self, action: str, path: str) -> None:
        self._work = action, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise storage_failed(*self._work, error) from None


class OpenFile:
    """An open file's descriptor, closed at the end of a ``with`` block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        system.close(self._fd)


def open_file(path: str, flags: int, *, through_links: bool = False) -> int:
    """Return a descriptor of a regular file, made 0600 if ``flags`` say so; never a FIFO, and through no link of ours.

    Raise ``FileNotFoundError`` as it is, everything else as ``StorageFailed``.
    """
    try:
        fd = system.open(path, flags | (_ANY if through_links else _OURS), 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_failed("open", path, error) from None
    if system.fstat(fd).st_mode & system.S_IFMT != system.S_IFREG:
        system.close(fd)
        raise StorageFailed(f"{path} is not a regular file", "move it away")
    return fd


def read_file(path: str, most: int = _MOST, *, through_links: bool = False) -> bytes | None:
    """Return the bytes of a small file; None if there is no file. Raise ``StorageFailed``, also for more than ``most``
    bytes."""
    try:
        fd = open_file(path, system.O_RDONLY, through_links=through_links)
    except FileNotFoundError:
        return None
    try:
        data = _read(fd, most + 1)
    except OSError as error:
        raise storage_failed("read", path, error) from None
    finally:
        system.close(fd)
    if len(data) > most:
        raise storage_failed("read", path, OSError(0, f"it has more than {most} bytes"))
    return data


def read_if_possible(path: str, most: int = _MOST, *, through_links: bool = False) -> bytes | None:
    """Return the bytes of a file, some ``most`` at least; None if it cannot be read."""
    try:
        fd = system.open(path, system.O_RDONLY | (_ANY if through_links else _OURS))
    except (OSError, ValueError):
        return None
    try:
        return _read(fd, most)
    except OSError:
        return None
    finally:
        system.close(fd)


def _read(fd: int, most: int) -> bytes:
    parts = [system.read(fd, _CHUNK)]
    while parts[-1] and most > _CHUNK * (len(parts) - 1) + len(parts[-1]):
        parts.append(system.read(fd, _CHUNK))
    return b"".join(parts)


def list_names(directory: str) -> list[str]:
    """Return the names in a directory, sorted; none if it cannot be read."""
    try:
        return sorted(system.listdir(directory))
    except (OSError, ValueError):
        return []


def names_in(directory: str) -> list[str]:
    """Return the same; raise ``StorageFailed`` if it is there and cannot be read."""
    try:
        return sorted(system.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_failed("look through", directory, error) from None


def replace_file(path: str, data: bytes, *, durable: bool = True) -> None:
    """Replace a small file as a whole; raise ``StorageFailed``. ``durable``: a power failure does not bring it back."""
    aside, flags = f"{path}~", system.O_WRONLY | system.O_CREAT | system.O_CLOEXEC | system.O_NOFOLLOW
    with Storing("write", path):
        try:
            fd = system.open(aside, flags | system.O_EXCL, 0o600)
        except FileExistsError:  # another writes it at this moment, or died writing it
            aside = f"{path}.{system.getpid()}~"
            fd = system.open(aside, flags | system.O_TRUNC, 0o600)
        with OpenFile(fd):
            system.write_whole(fd, data)
            if durable:
                system.fsync(fd)
        system.rename(aside, path)
        if durable:
            system.sync_directory(system.dirname(path))


def make_file(path: str, data: bytes) -> bool:
    """Make a file, durably; return False if anything is there already. Raise ``StorageFailed``."""
    try:
        flags = system.O_WRONLY | system.O_CREAT | system.O_EXCL | system.O_CLOEXEC
        with OpenFile(system.open(path, flags, 0o600)) as fd:
            system.write_whole(fd, data)
            system.fsync(fd)
    except FileExistsError:
        return False
    except OSError as error:
        raise storage_failed("write", path, error) from None
    return True


def make_whole_file(path: str, data: bytes) -> None:
    """Make a file that nobody ever sees in part, durably, if there is none; of two concurrent calls, one makes it."""
    aside = f"{path}.{system.urandom(4).hex()}"  # a killed process may have had our number
    with Storing("make", path):
        make_file(aside, data)
        try:
            system.link(aside, path)
        except FileExistsError:
            pass
        system.unlink(aside)
        system.sync_directory(system.dirname(path))


def write_if_possible(path: str, data: bytes, how: int = system.O_TRUNC) -> bool:
    """Write a small derived file in its place; return whether that was possible. ``how``: with ``O_EXCL`` only if there
    is none."""
    try:
        fd = _made(path, how)
        try:
            system.write_whole(fd, data)
        finally:
            system.close(fd)
    except (OSError, ValueError):
        return False
    return True


def _made(path: str, how: int) -> int:
    """Return a descriptor to write a derived file, in a directory that is made if it is missing."""
    flags = system.O_WRONLY | system.O_CREAT | _OURS | how
    try:
        return system.open(path, flags, 0o600)
    except FileNotFoundError:
        system.make_directory(system.dirname(path))
        return system.open(path, flags, 0o600)


def remove_file(path: str) -> None:
    """Remove a small file, if there is one."""
    try:
        system.unlink(path)
    except FileNotFoundError:
        pass


def remove_if_possible(path: str) -> None:
    """Remove a small file, if it can be."""
    try:
        system.unlink(path)
    except (OSError, ValueError):
        pass


def set_time(path: str, time: int) -> None:
    """Give a small file a time (ns); without that it counts for less."""
    try:
        system.utime(path, ns=(time, time), follow_symlinks=False)
    except (OSError, OverflowError):
        pass


def note_time(path: str, now: int, said: bytes = b"") -> None:
    """Give a derived file a time (ms), mostly all that it says; if that fails, a later look just knows less."""
    if write_if_possible(path, said):
        set_time(path, now * 1_000_000)


def noted_age(path: str, now: int) -> int | None:
    """Return how long ago (ms) ``note_time`` gave a file its time, less than 0 for a time to come; None: no file."""
    time = time_of(path)
    return None if time is None else now - time // 1_000_000


def time_of(path: str) -> int | None:
    """Return the time (ns) of a file's last change, or the one that ``set_time`` gave it; None: no file."""
    try:
        return system.stat(path).st_mtime_ns
    except OSError:
        return None


# -- derived files, and the logs that they are of --------------------------------------------------------------------


def tail_checksum(fd: int, end: int) -> int:
    """Return the checksum of the bytes before a position of an open log."""
    start = max(0, end - TAIL)
    return checksum(system.pread(fd, end - start, start))


def checksum(data: bytes) -> int:
    """Return a number that changes with any flipped, lost or added byte: the data modulo a prime.

    A CRC would cost the import of ``zlib``, 0.35 ms.
    """
    return (int.from_bytes(data, "little") * 257 + len(data)) % 1_073_741_789


def mark_log(fd: int, position: int, inode: int | None = None) -> Mark:
    """Return the mark of an open log at a position; ``inode`` is the log's, if the caller knows it."""
    return system.fstat(fd).st_ino if inode is None else inode, position, tail_checksum(fd, position)


def holds_mark(fd: int | None, at: Sequence[int], inode: int | None = None) -> bool:
    """Return whether the mark was made of the open log (None: no file), unchanged up to the mark's position."""
    return at[1] == 0 or (fd is not None and tuple(at) == mark_log(fd, at[1], inode))


def load_derived(path: str) -> bytes | None:
    """Return what ``save_derived`` wrote, or None if the path holds nothing sound.

    The file's time must be the seal before and after the read. Then nobody wrote in between, so the beginning and the
    end are of one content. A file that is older than the machine's start counts for nothing. It was never synced: a
    power failure may have left its time and its beginning alone.
    """
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW | system.O_NONBLOCK)
    except OSError:
        return None
    try:
        there = system.fstat(fd)
        if there.st_ctime_ns < system.booted():
            return None
        head, _, _ = system.pread(fd, _HEAD, 0).partition(b"\n")
        size = head[len(VERSION) + 1 :].partition(b" ")[0]
        # A read of its own, for the body may be long; the rest of a longer one may follow it.
        body = system.pread(fd, min(int(size), there.st_size), len(head) + 1) if size.isdigit() else b""
        if system.fstat(fd).st_mtime_ns != there.st_mtime_ns:
            return None
    except OSError:
        return None
    finally:
        system.close(fd)
    return body if head == _head(len(body), there.st_mtime_ns // SECOND) else None


def save_derived(path: str, body: bytes) -> None:
    """Write a derived file; a failure costs time only.

    The file holds a random number and has it as its modification time. Any other write, or a writer's death, breaks the
    seal; a checksum would cost as much as reading the file. The file is written in place: a rename costs 0.7 ms, since
    file systems then write the new file out at once. It is not truncated: of two writers at once, one would cut what
    the other sealed.
    """
    seal = int.from_bytes(system.urandom(4), "big") >> 1
    data = _head(len(body), seal) + b"\n" + body
    try:
        fd = _made(path, 0)
        try:
            if system.write(fd, data) == len(data):  # else the disk is nearly full: the file stays unsealed
                system.utime(fd, ns=(seal * SECOND, seal * SECOND))
        finally:
            system.close(fd)
    except OSError:
        pass


def _head(size: int, seal: int) -> bytes:
    return b"%s %d %d" % (VERSION, size, seal)
