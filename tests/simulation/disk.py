"""The simulated disk: a page cache above a platter, and what of both is left after a power failure.

Belongs here: files, directories, their pages, what a sync makes durable. Must not know processes (``kernel``).

A file has ``data``, which every process sees, and ``solid``, which is on the platter. Writing makes pages dirty; a sync
copies them. A failed sync may drop them: they look clean, and no later sync writes them. Directories are the same with
names: each change of names is an entry of the ``journal`` until a sync of its directory.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

PAGE, SECTOR = 4096, 512
SECOND = 1_000_000_000


class Inode:
    """A file or a directory."""

    __slots__ = (
        "before",
        "ctime",
        "data",
        "dirty",
        "entries",
        "failures",
        "is_directory",
        "lock",
        "mode",
        "mtime",
        "number",
        "opened",
        "sharers",
        "solid",
        "solid_entries",
        "solid_mtime",
        "version",
        "watchers",
    )

    def __init__(self, number: int, mode: int, mtime: int, *, is_directory: bool) -> None:
        self.number = number
        self.mode = mode
        self.mtime = self.solid_mtime = self.ctime = self.before = mtime
        """``before``: the time of the change before the last write."""
        self.is_directory = is_directory
        self.data = bytearray()
        self.solid = bytearray()
        self.dirty: set[int] = set()
        self.failures = 0
        """Counts the syncs that dropped pages."""
        self.version = 0
        """Counts the changes of ``solid``."""
        self.entries: dict[str, Inode] = {}
        self.solid_entries: dict[str, Inode] = {}
        self.lock: object | None = None
        """The open file that holds ``LOCK_EX``."""
        self.sharers: list[object] = []
        self.opened = 0
        self.watchers: list[object] = []

    def twin(self) -> Inode:
        """The same once more, without names in it."""
        made = Inode(self.number, self.mode, self.mtime, is_directory=self.is_directory)
        made.solid_mtime, made.ctime, made.before = self.solid_mtime, self.ctime, self.before
        made.data, made.solid, made.dirty = bytearray(self.data), bytearray(self.solid), set(self.dirty)
        made.failures, made.version = self.failures, self.version
        return made

    @property
    def st_mode(self) -> int:
        """The kind and the rights."""
        return (stat.S_IFDIR if self.is_directory else stat.S_IFREG) | self.mode


Change = tuple[Inode, str, "Inode | None"]
"""A directory, a name in it, and what the name means from now on."""


class Disk:
    """One file system. ``ordered``: names become durable in the order of their changes, and any sync takes all earlier
    ones along, as in ext4; else each by itself, as POSIX allows. ``grain``: the ns that a file's time can tell."""

    def __init__(self, *, ordered: bool, grain: int) -> None:
        self.ordered = ordered
        self.grain = grain
        self.full = False
        self.spoiled: set[Inode] = set()
        """Files that cannot be read."""
        self.journal: list[tuple[Change, ...]] = []
        self.inodes: list[Inode] = []
        self._free: list[int] = []
        self._next = 2
        self.root = self.make(0, 0o755, is_directory=True)

    def make(self, now: int, mode: int, *, is_directory: bool) -> Inode:
        """A new inode, with the number of a removed one if there is any."""
        number = self._free.pop() if self._free else self._next
        if number == self._next:
            self._next += 1
        made = Inode(number, mode, self.tick(now), is_directory=is_directory)
        self.inodes.append(made)
        return made

    def tick(self, now: int) -> int:
        """An instant as a file's time tells it."""
        return now - now % self.grain

    # -- names --------------------------------------------------------------------------------------------------------

    def change(self, *changes: Change) -> None:
        """Change names, all at once."""
        for directory, name, target in changes:
            if target is None:
                del directory.entries[name]
            else:
                directory.entries[name] = target
        self.journal.append(changes)

    def sync_names(self, directory: Inode) -> None:
        """Make the names in a directory durable."""
        if self.ordered:
            self._commit(self.journal)
            self.journal = []
            return
        wanted = {directory.number}
        needed: list[tuple[Change, ...]] = []
        left: list[tuple[Change, ...]] = []
        keys: set[tuple[int, str]] = set()
        for entry in reversed(self.journal):
            touched = {(where.number, name) for where, name, _ in entry}
            if any(where.number in wanted for where, _, _ in entry) or touched & keys:
                keys |= touched
                needed.append(entry)
            else:
                left.append(entry)
        self._commit(needed[::-1])
        self.journal = left[::-1]

    def _commit(self, entries: list[tuple[Change, ...]]) -> None:
        for entry in entries:
            for directory, name, target in entry:
                directory.version += 1
                if target is None:
                    directory.solid_entries.pop(name, None)
                else:
                    directory.solid_entries[name] = target

    # -- content ------------------------------------------------------------------------------------------------------

    def write(self, inode: Inode, start: int, data: bytes, now: int) -> None:
        """Write into the page cache."""
        size = len(inode.data)
        if start > size:
            inode.data.extend(bytes(start - size))
        inode.data[start : start + len(data)] = data
        inode.dirty.update(range(min(start, size) // PAGE, (start + len(data) - 1) // PAGE + 1))
        inode.before = inode.mtime
        inode.mtime = inode.ctime = self.tick(now)

    def cut(self, inode: Inode, size: int, now: int) -> None:
        """Cut the file in the page cache, or extend it with zeros."""
        there = len(inode.data)
        if size < there:
            del inode.data[size:]
        else:
            inode.data.extend(bytes(size - there))
        if size != there:
            inode.dirty.add(min(size, there) // PAGE)
        inode.mtime = inode.ctime = self.tick(now)

    def sync(self, inode: Inode) -> None:
        """Write the dirty pages to the platter."""
        if inode.dirty or len(inode.solid) != len(inode.data):
            self._copy(inode, inode.dirty)
            inode.dirty.clear()
            inode.version += 1
        inode.solid_mtime = inode.mtime
        if self.ordered:
            self._commit(self.journal)
            self.journal = []

    def _copy(self, inode: Inode, pages: set[int]) -> None:
        size = len(inode.data)
        if len(inode.solid) < size:
            inode.solid.extend(bytes(size - len(inode.solid)))
        del inode.solid[size:]
        for page in pages:
            start = page * PAGE
            inode.solid[start : start + PAGE] = inode.data[start : start + PAGE]

    def drop(self, inode: Inode) -> None:
        """Fail to write the dirty pages, and forget that they are dirty; the file's size is on the platter."""
        size = len(inode.data)
        inode.solid.extend(bytes(max(size - len(inode.solid), 0)))
        del inode.solid[size:]
        inode.dirty.clear()
        inode.failures += 1
        inode.version += 1

    # -- a power failure ----------------------------------------------------------------------------------------------

    def copy(self) -> Disk:
        """The same disk once more: of what happens to the one, the other knows nothing. No file is open there."""
        twins: dict[int, Inode] = {}

        def twin(inode: Inode) -> Inode:
            made = twins.get(id(inode))
            if made is None:
                made = twins[id(inode)] = inode.twin()
                made.entries = {name: twin(below) for name, below in inode.entries.items()}
                made.solid_entries = {name: twin(below) for name, below in inode.solid_entries.items()}
            return made

        made = Disk(ordered=self.ordered, grain=self.grain)
        made.inodes = [twin(inode) for inode in self.inodes]
        made.root = twin(self.root)
        made.journal = [
            tuple((twin(where), name, None if target is None else twin(target)) for where, name, target in entry)
            for entry in self.journal
        ]
        made._free, made._next = list(self._free), self._next
        return made

    def crash(self, chance: Random) -> None:
        """Lose what was not synced: all of it, none, or any part of it."""
        self._crash_names(chance)
        alive = {id(self.root)}
        todo = [self.root]
        while todo:
            directory = todo.pop()
            directory.entries = dict(directory.solid_entries)
            for inode in directory.entries.values():
                if id(inode) not in alive:
                    alive.add(id(inode))
                    if inode.is_directory:
                        todo.append(inode)
        self.inodes = [inode for inode in self.inodes if id(inode) in alive]
        for inode in self.inodes:
            inode.lock, inode.sharers, inode.opened, inode.watchers = None, [], 0, []
            if not inode.is_directory:
                self._crash_content(inode, chance)
        taken = {inode.number for inode in self.inodes}
        self._free = [number for number in range(2, self._next) if number not in taken][::-1]

    def _crash_names(self, chance: Random) -> None:
        share = (0.0, 0.5, 0.5, 0.5, 1.0)[int(chance.random() * 5)]
        if self.ordered:
            kept = self.journal[: int(chance.random() * (len(self.journal) + 1))] if 0 < share < 1 else self.journal
            self._commit(kept if share else [])
        else:
            lost: set[tuple[int, str]] = set()
            for entry in self.journal:
                touched = {(where.number, name) for where, name, _ in entry}
                if touched & lost or chance.random() >= share:
                    lost |= touched
                else:
                    self._commit([entry])
        self.journal = []

    def _crash_content(self, inode: Inode, chance: Random) -> None:
        if not inode.dirty and len(inode.solid) == len(inode.data):
            inode.mtime = inode.solid_mtime = (inode.mtime, inode.solid_mtime)[int(chance.random() * 2)]
            inode.data = bytearray(inode.solid)  # pages of a failed sync go with the power
            return
        share = (0.0, 0.5, 1.0)[int(chance.random() * 3)]
        solid, data = inode.solid, inode.data
        size = len(data) if chance.random() < 0.5 or share == 1 else len(solid)
        after = bytearray(solid[:size])
        after.extend(bytes(size - len(after)))
        for page in sorted(inode.dirty):
            for start in range(page * PAGE, min((page + 1) * PAGE, size), SECTOR):
                if chance.random() < share:
                    end = min(start + SECTOR, size)
                    after[start:end] = data[start:end].ljust(end - start, b"\0")
        if chance.random() < 0.5:
            inode.solid_mtime = inode.mtime
        inode.mtime = inode.solid_mtime
        inode.data, inode.solid = after, bytearray(after)
        inode.dirty.clear()
        inode.version += 1

    def forget(self, inode: Inode) -> None:
        """Free the number of an inode without names and without openers."""
        if inode.opened == 0 and inode is not self.root and not self._is_named(inode):
            self.inodes.remove(inode)
            self._free.append(inode.number)

    def _is_named(self, inode: Inode) -> bool:
        for directory in self.inodes:
            if directory.is_directory and (
                inode in directory.entries.values() or inode in directory.solid_entries.values()
            ):
                return True
        return any(target is inode for entry in self.journal for _, _, target in entry)

    # -- looking ------------------------------------------------------------------------------------------------------

    def files(self, *, solid: bool) -> Iterator[tuple[str, Inode]]:
        """Every file with its path, by the names that are durable, or by the present ones."""
        todo = [("", self.root)]
        while todo:
            path, directory = todo.pop()
            for name, inode in sorted((directory.solid_entries if solid else directory.entries).items()):
                if inode.is_directory:
                    todo.append((f"{path}/{name}", inode))
                else:
                    yield f"{path}/{name}", inode
