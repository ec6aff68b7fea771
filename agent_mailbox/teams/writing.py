"""Writing into an inbox as its client does: lock directory, re-read, a file beside, rename.

Belongs here: the client's protocol (2.1.329, by strace). Its lock is a directory at the inbox's real path and
``.lock``, tried 11 times within 0.7 s, stale 10 s after its last change. A file written beside replaces what was read
under the lock. Other entries keep their bytes, and stay.

A client needs the lock to send. Without it, after some seconds, it shows its model, turn after turn, entries that it
cannot take out. So no client may wait for a killed process of ours. Our lock is created so old that it is stale after
``LEASE`` seconds, before any client that waits gives up.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from ..clients.foreign_fields import MAX_FILE
from ..store.files.small_files import list_names, remove_if_possible
from . import format as form

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.1, 0.1, 0.1, 0.1)
"""Seconds between two tries for the lock."""
STALE = 10.0
"""Seconds after which a lock is stale."""
LEASE = 0.5
"""Seconds after which ours is stale: of a client's tries, 0.655 s and more, some come later."""
HOLD = 0.2
"""Most seconds the lock is held before the rename. It takes well under a millisecond unless others are writing."""


class Undeliverable(Exception):
    """The inbox takes nothing now; ``str`` says why."""


class WritingLock:
    """The client's lock on an inbox, for a ``with`` block; raises ``Undeliverable`` if others keep it. ``beside`` names
    the directory until it is the lock."""

    def __init__(self, inbox: str, beside: str) -> None:
        self.path = inbox + ".lock"
        self._beside = beside
        self._mine: tuple[int, int] | None = None
        self._since = 0.0

    def __enter__(self) -> Self:
        try:
            for pause in (*PAUSES, None):
                if self._try_to_take():
                    return self
                self._break_stale()
                if pause is not None:
                    time.sleep(pause)
        except OSError as error:
            remove_directory(self._beside)
            raise Undeliverable(f"its inbox cannot be locked: {error.strerror}") from None
        remove_directory(self._beside)
        raise Undeliverable("others are writing into its inbox")

    def _try_to_take(self) -> bool:
        """Try once: a directory that is old already becomes the lock, unless there is one."""
        since, age = time.monotonic(), time.time() - STALE + LEASE
        try:
            os.mkdir(self._beside, 0o700)
        except FileExistsError:
            pass
        os.utime(self._beside, (age, age))
        try:
            rename_new(self._beside, self.path)
        except FileExistsError:
            return False
        self._mine, self._since = _identity_of(self.path), since
        return True

    def _break_stale(self) -> None:
        """Remove a stale lock. A process that took it again keeps it: that is another directory."""
        try:
            at = os.stat(self.path)
            if time.time() - at.st_mtime > STALE and _identity_of(self.path) == (at.st_ino, at.st_mtime_ns):
                os.rmdir(self.path)
        except OSError:
            pass

    def is_held(self) -> bool:
        """Return whether it is still ours, and not held for too long."""
        mine = self._mine is not None and _identity_of(self.path) == self._mine
        return mine and time.monotonic() - self._since < HOLD

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine is not None and _identity_of(self.path) == self._mine:
            remove_directory(self.path)


