"""The simulated system calls: what each does to the disk, the locks and the clock.

Belongs here: the calls that ``agent_mailbox.store.system`` names, as one process makes them. Must not decide who goes
on and what goes wrong (``world``): a call runs at once and whole.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
from typing import TYPE_CHECKING, Any

from portalocker import LockException

from tests.simulation.disk import Disk, Inode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulation.process import Process
    from tests.simulation.world import World

EXCLUSIVE, SHARED, UNLOCK, NONBLOCK = 2, 1, 8, 4
"""``LOCK_EX``, ``LOCK_SH``, ``LOCK_UN``, ``LOCK_NB`` (flock(2))."""


LOCKED = 400
"""The calls for which a file system without steady locks has some, and then has none."""


class OpenFile:
    """An open file description."""

    __slots__ = ("appends", "failures", "inode", "path", "position", "reads", "ready", "watched", "writes")

    def __init__(self, inode: Inode | None, path: str, flags: int) -> None:
        self.inode = inode
        self.path = path
        self.position = 0
        self.appends = bool(flags & os.O_APPEND)
        self.writes = flags & os.O_ACCMODE != os.O_RDONLY
        self.reads = flags & os.O_ACCMODE != os.O_WRONLY
        self.failures = inode.failures if inode is not None else 0
        """The failed syncs of the file that were told here, or came before it was opened."""
        self.ready = False
        """Of a watch: has something changed?"""
        self.watched: list[Inode] = []


class Status:
    """What ``stat`` tells."""

    __slots__ = ("st_ctime_ns", "st_dev", "st_ino", "st_mode", "st_mtime_ns", "st_nlink", "st_size", "st_uid")

    def __init__(self, inode: Inode) -> None:
        self.st_ino = inode.number
        self.st_dev = 1
        self.st_mode = inode.st_mode
        self.st_size = len(inode.data)
        self.st_mtime_ns = inode.mtime
        self.st_ctime_ns = inode.ctime
        self.st_uid = 1000
        self.st_nlink = 1

    def __repr__(self) -> str:
        return f"inode {self.st_ino}, {self.st_size} bytes"

    @property
    def st_mtime(self) -> float:
        """The time in seconds."""
        return self.st_mtime_ns / 1e9


def failed(number: int, path: object = None) -> OSError:
    """The error that a system call would raise."""
    return OSError(number, os.strerror(number), path)


class Kernel:
    """The system calls on one disk. Every method gets the calling process first."""

    def __init__(self, world: World, disk: Disk) -> None:
        self.world = world
        self.disk = disk

    # -- paths --------------------------------------------------------------------------------------------------------

    def _parent(self, path: str | bytes) -> tuple[Inode, str]:
        text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
        names = [name for name in text.split("/") if name and name != "."]
        if "\0" in text:
            raise ValueError("embedded null byte")
        if not names:
            return self.disk.root, "."
        where = self.disk.root
        for name in names[:-1]:
            if not where.is_directory:
                raise failed(errno.ENOTDIR, path)
            there = where.entries.get(name)
            if there is None:
                raise failed(errno.ENOENT, path)
            where = there
        if not where.is_directory:
            raise failed(errno.ENOTDIR, path)
        return where, names[-1]

    def _way(self, path: str) -> list[Inode]:
        """The directories above the last name of a path."""
        names = [name for name in path.split("/") if name and name != "."]
        return [self.look_up("/".join(names[:depth])) for depth in range(len(names))]

    def look_up(self, path: str | bytes) -> Inode:
        """The file or directory at a path."""
        where, name = self._parent(path)
        found = where if name == "." else where.entries.get(name)
        if found is None:
            raise failed(errno.ENOENT, path)
        return found

    def _changed(self, directory: Inode) -> None:
        directory.mtime = self.disk.tick(self.world.wall())
        self._wake(directory)

    def _wake(self, inode: Inode) -> None:
        for watch in inode.watchers:
            watch.ready = True  # type: ignore[attr-defined]

    def _file(self, process: Process, fd: int) -> OpenFile:
        found = process.files.get(fd)
        if found is None:
            raise failed(errno.EBADF)
        return found

    def _content(self, process: Process, fd: int, *, to: str) -> tuple[OpenFile, Inode]:
        """An open file and its inode, to ``read`` or to ``write``."""
        file = self._file(process, fd)
        if file.inode is None or not (file.reads if to == "read" else file.writes):
            raise failed(errno.EBADF)
        if file.inode.is_directory:
            raise failed(errno.EISDIR)
        return file, file.inode

    # -- opening and closing ------------------------------------------------------------------------------------------

    def open(self, process: Process, path: str, flags: int, mode: int = 0o777) -> int:
        if path.startswith("/proc/"):
            return process.install(self._told(path, flags))
        where, name = self._parent(path)
        inode = where if name == "." else where.entries.get(name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise failed(errno.ENOENT, path)
            if self.disk.full:
                raise failed(errno.ENOSPC, path)
            inode = self.disk.make(self.world.wall(), mode & 0o777, is_directory=False)
            self.disk.change((where, name, inode))
            self._changed(where)
            self.world.appeared(path)
        elif flags & os.O_CREAT and flags & os.O_EXCL:
            raise failed(errno.EEXIST, path)
        elif inode.is_directory and flags & os.O_ACCMODE != os.O_RDONLY:
            raise failed(errno.EISDIR, path)
        elif flags & os.O_DIRECTORY and not inode.is_directory:
            raise failed(errno.ENOTDIR, path)
        if flags & os.O_TRUNC and not inode.is_directory:
            self.disk.cut(inode, 0, self.world.wall())
        inode.opened += 1
        return process.install(OpenFile(inode, path, flags))

    def _told(self, path: str, flags: int) -> OpenFile:
        """A file of ``/proc``, as it is at this moment."""
        content = self.world.hosts.file(path)
        if content is None:
            raise failed(errno.ENOENT, path)
        inode = Inode(1, 0o444, self.world.wall(), is_directory=False)
        inode.data, inode.opened = bytearray(content), 2  # which nobody frees
        return OpenFile(inode, path, flags)

    def close(self, process: Process, fd: int) -> None:
        self._file(process, fd)
        self.shut(process.files.pop(fd))

    def shut(self, file: OpenFile) -> None:
        """Close an open file: its lock goes with it."""
        inode = file.inode
        for watched in file.watched:
            if file in watched.watchers:
                watched.watchers.remove(file)
        if inode is None:
            return
        self._unlock(file, inode)
        inode.opened -= 1
        if inode.opened == 0:
            self.disk.forget(inode)

    def dup(self, process: Process, fd: int) -> int:
        raise failed(errno.EMFILE)

    # -- content ------------------------------------------------------------------------------------------------------

    def read(self, process: Process, fd: int, size: int) -> bytes:
        file = self._file(process, fd)
        if file.inode is None:
            file.ready = False
            return b"event"
        _, inode = self._content(process, fd, to="read")
        if inode in self.disk.spoiled:
            raise failed(errno.EIO)
        data = bytes(inode.data[file.position : file.position + size])
        file.position += len(data)
        return data

    def pread(self, process: Process, fd: int, size: int, start: int) -> bytes:
        _, inode = self._content(process, fd, to="read")
        return bytes(inode.data[start : start + size])

    def write(self, process: Process, fd: int, data: bytes) -> int:
        file, inode = self._content(process, fd, to="write")
        start = len(inode.data) if file.appends else file.position
        done = self._put(inode, bytes(data), start)
        file.position = start + done
        return done

    def pwrite(self, process: Process, fd: int, data: bytes, start: int) -> int:
        file, inode = self._content(process, fd, to="write")
        return self._put(inode, bytes(data), len(inode.data) if file.appends else start)

    def _put(self, inode: Inode, data: bytes, start: int) -> int:
        if self.disk.full:  # the last page may have room
            room = max(-len(inode.data) % 4096, 0) + len(inode.data) - start
            if room <= 0:
                raise failed(errno.ENOSPC)
            data = data[:room]
        if data:
            self.disk.write(inode, start, data, self.world.wall())
            self._wake(inode)
            self.world.written(inode)
        return len(data)

    def ftruncate(self, process: Process, fd: int, size: int) -> None:
        file = self._file(process, fd)
        inode = file.inode
        if inode is None or not file.writes:
            raise failed(errno.EINVAL)
        self.disk.cut(inode, size, self.world.wall())
        self._wake(inode)
        self.world.renamed()

    def fsync(self, process: Process, fd: int) -> None:
        file = self._file(process, fd)
        inode = file.inode
        assert inode is not None
        if inode.is_directory:
            self.disk.sync_names(inode)
            self.world.renamed()
            return
        self.disk.sync(inode)
        if file.failures != inode.failures:  # each open file is told once (Linux since 4.13, fsync(2))
            file.failures = inode.failures
            process.hurt = True
            raise failed(errno.EIO)

    fdatasync = fsync

    # -- status -------------------------------------------------------------------------------------------------------

    def fstat(self, process: Process, fd: int) -> Status:
        inode = self._file(process, fd).inode
        assert inode is not None
        return Status(inode)

    def stat(self, process: Process, path: str | int) -> Status:
        return self.fstat(process, path) if isinstance(path, int) else Status(self.look_up(path))

    lstat = stat

    def access(self, process: Process, path: str, mode: int) -> bool:
        try:
            self.look_up(path)
        except OSError:
            return False
        return True

    def utime(self, process: Process, path: str | int, *, ns: tuple[int, int], follow_symlinks: bool = True) -> None:
        inode = self._file(process, path).inode if isinstance(path, int) else self.look_up(path)
        assert inode is not None
        inode.mtime = self.disk.tick(ns[1])
        inode.ctime = self.disk.tick(self.world.wall())

    def chmod(self, process: Process, path: str, mode: int) -> None:
        self.look_up(path).mode = mode & 0o7777

    # -- names --------------------------------------------------------------------------------------------------------

    def mkdir(self, process: Process, path: str, mode: int = 0o777) -> None:
        where, name = self._parent(path)
        if name == "." or name in where.entries:
            raise failed(errno.EEXIST, path)
        self.disk.change((where, name, self.disk.make(self.world.wall(), mode & 0o777, is_directory=True)))
        self._changed(where)

    def rmdir(self, process: Process, path: str) -> None:
        where, name = self._parent(path)
        there = where.entries.get(name)
        if there is None:
            raise failed(errno.ENOENT, path)
        if not there.is_directory:
            raise failed(errno.ENOTDIR, path)
        if there.entries:
            raise failed(errno.ENOTEMPTY, path)
        self.disk.change((where, name, None))
        self._changed(where)

    def unlink(self, process: Process, path: str) -> None:
        where, name = self._parent(path)
        there = where.entries.get(name)
        if there is None:
            raise failed(errno.ENOENT, path)
        if there.is_directory:
            raise failed(errno.EISDIR, path)
        self.disk.change((where, name, None))
        self._changed(where)
        self.disk.forget(there)
        self.world.renamed()

    def rename(self, process: Process, old: str, new: str) -> None:
        (source, name), (target, other) = self._parent(old), self._parent(new)
        moved = source.entries.get(name)
        if moved is None:
            raise failed(errno.ENOENT, old)
        before = target.entries.get(other)
        if moved.is_directory and moved in self._way(new):
            raise failed(errno.EINVAL, new)
        if before is not None and before.is_directory and before in self._way(old):
            raise failed(errno.ENOTEMPTY, new)
        if before is moved:
            return
        if before is not None and before.is_directory != moved.is_directory:
            raise failed(errno.ENOTDIR if moved.is_directory else errno.EISDIR, new)
        if before is not None and before.entries:
            raise failed(errno.ENOTEMPTY, new)
        self.disk.change((source, name, None), (target, other, moved))
        self._changed(source)
        self._changed(target)
        if before is not None:
            self.disk.forget(before)
        self.world.renamed()

    replace = rename

    def link(self, process: Process, old: str, new: str) -> None:
        there = self.look_up(old)
        where, name = self._parent(new)
        if name in where.entries:
            raise failed(errno.EEXIST, new)
        if there.is_directory:
            raise failed(errno.EPERM, new)
        self.disk.change((where, name, there))
        self._changed(where)

    def listdir(self, process: Process, path: str) -> list[str]:
        there = self.look_up(path)
        if not there.is_directory:
            raise failed(errno.ENOTDIR, path)
        return self.world.shuffled(list(there.entries))

    def scandir(self, process: Process, path: str) -> Entries:
        there = self.look_up(path)
        if not there.is_directory:
            raise failed(errno.ENOTDIR, path)
        return Entries([Entry(name, inode) for name, inode in there.entries.items()])

    def readlink(self, process: Process, path: str) -> str:
        if path.startswith("/proc/self/fd/"):
            return self._file(process, int(path.rpartition("/")[2])).path
        if path in ("/proc/self", "/proc/self/ns/pid"):
            return str(process.pid) if path == "/proc/self" else "pid:[1]"
        raise failed(errno.ENOENT, path)

    # -- locks --------------------------------------------------------------------------------------------------------

    def flock(self, process: Process, fd: int, how: int) -> None:
        file = self._file(process, fd)
        inode = file.inode
        assert inode is not None
        if self.world.profile.lockless and not self.world.quiet and self.world.calls // LOCKED % 2:
            process.hurt = True
            raise failed(errno.ENOLCK if how & EXCLUSIVE else errno.EOPNOTSUPP)
        if how & UNLOCK:
            self._unlock(file, inode)
            return
        while not self._lock(file, inode, how & EXCLUSIVE != 0):
            if how & NONBLOCK:
                raise failed(errno.EWOULDBLOCK)
            self.world.block(process, lambda: inode.lock is None)

    def flock_within(self, process: Process, fd: int, seconds: float) -> bool:
        file = self._file(process, fd)
        inode = file.inode
        assert inode is not None

        def is_free() -> bool:
            return inode.lock is None and all(sharer is file for sharer in inode.sharers)

        deadline = self.world.now + int(seconds * 1e9)
        while self.world.now < deadline:
            self.world.wait(process, (deadline - self.world.now) / 1e9, is_free)
            if self._lock(file, inode, True):
                return True
        return False

    def _lock(self, file: OpenFile, inode: Inode, exclusive: bool) -> bool:
        if inode.lock is file if exclusive else file in inode.sharers:
            return True
        self._unlock(
            file, inode
        )  # a lock of the other kind goes first, even if the new one is not to be had (flock(2))
        if inode.lock is not None or (exclusive and inode.sharers):
            return False
        if exclusive:
            inode.lock = file
        else:
            inode.sharers.append(file)
        return True

    def _unlock(self, file: OpenFile, inode: Inode) -> None:
        if inode.lock is file:
            inode.lock = None
        if file in inode.sharers:
            inode.sharers.remove(file)

    # -- clocks, waiting, chance --------------------------------------------------------------------------------------

    def monotonic(self, process: Process) -> float:
        return self.world.now / 1e9

    def time_ns(self, process: Process) -> int:
        return self.world.wall()

    def booted(self, process: Process) -> int:
        return self.world.wall() - (self.world.now - self.world.started)

    def sleep(self, process: Process, seconds: float) -> None:
        self.world.wait(process, seconds)

    def sched_yield(self, process: Process) -> None:
        return None

    def watched(self, process: Process, places: Sequence[str]) -> int:
        if self.world.profile.watchless:
            return -1
        file = OpenFile(None, "inotify", os.O_RDONLY)
        for place in places:
            try:
                inode = self.look_up(place)
            except OSError:
                return -1
            for watched in [inode, *(i for i in inode.entries.values() if not i.is_directory)]:
                watched.watchers.append(file)
                file.watched.append(watched)
        return process.install(file)

    def readable(self, process: Process, fds: Sequence[int], seconds: float | None) -> list[int]:
        files = {fd: self._file(process, fd) for fd in fds}
        self.world.wait(process, seconds, lambda: any(file.ready for file in files.values()))
        return [fd for fd, file in files.items() if file.ready]

    def urandom(self, process: Process, size: int) -> bytes:
        return process.entropy.getrandbits(8 * size).to_bytes(size, "big")

    # -- this process and its user ------------------------------------------------------------------------------------

    def getpid(self, process: Process) -> int:
        return process.pid

    def geteuid(self, process: Process) -> int:
        return 1000

    def getcwd(self, process: Process) -> str:
        return "/"

    def kill(self, process: Process, pid: int, number: int) -> None:
        if pid not in self.world.hosts.there and all(other.pid != pid for other in self.world.processes):
            raise failed(errno.ESRCH)

    def sysconf(self, process: Process, name: str) -> int:
        return 100

    def home(self, process: Process) -> str:
        return "/home"

    def real_path(self, process: Process, path: str) -> str:
        return posixpath.normpath(path)

    absolute = real_path
    at_home = real_path

    def stream(self, process: Process, file: str | int, mode: str = "rb", **text: Any) -> Any:
        flags = {
            "r": os.O_RDONLY,
            "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
            "a": os.O_RDWR | os.O_CREAT | os.O_APPEND,
        }
        fd = self.open(process, file, flags[mode[0]], 0o666) if isinstance(file, str) else file
        raw = Raw(self.world.doors, fd)
        buffered: Any = (
            io.BufferedRandom(raw)
            if "+" in mode
            else io.BufferedReader(raw)
            if mode[0] == "r"
            else io.BufferedWriter(raw)
        )
        return buffered if "b" in mode else io.TextIOWrapper(buffered, **text)

    def library_lock(self, process: Process, path: str, wait: float) -> LibraryLock:
        return LibraryLock(self.world.doors, path, wait)


class Entry:
    """An entry of ``scandir``."""

    def __init__(self, name: str, inode: Inode) -> None:
        self.name = name
        self._inode = inode

    def stat(self, *, follow_symlinks: bool = True) -> Status:
        """Its status."""
        return Status(self._inode)


class Entries:
    """What ``scandir`` returns."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    def __repr__(self) -> str:
        return f"{len(self._entries)} entries"

    def __enter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __exit__(self, *_: object) -> None:
        return None


