"""A machine's copy of a shared mailbox, as it is known here: its saved state, its lines, and the locks.

Belongs here: loading, saving, and looking at what is here, without the engine. ``replica`` takes in and publishes.
"""

from __future__ import annotations

from ...store.archive.archive import Archive
from ...store.archive.archived_digests import ArchivedDigests
from ...store.files import paths, system
from ...store.locks.lock import FileLock
from ...store.log.unordered import Unordered
from ..order.order import CLAIMS, KINDS, MESSAGES, ROSTER
from . import copy_state
from .copy_state import CopyState
from .machine_lock import FILES, AskedOrder, MachineLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...store.log.log import Log
    from ...store.log.logs import Logs
    from ...store.log.replacement import Replaced
    from ..order.order import TotalOrder
    from ..trust.space_judge import SpaceJudge

STEWARD = "steward"


class KnownCopy:
    """The copy in ``logs`` of what is in ``order``; ``directory`` is this machine's own record of it.

    Without a ``judge`` nothing of another machine is proven here, and nothing of this one elsewhere.
    """

    def __init__(self, logs: Logs, order: TotalOrder, directory: str, judge: SpaceJudge | None = None) -> None:
        self.logs = logs
        self.order = AskedOrder(order, self._look_again)
        self.directory = directory
        self.judge = judge
        self.state = CopyState({})
        self._saved = b""
        self.parts: Mapping[str, Unordered] = {}
        self.heard: dict[str, int] | None = None
        self.archive = Archive(logs.path(paths.ARCHIVE), logs.custody)
        self.filed = ArchivedDigests(self.archive)
        self._asked_at = 0

    def machine_lock(self, *, hurried: bool = False) -> MachineLock:
        """Return the machine's lock for a ``with`` block; ``hurried``: see ``MachineLock``."""
        system.make_directory(self.directory)
        return MachineLock(self.directory, self.logs.wait, self.order, hurried=hurried)

    def files_lock(self) -> FileLock:
        """Return the lock of the local files alone, for a ``with`` block."""
        return FileLock(system.join(self.directory, FILES), self.logs.wait)

    def steward_lock(self) -> FileLock:
        """Return the lock of this machine's steward for a ``with`` block; it comes ahead of the machine's lock."""
        system.make_directory(self.directory)
        return FileLock(system.join(self.directory, STEWARD), self.logs.wait)

    def look_beside(self) -> tuple[int, str] | None:
        """Look at what is here, while another process has its turn; return the position of the last record, and its
        digest. None: all of it is to be compared, which needs the turn."""
        self._load_state()
        is_same = all(part.look() for part in self.parts.values())
        state = self.state
        is_sound = is_same and state.applied and state.tip and not (state.compares or state.doubts)
        return (state.applied, state.tip) if is_sound else None

    def _look_again(self) -> None:
        """Look at what another process took in while the engine was asked."""
        self._asked_at = self.state.applied
        if copy_state.read_saved(self.directory) != self._saved:
            self._load_state()
            for part in self.parts.values():
                part.look()

    def look_locally(self) -> None:
        """Look at what is here, without the engine: ``applied`` and ``lines_to_publish`` tell it."""
        self._load_state()
        self._look_at_parts()

    def _look_at_parts(self) -> None:
        if not all(part.look() for part in self.parts.values()):
            paths.refuse_absence(self.logs.directory)
            self._begin_again()  # a log was replaced, or cut

    def _begin_again(self) -> None:
        """Compare all of the local logs with all of the order."""
        self.state.applied, self.state.last, self.heard = 0, {}, dict.fromkeys(KINDS, 0)
        self.state.tip, self.state.damaged = "", set()
        self.state.gone, self.state.keys = set(), {}
        self.parts = {kind: Unordered(self._local_log(kind)) for kind in KINDS}
        for part in self.parts.values():
            part.look()
        self._compare_all()
        if self.order.files is not None:
            self._save_state()  # nobody goes on beside it

    def _compare_all(self) -> None:
        """From the order's beginning on, take what is archived here for taken in."""
        self.state.compares = True
        self.filed.look()

    def part_of(self, log: Log) -> Unordered:
        """Return what is known of a local log's lines."""
        return self.parts[self._kind_of(log)]

    def go_on_in(self, fresh: Replaced) -> None:
        """Go on in the log that took the place of one of the local logs."""
        kind = next(kind for kind in KINDS if self._local_log(kind).path == fresh.path)
        self.parts = {**self.parts, kind: self.parts[kind].replaced(fresh.inode, fresh.places)}

    def _kind_of(self, log: Log) -> str:
        return {self.logs.messages.path: MESSAGES, self.logs.roster.path: ROSTER}.get(log.path, CLAIMS)

    def _local_log(self, kind: str) -> Log:
        return {MESSAGES: self.logs.messages, ROSTER: self.logs.roster}.get(kind, self.logs.reads)

    def _load_state(self) -> None:
        self._saved = copy_state.read_saved(self.directory)
        self.state = state = copy_state.parse_saved(self._saved)
        if self.judge is not None:
            self.judge.begin_from(state.numbers, state.refused)
        self.heard = None if state.applied else dict.fromkeys(KINDS, 0)
        self.parts = {kind: Unordered(self._local_log(kind), *state.marks.get(kind, (0, 0, []))) for kind in KINDS}
        if state.compares:
            self._compare_all()

    def _save_state(self) -> None:
        for part in self.parts.values():
            part.secure()
        self.state.marks = {kind: part.saved() for kind, part in self.parts.items()}
        if self.judge is not None:
            self.state.numbers, self.state.refused = self.judge.numbers, self.judge.refused
        self._saved = copy_state.save_state(self.directory, self.state)