def rename_new(old: str, new: str) -> None:
    """Rename a directory to a name that must not exist; raise ``FileExistsError``, ``OSError``.

    ``os.rename`` would replace an empty directory: Linux has renameat2(2) for this, macOS renamex_np(2). If neither
    works, a new directory is made and aged: killed in between, it is fresh.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(old), os.fsencode(new)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(*names, ctypes.c_uint(_RENAME_EXCL))
        else:
            failed = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_NOREPLACE))
        code = ctypes.get_errno() if failed else 0
    except AttributeError:
        code = errno.ENOSYS
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        os.mkdir(new, 0o700)
        at = os.stat(old)
        os.utime(new, ns=(at.st_atime_ns, at.st_mtime_ns))
        os.rmdir(old)
    elif code:
        raise OSError(code, os.strerror(code), old, None, new)


_AT_FDCWD, _RENAME_NOREPLACE, _RENAME_EXCL = -100, 1, 4


def remove_directory(path: str) -> None:
    """Remove an empty directory, if it is there."""
    try:
        os.rmdir(path)
    except OSError:
        pass


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        at = os.stat(path)
    except OSError:
        return None
    return at.st_ino, at.st_mtime_ns


class FileBeside:
    """The file that will become the inbox, made before anything is promised.

    While it is there, it has not replaced the inbox: a killed process leaves that answer behind. ``mark`` is the
    mailbox's: two mailboxes may write to one team, and each removes only its own.
    """

    def __init__(self, inbox: str, mark: str, nonce: str) -> None:
        self.inbox = inbox
        self.path = f"{inbox}{_SIGN}{mark}.{nonce}"
        self._there: bytes | None = None

    def make_files(self) -> None:
        """Create it, and a missing inbox: ``[]``, whole at once. The client makes an empty file first; a process killed
        there leaves an inbox that its client can never read."""
        try:
            directory = os.path.dirname(self.inbox)
            if not os.path.isdir(directory):
                os.mkdir(directory)
            if os.path.realpath(self.inbox) != os.path.join(os.path.realpath(directory), os.path.basename(self.inbox)):
                raise Undeliverable("its inbox is a link to another place")
            _make_file(self.path, b"[]")
            try:
                os.link(self.path, self.inbox)
            except OSError:  # it is there; or this file system has no hard links
                if not os.path.lexists(self.inbox):
                    _make_file(self.inbox, b"[]")
            os.unlink(self.path)
            _make_file(self.path, b"")
        except OSError as error:
            raise _unwritable_error(error) from None

    def is_there(self) -> bool:
        """Return whether it is there: the inbox was not replaced."""
        return os.path.lexists(self.path)

    def remove_file(self) -> None:
        """Remove it."""
        remove_if_possible(self.path)

    def write_file(self, entries: Sequence[dict[str, Any]]) -> None:
        """Write the inbox with the entries after it; raise ``Undeliverable`` for one that takes nothing now."""
        try:
            self._there = self._write_inbox(os.path.realpath(self.inbox), None, entries)
        except OSError as error:
            raise _unwritable_error(error) from None

    def append_entries(self, entries: Sequence[dict[str, Any]]) -> None:
        """Append entries to the inbox; if ``Undeliverable`` is raised, nothing was done.

        ``write_file`` came before; under the lock the file is written again only if the inbox has changed.
        """
        real = os.path.realpath(self.inbox)
        try:
            with WritingLock(real, self.path + _LOCK) as lock:
                self._write_inbox(real, self._there, entries)
                if not lock.is_held():
                    raise Undeliverable("its inbox could not be written in time")
                os.rename(self.path, real)
        except OSError as error:
            raise _unwritable_error(error) from None

    def _write_inbox(self, real: str, known: bytes | None, entries: Sequence[dict[str, Any]]) -> bytes:
        """Write the inbox with the entries after it, unless it is as ``known``; return its bytes."""
        with open(real, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            there = file.read(MAX_FILE + 1)
            mode = os.fstat(file.fileno()).st_mode & 0o777
        if there != known:
            with open(self.path, "r+b") as file:
                file.write(join_array(there, entries))
                file.truncate()
                os.fchmod(file.fileno(), mode)
        return there


_SIGN, _LOCK = ".agent-mailbox.", ".lock"


def _make_file(path: str, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)


def _unwritable_error(error: OSError) -> Undeliverable:
    return Undeliverable(f"its inbox cannot be written: {error.strerror}")


def sweep_remains(directory: str, mark: str, nonces: set[str]) -> None:
    """Remove what killed processes left in a directory of inboxes, except the files of open offers. The caller holds
    the mailbox's lock on the team."""
    names = [name for name in list_names(directory) if f"{_SIGN}{mark}." in name]
    for name in names:
        nonce = name.rpartition(f"{_SIGN}{mark}.")[2]
        path = os.path.join(directory, name)
        if nonce.endswith(_LOCK):
            remove_directory(path)
        elif nonce not in nonces:
            remove_if_possible(path)


def join_array(there: bytes, entries: Sequence[dict[str, Any]]) -> bytes:
    """Return the array in ``there`` with entries after it: ``[{"a":1}]`` becomes ``[{"a":1},{"b": 2}]``, byte for byte.

    Raise ``Undeliverable`` if it is none: the client leaves such a file as it is, and reads nothing of it.
    """
    if len(there) > MAX_FILE:
        raise Undeliverable("its inbox is too large to be read")
    if not form.is_array(there):
        raise Undeliverable("its inbox is not a JSON array, so its client reads nothing there")
    head = there.rstrip()[:-1].rstrip()
    more = b",".join(json.dumps(entry).encode() for entry in entries)
    return head + (b"" if head.endswith(b"[") else b",") + more + b"]"
