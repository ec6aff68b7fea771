"""What a power failure would take: bytes that no sync has carried to the disk, files whose name it may not find.

Belongs here: following a trace of system calls. A write puts a file at risk, a sync of it that succeeds saves it; a new
or renamed name is there for certain only after a sync of its directory, and what is written under it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers import ARCHIVE, MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.faults.faults import Call

WRITES = ("write", "pwrite64", "writev", "ftruncate")


class Disk:
    """The logs of a mailbox; on it everything is safe at first."""

    def __init__(self, box: Path) -> None:
        self._logs = {str(box / name) for name in (MESSAGES, READS, ROSTER)}
        self._archive = f"{box / ARCHIVE}/"
        self._unsynced: set[str] = set()
        self._unnamed: set[str] = set()
        self._written: set[str] = set()

    def at_risk(self) -> set[str]:
        """The logs something written to which could be lost."""
        found = self._unsynced | self._unnamed & self._written
        return {path for path in found if not path.endswith(".new")}

    def follow(self, calls: Iterable[Call]) -> None:
        """Take note of the calls; no log may be replaced before its successor is safe, and what left it as well."""
        for call in calls:
            path = call.path
            if call.name in ("fsync", "fdatasync"):
                self._unsynced.discard(path)
                self._unnamed = {name for name in self._unnamed if name.rpartition("/")[0] != path}
            elif call.name.startswith("rename"):
                self._rename(call)
            elif self._is_log(path) and call.name in WRITES:
                self._unsynced.add(path)
                self._written.add(path)
            elif self._is_log(path) and call.made:
                self._unnamed.add(path)

    def _rename(self, call: Call) -> None:
        old, new = call.path, call.path.removesuffix(".new")
        if new in self._logs:
            risk = {path for path in self.at_risk() if path.startswith(self._archive)} | ({old} & self._unsynced)
            assert not risk, f"{call} while {risk} could still be lost"
            self._unnamed.add(new)
            self._written.discard(new)
            self._unsynced.discard(new)

    def _is_log(self, path: str) -> bool:
        return path.removesuffix(".new") in self._logs or (path.startswith(self._archive) and path.endswith(".jsonl"))
