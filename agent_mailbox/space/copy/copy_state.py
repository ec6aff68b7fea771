"""The file that says how far a machine's copy is.

Belongs here: its content, reading and writing it. It is not synced: an older state, or none, costs a comparison
and no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import codec
from ...store.files import small_files, system
from ...store.files.small_files import note_time, noted_age, read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE, FRESH = "state", "fresh"


class CopyState:
    """All that a machine knows of the order. ``told``: the content of the file, if there is one."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.applied: int = told.get("applied", 0)
        """All records up to this position are in the local logs."""
        self.last: dict[str, int] = told.get("last", {})
        """The position of each log's last record."""
        self.marks: Mapping[str, tuple[int, int, list[list[int]]]] = told.get("marks", {})
        """By local log, the lines that are in the order (``Unordered``)."""
        self.owes = told.get("owes") is True
        """This machine has not yet told that it followed a steward's decision."""
        self.purged = told.get("purged") is True
        """The order may lack what is archived."""
        self.compares = told.get("compares") is not False
        """The order is read from its beginning: archived lines count as taken in."""
        self.doubts = told.get("doubts") is True
        """Another machine told of a damaged record, which this one may have."""
        self.damaged = {*told.get("damaged", ())}
        """The positions of damaged records that were passed over."""
        self.tip: str = told.get("tip", "")
        """The digest of the record at ``applied``."""
        self.holes: int | None = told.get("holes")
        """The number of positions without a record, at the last look."""
        self.numbers: Mapping[str, int] = told.get("numbers", {})
        self.refused: Mapping[str, int] = told.get("refused", {})
        """These two are the judge's (``SpaceJudge.begin_from``)."""


def load_state(directory: str) -> CopyState:
    """Return what was saved; the state of a copy that knows nothing if there is no file, or a damaged one."""
    checksum, _, body = (read_file(system.join(directory, STATE)) or b"").partition(b" ")
    found = codec.parse(body) if checksum == b"%08x" % small_files.checksum(body) else None
    return CopyState(found if isinstance(found, dict) else {})


def note_fresh(directory: str) -> None:
    """Note that this machine has just had all that is in the order; if that fails, the copy only looks older."""
    note_time(system.join(directory, FRESH), system.time_ns() // 1_000_000)


def copy_age(directory: str) -> float | None:
    """Return the seconds since this machine had all that was in the order; None: nobody noted it."""
    age = noted_age(system.join(directory, FRESH), system.time_ns() // 1_000_000)
    return None if age is None else max(age, 0) / 1000


def save_state(directory: str, state: CopyState) -> None:
    """Save the state; raise ``StorageFailed`` if it cannot be written."""
    body = codec.dumps({**vars(state), "damaged": sorted(state.damaged)}).encode()
    path = system.join(directory, STATE)
    replace_file(path, b"%08x " % small_files.checksum(body) + body, durable=False)
