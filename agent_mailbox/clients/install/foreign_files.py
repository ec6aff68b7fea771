"""Files of others, changed whole or not at all, with a record of what they were.

Belongs here: reading, replacing, remembering. A file is written beside, synced and renamed, so that a kill leaves the
old or the new one. A record comes first: the bytes before us, and the checksums of what we made of them. A file with
one of these checksums is unedited, and gets its own bytes back.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.records import BadLine, Record
from ...core.text import typed
from ...errors import Busy, Refused, StorageFailed
from ...store.files import paths, system
from ...store.files.small_files import Storing, list_names, names_in, read_file, remove_file
from ...store.files.system import sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_FILE = 4 << 20
"""Bytes of a settings or memory file: a person wrote it."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Remembered(Record):
    """A file's record: its bytes before us (None: it did not exist), the checksums of what we made of it, the
    directories made for it."""

    original: bytes | None
    written: tuple[str, ...]
    directories: tuple[str, ...]


class Change(Record):
    """One file's change: its bytes now and then (None: no file), and its record then (None: none)."""

    path: str
    before: bytes | None
    after: bytes | None
    entry: Remembered | None
    mode: int = 0o666


def read_foreign(path: str, limit: int = MAX_FILE) -> bytes | None:
    """Return a file's bytes, or None if there is none. Raises ``StorageFailed``, also for more than ``limit`` bytes."""
    return read_file(path, limit, through_links=True)


def read_packaged(name: str) -> bytes:
    """Return a file for clients that our package brings."""
    found = read_foreign(os.path.join(_PACKAGE, name))
    if found is None:
        raise StorageFailed(f"{_PACKAGE} lacks its {name}", "install agent-mailbox again")
    return found


def checksum_of(data: bytes) -> str:
    """Return the checksum of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def refuse_read_only(changed: Iterable[str]) -> None:
    """Raise ``Refused`` if one of the files is read-only. Somebody made it so, and replacing it asks for no right."""
    for path in changed:
        if os.path.exists(path) and not os.stat(path).st_mode & 0o222:
            raise Refused(f"{path} is read-only", f"`chmod u+w {typed(path)}` allows it to be changed")


def carry_out(change: Change, records: FileRecords) -> None:
    """Make the change, durably. Raises ``Busy`` if the file changed since the plan, and ``StorageFailed``; the file is
    then as it was."""
    if read_foreign(change.path) != change.before:
        raise Busy(f"{change.path} was just changed by another program", "repeat the command")
    if change.entry is not None:
        records.keep_record(change.path, change.entry)
    if change.after != change.before:
        with Storing("write", change.path):
            if change.after is None:
                os.unlink(change.path)
            else:
                os.makedirs(os.path.dirname(change.path), exist_ok=True)
                _replace_file(change.path, change.after, change.mode)
            sync_directory(os.path.dirname(change.path))
    if change.after is None and (made := records.find_record(change.path)):
        remove_empty(made.directories)  # while the record names them: a repetition of a killed process goes on here
    if change.entry is None:
        records.forget_file(change.path)


def _replace_file(path: str, data: bytes, mode: int) -> None:
    directory, name = os.path.split(path)
    aside = os.path.join(directory, f".{name}.agent-mailbox")
    if system.exists(aside):
        os.unlink(aside)  # left by a killed process
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            if os.path.exists(path):
                os.fchmod(fd, stat.S_IMODE(os.stat(path).st_mode) | (mode & 0o111))
            left = memoryview(data)
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise


def remove_empty(directories: tuple[str, ...]) -> None:
    """Remove the directories that were made for a file, unless they hold anything else."""
    for directory in reversed(directories):
        try:
            os.rmdir(directory)
        except OSError:
            return


class FileRecords:
    """The records of the files we changed, in the user's state directory; one file each."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.directory = os.path.join(os.path.dirname(paths.trusted_file(environ)), "installed")

    def _record_path(self, path: str) -> str:
        return os.path.join(self.directory, f"{checksum_of(os.fsencode(path))[:32]}.json")

    def find_record(self, path: str) -> Remembered | None:
        """Return a file's record; None if there is none, or it is damaged."""
        return _parse_entry(_load(self._record_path(path)))

    def keep_record(self, path: str, entry: Remembered) -> None:
        """Remember, durably."""
        original = None if entry.original is None else base64.b64encode(entry.original).decode()
        value = {
            "path": os.fsencode(path).decode("utf-8", "backslashreplace"),
            "original": original,
            "written": list(entry.written),
            "directories": [os.fsencode(d).hex() for d in entry.directories],
        }
        with Storing("write", self._record_path(path)):
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            _replace_file(self._record_path(path), codec.dumps(value).encode() + b"\n", 0o600)
            sync_directory(self.directory)

    def forget_file(self, path: str) -> None:
        """Forget the file."""
        with Storing("remove", self._record_path(path)):
            remove_file(self._record_path(path))

    def recorded_paths(self) -> list[str]:
        """Return the files that have a record here, as far as their names can be told."""
        found = []
        for name in names_in(self.directory):
            path = _load(os.path.join(self.directory, name)).get("path") if name.endswith(".json") else None
            if isinstance(path, str) and os.path.basename(self._record_path(path)) == name:
                found.append(path)
        return found

    def none_left(self) -> bool:
        """Return whether no record is left."""
        return not any(name.endswith(".json") and name[0] != "." for name in list_names(self.directory))


def _load(record: str) -> dict[str, Any]:
    found = codec.parse(read_foreign(record, 2 * MAX_FILE) or b"", 2 * MAX_FILE, ours=False)
    return {} if isinstance(found, BadLine) else found


def _parse_entry(obj: Mapping[str, Any]) -> Remembered | None:
    try:
        original = obj["original"]
        return Remembered(
            original=None if original is None else base64.b64decode(original, validate=True),
            written=tuple(str(word) for word in obj.get("written") or ()),
            directories=tuple(os.fsdecode(bytes.fromhex(word)) for word in obj.get("directories") or ()),
        )
    except (KeyError, ValueError, TypeError):
        return None
