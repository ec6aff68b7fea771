"""The archive's manifest: a checksum of every stretch that a steward appended, so that silent damage is found.

Belongs here: ``MANIFEST.jsonl``, sealing the archive's content, comparing. One line a stretch, in the order they were
appended: ``{"file":"2026-03.jsonl","offset":0,"length":812,"sha256":"…"}``; the stretches of a file follow one another
without a gap. Sealing hashes only unsealed bytes, so a run costs what it appends.

**Why a killed steward is not taken for damage.** Months are appended to and synced, then sealed, then the live logs are
replaced. After a kill before the seal, a file is longer than its last stretch: the next run seals the rest. It does so
with an older version's months, too. No sealed byte is ever rewritten. To change an archived file on purpose, remove its
lines here. The user's record holds that there is an archive, so that one which is lost as a whole is noticed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.records import BadLine, Record
from ..files import system
from ..files.line_numbers import numbered
from ..files.lines import boundary, chunks
from ..files.small_files import OpenFile
from ..log.custody import LogEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .archive import Archive

NAME = "MANIFEST.jsonl"
STRETCH = 1 << 20
"""Bytes in one stretch, unless a single line is longer: how narrowly damage is placed, for 150 bytes of manifest."""


class SealedStretch(Record):
    """A sealed stretch of a file, in bytes; ``line`` is the manifest's line that seals it."""

    offset: int
    length: int
    sha256: str
    line: int

    @property
    def end(self) -> int:
        """Return the position behind it."""
        return self.offset + self.length


class Stray(Record):
    """A line of the manifest that seals nothing: no entry, or one that does not follow its file's last."""

    line: int
    text: bytes
    what: str


class Damage(Record):
    """A stretch whose bytes differ from the sealed ones; the file's lines it covers, and how many bytes are there."""

    file: str
    stretch: SealedStretch
    first_line: int
    last_line: int
    there: int


class Manifest:
    """The manifest of an archive as it is: the stretches of each file, and the stray lines."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.log = archive.file(NAME)
        self.kept = archive.kept(self.log.path)
        self.files: dict[str, list[SealedStretch]] = {}
        self.strays: list[Stray] = []
        for number, line in numbered(self.log):
            self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        entry = codec.parse(line)
        if isinstance(entry, BadLine):
            self.strays.append(Stray(number, line, entry.reason))
            return
        named = _entry(entry, number)
        if named is None:
            self.strays.append(Stray(number, line, "not an entry"))
        elif named[1].offset != self.sealed(named[0]):
            self.strays.append(Stray(number, line, f"does not follow what is sealed of {named[0]}"))
        else:
            self.files.setdefault(named[0], []).append(named[1])

    def sealed(self, name: str) -> int:
        """Return how many bytes of the file are sealed."""
        stretches = self.files.get(name)
        return stretches[-1].end if stretches else 0

    def unsealed(self) -> Iterator[tuple[str, int]]:
        """Yield (file, bytes) for the bytes behind the last stretch of each file."""
        for name in self._archive.files():
            size = system.stat(system.join(self._archive.directory, name)).st_size
            if size > self.sealed(name):
                yield name, size - self.sealed(name)

    def seal(self) -> None:
        """Seal every unsealed whole line; the caller holds the archive's lock.

        Durable on return, together with the lines of an earlier run that died before its sync.
        """
        fresh = [(name, stretch) for name, _ in self.unsealed() for stretch in self._sealing(name)]
        if not fresh and not self.files:
            return
        with self.log.held() as held:
            _drop_torn_end(held.fd)
            held.append(_line(name, stretch) for name, stretch in fresh)
            held.sync(held.lines())
            self.note()
        for name, stretch in fresh:
            self.files.setdefault(name, []).append(stretch)

    def is_lost(self) -> bool:
        """Return whether nothing is left of an archive that the user's record knows."""
        if self.files or self.strays or self.kept is None or not self.kept.entry().size:
            return False
        return not any(size for _, size in self.unsealed())

    def note(self) -> None:
        """Note in the user's record whether there is an archive: the manifest's size."""
        if self.kept is not None:
            self.kept.change(lambda _: LogEnd(size=system.size(self.log.path)))

    def _sealing(self, name: str) -> Iterator[SealedStretch]:
        fd = self._archive.file(name).open()
        if fd is None:
            return
        with OpenFile(fd):
            start, end = self.sealed(name), boundary(fd, system.fstat(fd).st_size)
            while start < end:
                step = STRETCH
                while (stop := boundary(fd, min(start + step, end))) <= start:
                    step *= 2  # a line longer than that
                yield SealedStretch(start, stop - start, _hashed(fd, start, stop)[0], 0)
                start = stop

    def damage(self) -> Iterator[Damage]:
        """Yield every sealed stretch whose bytes differ or are missing. Reads the whole archive, a chunk at a time."""
        for name, stretches in self.files.items():
            fd, number = self._archive.file(name).open(), 1
            if fd is None:
                yield Damage(name, stretches[0], 1, 1, 0)
                continue
            with OpenFile(fd):
                for stretch in stretches:
                    digest, newlines, there = _hashed(fd, stretch.offset, stretch.end)
                    if digest != stretch.sha256:
                        yield Damage(name, stretch, number, number + max(newlines - 1, 0), there)
                    number += newlines


def _drop_torn_end(fd: int) -> None:
    """Cut off half an entry that a killed run left: its bytes are sealed now. Only stewards write here."""
    size = system.fstat(fd).st_size
    end = boundary(fd, size)
    if end < size and isinstance(codec.parse(system.pread(fd, size - end, end)), BadLine):
        system.ftruncate(fd, end)


def _entry(entry: dict[str, Any], number: int) -> tuple[str, SealedStretch] | None:
    name, offset, length, digest = (entry.get(key) for key in ("file", "offset", "length", "sha256"))
    if not (isinstance(name, str) and isinstance(offset, int) and isinstance(length, int) and isinstance(digest, str)):
        return None
    if not name.endswith(".jsonl") or "/" in name or name == NAME or length <= 0:
        return None
    return name, SealedStretch(offset, length, digest, number)


def _line(name: str, stretch: SealedStretch) -> bytes:
    entry = {"file": name, "offset": stretch.offset, "length": stretch.length, "sha256": stretch.sha256}
    return codec.dumps(entry).encode() + b"\n"


def _hashed(fd: int, start: int, end: int) -> tuple[str, int, int]:
    """Return (SHA-256, newlines, bytes found) of a stretch of an open file."""
    digest, newlines, found = hashlib.sha256(), 0, 0
    for chunk in chunks(fd, start, end):
        digest.update(chunk)
        newlines += chunk.count(b"\n")
        found += len(chunk)
    return digest.hexdigest(), newlines, found