class Raw(io.RawIOBase):
    """A file as Python's buffers want it, each of whose steps is a simulated call."""

    def __init__(self, doors: dict[str, Any], fd: int) -> None:
        super().__init__()
        self._doors = doors
        self._fd = fd
        self._at = 0

    def readable(self) -> bool:
        """It may be."""
        return True

    def writable(self) -> bool:
        """It may be."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def readinto(self, buffer: Any) -> int:
        """Read once."""
        data = self._doors["pread"](self._fd, len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:
        """Write once."""
        done: int = self._doors["pwrite"](self._fd, bytes(data), self._at)
        self._at += done
        return done

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move."""
        size = self._doors["fstat"](self._fd).st_size if whence == 2 else 0
        self._at = offset + (0, self._at, size)[whence]
        return self._at

    def tell(self) -> int:
        """The position."""
        return self._at

    def close(self) -> None:
        """Close once."""
        if not self.closed:
            super().close()
            if self._doors["world"].running is not None and not self._doors["world"].running.dead:
                self._doors["close"](self._fd)


class LibraryLock:
    """What portalocker does: try, sleep, try again until the time-out; the errors are its own."""

    def __init__(self, doors: dict[str, Any], path: str, wait: float) -> None:
        self._doors = doors
        self._path = path
        self._wait = wait
        self._fd = -1

    def acquire(self) -> None:
        """Get the lock, or raise ``LockException``."""
        self._fd = self._doors["open"](self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        until = self._doors["monotonic"]() + self._wait
        while True:
            try:
                self._doors["flock"](self._fd, EXCLUSIVE | NONBLOCK)
                return
            except OSError as error:
                if self._doors["monotonic"]() >= until:
                    self._doors["close"](self._fd)
                    raise LockException(error) from None
            self._doors["sleep"](0.25)

    def release(self) -> None:
        """Give it back."""
        self._doors["flock"](self._fd, UNLOCK)
        self._doors["close"](self._fd)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
