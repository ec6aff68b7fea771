"""Writing into an inbox as its client does: lock directory, re-read, a file beside, rename.

Belongs here: the client's protocol (2.1.329, by strace): mkdir of the inbox's real path and ``.lock``, asked for 11
times within 0.7 s; a lock is stale after 10 s; what is read under it is replaced by a file that was written beside.
Other entries keep their bytes, and none is taken away.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, Self

from . import format as form

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.1, 0.1, 0.1, 0.1)
"""Seconds between two tries for the lock."""
STALE = 10.0
"""Seconds after which a lock is nobody's."""
HOLD = 0.3
"""Seconds the lock is held at most before the rename: a client gives up after 0.7 s, and its send fails."""


class Undeliverable(Exception):
    """The inbox takes nothing now; ``str`` says why. ``passing``: another try may do."""

    def __init__(self, what: str, *, passing: bool = False) -> None:
        super().__init__(what)
        self.passing = passing


class Lock:
    """The client's lock on an inbox, for a ``with`` block; raises ``Undeliverable`` if it is not to be had."""

    def __init__(self, path: str) -> None:
        self.path = path + ".lock"
        self._mine: tuple[int, int] | None = None
        self._since = 0.0

    def __enter__(self) -> Self:
        for pause in (*PAUSES, None):
            try:
                os.mkdir(self.path, 0o700)
            except FileExistsError:
                self._break()
            except OSError as error:
                raise Undeliverable(f"its inbox cannot be locked: {error.strerror}") from None
            else:
                self._since = time.monotonic()
                self._mine = _identity(self.path)
                return self
            if pause is not None:
                time.sleep(pause)
        raise Undeliverable("others are writing into its inbox", passing=True)

    def _break(self) -> None:
        """Take away a stale lock. Who took it anew meanwhile keeps it: it is another directory then."""
        try:
            at = os.stat(self.path)
            if time.time() - at.st_mtime > STALE and _identity(self.path) == (at.st_ino, at.st_mtime_ns):
                os.rmdir(self.path)
        except OSError:
            pass

    def holds(self) -> bool:
        """Is it still ours, and not held for too long?"""
        mine = self._mine is not None and _identity(self.path) == self._mine
        return mine and time.monotonic() - self._since < HOLD

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine is not None and _identity(self.path) == self._mine:
            try:
                os.rmdir(self.path)
            except OSError:
                pass


def _identity(path: str) -> tuple[int, int] | None:
    try:
        at = os.stat(path)
    except OSError:
        return None
    return at.st_ino, at.st_mtime_ns


class Aside:
    """The file that will become the inbox, made before anything is promised: as long as it is there, the inbox was not
    replaced by it. So a process that was killed in between leaves the answer behind."""

    def __init__(self, inbox: str, nonce: str) -> None:
        self.inbox = os.path.realpath(inbox)
        self.path = f"{self.inbox}.tmp.{nonce}"

    def make(self) -> None:
        """Make it, and the inbox where there is none yet (as the client does: ``[]``)."""
        try:
            if not os.path.isdir(os.path.dirname(self.inbox)):
                os.mkdir(os.path.dirname(self.inbox))
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                with open(
                    os.open(self.inbox, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
                ) as file:
                    file.write(b"[]")
            except FileExistsError:
                pass
        except OSError as error:
            raise Undeliverable(f"its inbox cannot be written: {error.strerror}") from None

    def stands(self) -> bool:
        """Is it there: was the inbox not replaced?"""
        return os.path.lexists(self.path)

    def remove(self) -> None:
        """Take it away."""
        try:
            os.unlink(self.path)
        except OSError:
            pass

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Put entries behind those that stand in the inbox; raises ``Undeliverable``, and then nothing was done."""
        try:
            with Lock(self.inbox) as lock:
                with open(self.inbox, "rb") as file:
                    there = file.read()
                    mode = os.fstat(file.fileno()).st_mode & 0o777
                with open(self.path, "wb") as file:
                    file.write(joined(there, entries))
                    os.fchmod(file.fileno(), mode)
                if not lock.holds():
                    raise Undeliverable("its inbox could not be written in time", passing=True)
                os.rename(self.path, self.inbox)
        except OSError as error:
            raise Undeliverable(f"its inbox cannot be written: {error.strerror}") from None


def joined(there: bytes, entries: Sequence[dict[str, Any]]) -> bytes:
    """The array in ``there`` with entries behind it: every byte of the others stays. ``Undeliverable`` if it is none:
    the client leaves such a file as it is, and reads nothing of it."""
    if not form.inbox(there).whole:
        raise Undeliverable("its inbox is not a JSON array, so its client reads nothing there")
    head = there.rstrip()[:-1].rstrip()
    more = b",".join(json.dumps(entry).encode() for entry in entries)
    return head + (b"" if head.endswith(b"[") else b",") + more + b"]"
