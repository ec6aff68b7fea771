"""A machine's copy of a shared mailbox, as those see it who work on it.

Belongs here: what ``following``, ``lost_records``, ``publishing`` and ``comparison`` ask of the copy (``replica``). All
of it is under the machine's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.records import Proof
    from ..store.archive.archive import Archive
    from ..store.archive.archived_digests import ArchivedDigests
    from ..store.log.log import Log
    from ..store.log.logs import Logs
    from ..store.log.replacement import Replaced
    from ..store.log.unordered import Unordered
    from .copy.copy_state import CopyState
    from .copy.machine_lock import AskedOrder
    from .copy.send_queue import SendQueue
    from .order.order import Ordered
    from .trust.space_judge import SpaceJudge
else:
    Protocol = object


class LocalCopy(Protocol):
    """The copy that follows a steward; ``parts``: what is known of each log's lines."""

    logs: Logs
    directory: str
    order: AskedOrder
    archive: Archive
    filed: ArchivedDigests
    judge: SpaceJudge | None
    parts: Mapping[str, Unordered]

    def part_of(self, log: Log) -> Unordered:
        """Return what is known of a local log's lines."""

    def go_on_in(self, fresh: Replaced) -> None:
        """Go on in the log that took the place of one of the local logs."""

    def all_records(self) -> Iterator[Ordered]:
        """Return all records of the order."""


class ComparedCopy(LocalCopy, Protocol):
    """The copy that is compared. ``heard``: the sum of all that this process took in, by log; None: not of all."""

    state: CopyState
    heard: dict[str, int] | None


class PublishingCopy(LocalCopy, Protocol):
    """The copy that publishes, caught up."""

    state: CopyState
    queue: SendQueue

    def take_in(self, proofs: Mapping[bytes, Proof | None]) -> int:
        """Write what is new in the order; ``proofs`` are those of lines that this machine has just published."""
