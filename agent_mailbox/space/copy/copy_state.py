"""The files that say how far a machine's copy is, and what is about to be published.

Belongs here: their content, reading and writing them. They are not synced: an older state, or none, costs a comparison
and no answer.
"""

from __future__ import annotations

from ...core import codec, proofs
from ...store.files import small_files, system
from ...store.files.small_files import note_time, noted_age, read_file, replace_file, write_if_possible
from ...store.log.unordered import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...core.records import Proof

STATE, FRESH, PROOFS = "state", "fresh", "proofs"


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
        self.gone = {*told.get("gone", ())}
        """The machines that a person gave up, and that said nothing since."""
        self.keys: dict[str, str] = told.get("keys", {})
        """By machine, the fingerprint of the key with which its name was taken over last."""
        self.displaced = told.get("displaced") is True
        """Another mailbox has this machine's name: nothing is published from here."""
        self.numbers: Mapping[str, int] = told.get("numbers", {})
        self.refused: Mapping[str, int] = told.get("refused", {})
        """These two are the judge's (``SpaceJudge.begin_from``)."""


def read_saved(directory: str) -> bytes:
    """Return what was saved, as it is; empty if there is no file."""
    return read_file(system.join(directory, STATE)) or b""


def parse_saved(text: bytes) -> CopyState:
    """Return the state that was saved; that of a copy that knows nothing for a damaged file, or none."""
    checksum, _, body = text.partition(b" ")
    found = codec.parse(body) if checksum == b"%08x" % small_files.checksum(body) else None
    return CopyState(found if isinstance(found, dict) else {})


def note_proofs(directory: str, about: Mapping[bytes, Proof | None]) -> None:
    """Note what is proven of the writers of lines that are about to be published, for whoever takes them in first."""
    if any(about.values()):
        told = {digest(line).hex(): proof for line, proof in about.items()}
        write_if_possible(system.join(directory, PROOFS), codec.dumps(told).encode())


def noted_proofs(directory: str) -> dict[str, Proof | None]:
    """Return what was noted last, by the lines' digests; empty if nothing was."""
    found = codec.parse(read_file(system.join(directory, PROOFS)) or b"")
    told = found.items() if isinstance(found, dict) else ()
    return {key: proofs.parse(word.encode()) for key, word in told if isinstance(word, str)}


def note_fresh(directory: str, at: int) -> None:
    """Note that this machine has had all that was in the order then (ms); if that fails, the copy only looks older."""
    note_time(system.join(directory, FRESH), at)


def is_fresh(directory: str, since: int) -> bool:
    """Return whether a process of this machine began to take in what is in the order after that time (ms), and did."""
    age = noted_age(system.join(directory, FRESH), now := system.time_ns() // 1_000_000)
    return age is not None and 0 <= age < now - since


def copy_age(directory: str) -> float | None:
    """Return the seconds since this machine had all that was in the order; None: nobody noted it."""
    age = noted_age(system.join(directory, FRESH), system.time_ns() // 1_000_000)
    return None if age is None else max(age, 0) / 1000


def save_state(directory: str, state: CopyState) -> bytes:
    """Save the state, and return the file's content; raise ``StorageFailed`` if it cannot be written."""
    body = codec.dumps({**vars(state), "damaged": sorted(state.damaged), "gone": sorted(state.gone)}).encode()
    text = b"%08x " % small_files.checksum(body) + body
    replace_file(system.join(directory, STATE), text, durable=False)
    return text
