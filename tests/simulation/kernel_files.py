"""The simulated calls on files: paths, opening, content, status, names.

Belongs here: what each does to the disk. Locks, clocks and waiting are ``kernel``'s.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from agent_mailbox.store.log.stamps import STARTED
from tests.simulation.disk import Disk, Inode
from tests.simulation.open_files import Entries, Entry, OpenFile, Status, failed

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

LARGEST = 2 << 20
"""Bytes of a file: what a world writes without end ends here."""


class Files:
    """The calls on the files of one disk. Every method gets the calling process first."""

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
        file.unlock(inode)
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
        if start + len(data) > LARGEST:
            raise failed(errno.EFBIG)
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
        if path == STARTED:
            return Status(Inode(1, 0o555, self.world.hosts.started, is_directory=True))
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
        self.world.appeared(new)
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
