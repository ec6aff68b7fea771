"""Leases: which session works on which paths, and until when.

Belongs here: their fold, and which of them hold at an instant. A lease is its session's own word. It keeps others from
nothing by itself, and is authority for nothing. Only a proven one may stop an edit; an unproven one is a hint.
"""

from __future__ import annotations

from .. import proofs
from ..records import USER, Record
from ..text import word
from . import authority, lease_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Message
    from ..roster import Roster
    from .messages import LeasePaths

LONGEST = 24 * 3600 * 1000
"""Milliseconds that a lease lasts at most: an agent that works longer says so again."""
MOST_HELD = 50
"""Leases that one session holds at an instant."""
MOST_UNPROVEN = 100
"""Unproven leases of all senders at an instant: any program may write more names than there are agents."""


class Lease(Record):
    """A lease. ``ends`` is in ms, at most ``LONGEST`` after the message; ``place`` is its place in the log's order."""

    id: str
    holder: str
    project: str
    paths: tuple[str, ...]
    note: str
    begins: int
    ends: int
    message_id: str
    place: int
    proven: bool
    released: bool = False

    def covers(self, project: str, path: str, *, blind: bool = False) -> bool:
        """Return whether the lease is about that file of that project."""
        return self.project == project and any(lease_paths.covers(one, path, blind=blind) for one in self.paths)

    def overlaps(self, project: str, paths: tuple[str, ...]) -> bool:
        """Return whether it may be about a file that one of the paths covers."""
        return self.project == project and any(lease_paths.overlap(one, other) for one in self.paths for other in paths)


class Leases:
    """The fold of all leases, in log order."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._all: dict[str, Lease] = {}
        self._held: dict[str, list[str]] = {}
        self._latest = 0

    def take(self, message: Message, payload: LeasePaths, speaker: str, place: int) -> bool:
        """Fold a lease in; return False if it is there already. Raise ``ValueError`` with the reason if it is none."""
        is_proven = proofs.speaker(message.proof, message.sender) is not None
        begins, ends = message.timestamp, payload.expires or 0
        made = Lease(
            payload.request_id, speaker, payload.project, payload.paths, payload.note, begins,
            min(ends, begins + LONGEST), message.id, place, is_proven,
        )  # fmt: skip
        known = self._all.get(made.id)
        if known is not None:
            if (known.holder, known.project, known.paths) == (made.holder, made.project, made.paths):
                return False
            raise ValueError("another lease has this id")
        _check(made)
        group, most = (speaker, MOST_HELD) if is_proven else ("", MOST_UNPROVEN)
        held = [one for one in self._held.get(group, ()) if self._holds(self._all[one], begins)]
        if len(held) >= most:
            raise ValueError(f"too many leases: {most} at an instant")
        self._all[made.id] = made
        self._held[group] = [*held, made.id]
        if is_proven:
            self._latest = max(self._latest, begins)
        return True

    def release(self, message: Message, lease_id: str, speaker: str) -> str:
        """Fold the end of a lease in; return its holder. Raise ``ValueError`` with the reason if it ends nothing."""
        lease = self._all.get(lease_id)
        if lease is None:
            raise ValueError("there is no such lease")
        is_proven = proofs.speaker(message.proof, message.sender) is not None
        if lease.proven and not (is_proven and self.may_release(speaker, lease, message.timestamp)):
            raise ValueError(f"the lease is {word(lease.holder)}'s")
        self._all[lease_id] = lease.replace(released=True)
        return lease.holder

    def may_release(self, speaker: str, lease: Lease, when: int) -> bool:
        """Return whether a proven speaker may end the lease: its holder, the holder's lead, or the person."""
        return self.is_holder(speaker, lease, when) or authority.commands(speaker, lease.holder, when, self._roster)

    def is_holder(self, session_id: str, lease: Lease, when: int) -> bool:
        """Return whether the session holds the lease, or has the place of the session that took it."""
        return authority.is_same(session_id, lease.holder, when, self._roster)

    def get(self, lease_id: str) -> Lease | None:
        """Return the lease of an id."""
        return self._all.get(lease_id)

    def live(self, now: int) -> list[Lease]:
        """Return the leases that hold at an instant (ms), oldest first: unproven ones last."""
        found = [lease for lease in self._all.values() if self._holds(lease, now) and not self._is_over(lease)]
        return sorted(found, key=lambda lease: (not lease.proven, lease.place))

    def standing(self, now: int) -> list[str]:
        """Return the messages of the leases that hold."""
        return [lease.message_id for lease in self.live(now)]

    def is_past(self, lease_id: str) -> bool:
        """Return whether a lease is over for good: released, or expired before another was taken."""
        lease = self._all.get(lease_id)
        return lease is not None and (lease.released or lease.ends < self._latest)

    def _holds(self, lease: Lease, now: int) -> bool:
        return not lease.released and lease.begins <= now < lease.ends

    def _is_over(self, lease: Lease) -> bool:
        """Return whether the holder's session ended, and nobody has its place."""
        if lease.holder == USER or self._roster.get(lease.holder) is None:
            return False
        heirs = (heir for heir in self._roster.heirs(lease.holder) if lease.holder in self._roster.estate(heir))
        return not any(self._has_stayed(heir, lease) for heir in heirs)

    def _has_stayed(self, session_id: str, lease: Lease) -> bool:
        """Return whether the holder, or who has its place, did not die since it had the lease. One that comes back from
        the dead leases anew: another may lease the same by then."""
        agent = self._roster.get(session_id)
        if agent is None:
            return True
        heirs = zip(agent.continues, agent.heir, strict=True)
        places = ((old, at) for old, at in heirs if old in agent.inherits)
        passed = (at for old, at in places if lease.holder in self._roster.estate(old))
        return agent.returned <= max(lease.begins, *passed, 0)


def _check(lease: Lease) -> None:
    if not lease.project.startswith("/") or not lease.project.isprintable():
        raise ValueError("the project is no absolute path")
    if not 0 < len(lease.paths) <= lease_paths.MOST_PATHS:
        raise ValueError(f"a lease has 1 to {lease_paths.MOST_PATHS} paths")
    for path in lease.paths:
        lease_paths.check(path, lease.project)
    if lease.ends <= lease.begins:
        raise ValueError("the lease ends before it begins")
