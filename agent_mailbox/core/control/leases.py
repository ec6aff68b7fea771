"""Leases: which session works on which paths, and until when.

Belongs here: their fold, and which of them hold at an instant. A lease is its session's own word. It keeps others from
nothing by itself, and is authority for nothing. Only a proven one may stop an edit; an unproven one is a hint.

A proven one whose note is a task that its holder has goes with that task. It ends as soon as the holder has it no more,
by whose word and step that may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import USER
from ..roster import DEAD
from . import lease_paths
from .standing_notices import MOST_UNPROVEN as MOST_UNPROVEN
from .standing_notices import StandingNotice, StandingNotices

if TYPE_CHECKING:
    from ..roster import Agent, Roster
    from .control_requests import ControlStep
    from .messages import LeasePaths
    from .tasks import Tasks

LONGEST = 24 * 3600 * 1000
"""Milliseconds that a lease lasts at most: an agent that works longer says so again."""
MOST_HELD = 50
"""Leases that one session holds at an instant."""


class Lease(StandingNotice):
    """A lease: its ``owner`` works on these paths of a project."""

    project: str
    paths: tuple[str, ...]
    note: str

    def check(self) -> None:
        if not self.project.startswith("/") or not self.project.isprintable():
            raise ValueError("the project is no absolute path")
        if not 0 < len(self.paths) <= lease_paths.MOST_PATHS:
            raise ValueError(f"a lease has 1 to {lease_paths.MOST_PATHS} paths")
        for path in self.paths:
            lease_paths.check(path, self.project)

    def covers(self, project: str, path: str, *, blind: bool = False) -> bool:
        """Return whether the lease is about that file of that project."""
        return self.project == project and any(lease_paths.covers(one, path, blind=blind) for one in self.paths)

    def overlaps(self, project: str, paths: tuple[str, ...]) -> bool:
        """Return whether it may be about a file that one of the paths covers."""
        return self.project == project and any(lease_paths.overlap(one, other) for one in self.paths for other in paths)


class Leases(StandingNotices[Lease]):
    """The fold of all leases, in log order. ``tasks``: the log's, folded alongside."""

    NOTICE = Lease
    KIND, OWNER, SAME = "lease", "holder", ("owner", "project", "paths")
    LONGEST, MOST_HELD = LONGEST, MOST_HELD

    def __init__(self, roster: Roster, tasks: Tasks) -> None:
        super().__init__(roster)
        self._tasks = tasks
        self._claims: dict[str, str] = {}

    def add(self, step: ControlStep, payload: LeasePaths) -> bool:
        is_new, task = super().add(step, payload), self._tasks.get(payload.note)
        if is_new and task is not None and step.is_proven and step.is_by_holder(task.answerer):
            self._claims[payload.request_id] = task.claim
        return is_new

    def task_of(self, lease: Lease) -> str:
        """Return the task that a lease goes with; empty if it goes with none."""
        return lease.note if lease.id in self._claims else ""

    def holds(self, notice: Lease, when: int) -> bool:
        """Return whether it holds at an instant, and its holder still has the task that it goes with."""
        claim, task = self._claims.get(notice.id), self._tasks.get(notice.note)
        is_left = claim is not None and task is not None and (task.is_over or task.claim != claim)
        return super().holds(notice, when) and not is_left

    def live(self, now: int) -> list[Lease]:
        """Return the leases that hold at an instant (ms), oldest first: unproven ones last."""
        return sorted(super().live(now), key=lambda lease: not lease.proven)

    def is_kept(self, notice: Lease) -> bool:
        """Return whether the holder's session did not end, or somebody has its place."""
        if notice.owner == USER or self._roster.get(notice.owner) is None:
            return True
        line = (agent for agent in self._roster.line(notice.owner) if agent.state != DEAD)
        heirs = (agent for agent in line if notice.owner in self._roster.estate(agent.session_id))
        return any(self._has_stayed(heir, notice) for heir in heirs)

    def _has_stayed(self, agent: Agent, lease: Lease) -> bool:
        """Return whether the holder, or who has its place, did not die since it had the lease. One that comes back from
        the dead leases again: another may lease the same by then."""
        heirs = zip(agent.continues, agent.heir, strict=True)
        places = ((old, at) for old, at in heirs if old in agent.inherits)
        passed = (at for old, at in places if lease.owner in self._roster.estate(old))
        return agent.returned <= max(lease.begins, *passed, 0)
