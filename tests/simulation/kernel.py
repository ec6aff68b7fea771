"""The simulated system calls: what each does to the disk, the locks and the clock.

Belongs here: the calls that ``agent_mailbox.store.files.system`` names, as one process makes them; those on files are
``kernel_files``'. Must not decide who goes on and what goes wrong (``world``): a call runs at once and whole.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
from typing import TYPE_CHECKING, Any

from agent_mailbox.store.files.system import LOCK_EX, LOCK_NB, LOCK_UN
from tests.simulation.kernel_files import Files
from tests.simulation.kernel_libraries import LibraryLock, Raw
from tests.simulation.open_files import OpenFile, failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.process import Process

LOCKED = 400
"""The calls for which a file system without steady locks has some, and then has none."""


class Kernel(Files):
    """The system calls on one disk. Every method gets the calling process first."""

    # -- locks --------------------------------------------------------------------------------------------------------

    def flock(self, process: Process, fd: int, how: int) -> None:
        file = self._file(process, fd)
        inode = file.inode
        assert inode is not None
        if self.world.profile.lockless and not self.world.quiet and self.world.calls // LOCKED % 2:
            process.hurt = True
            raise failed(errno.ENOLCK if how & LOCK_EX else errno.EOPNOTSUPP)
        if how & LOCK_UN:
            file.unlock(inode)
            return
        while not file.lock(inode, how & LOCK_EX != 0):
            if how & LOCK_NB:
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
            if file.lock(inode, True):
                return True
        return False

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

    def statvfs(self, process: Process, path: str) -> os.statvfs_result:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def marks(self, process: Process, path: str) -> str:
        return ""

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
