"""Standing notices: a session's own word that holds for a while, such as a lease or a watch.

Belongs here: what all of them have in common: their fold, how many hold at an instant, who may end one. ``leases`` and
``watches`` have what theirs say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..frame import word
from ..records import USER, Record
from . import authority

if TYPE_CHECKING:
    from ..roster import Roster
    from .control_requests import ControlStep

MOST_UNPROVEN = 100
"""Unproven notices of one kind, of all senders, at an instant: any program may write more names than there are
agents."""


class StandingNotice(Record):
    """A notice. ``owner`` is the session whose word it is; instants are in ms; ``place`` is its place in the log's
    order. ``over``: it was ended, or what it waits for happened."""

    id: str
    owner: str
    begins: int
    ends: int
    message_id: str
    place: int
    proven: bool
    over: bool

    def check(self) -> None:
        """Raise ``ValueError`` with the reason if nobody can give such a notice."""


N = TypeVar("N", bound=StandingNotice)


class StandingNotices(Generic[N]):
    """The fold of all notices of one kind, in log order."""

    NOTICE: ClassVar[Any]
    KIND: ClassVar[str]
    LONGEST: ClassVar[int]
    MOST_HELD: ClassVar[int]
    OWNER: ClassVar[str]
    SAME: ClassVar[tuple[str, ...]]

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._all: dict[str, N] = {}
        self._held: dict[str, list[str]] = {}
        self._latest = 0

    def add(self, step: ControlStep, payload: Any) -> bool:
        """Fold a notice in; return False if it is there already. Raise ``ValueError`` with the reason if it is none."""
        begins = step.message.timestamp
        made: N = self.NOTICE(
            id=payload.request_id, owner=step.speaker, begins=begins,
            ends=min(payload.expires or 0, begins + self.LONGEST), message_id=step.message.id, place=step.place,
            proven=step.is_proven, over=False,
            **{name: getattr(payload, name) for name in self.NOTICE.__annotations__},  # those of its kind alone
        )  # fmt: skip
        known = self._all.get(made.id)
        if known is not None:
            if all(getattr(known, name) == getattr(made, name) for name in self.SAME):
                return False
            raise ValueError(f"another {self.KIND} has this id")
        made.check()
        if made.ends <= made.begins:
            raise ValueError(f"the {self.KIND} ends before it begins")
        group, most = (made.owner, self.MOST_HELD) if made.proven else ("", MOST_UNPROVEN)
        held = [one for one in self._held.get(group, ()) if self.holds(self._all[one], made.begins)]
        if len(held) >= most:
            raise ValueError(f"too many {self.plural}: {most} at an instant")
        self._all[made.id] = made
        self._held[group] = [*held, made.id]
        if made.proven:
            self._latest = max(self._latest, made.begins)
        return True

    def end(self, step: ControlStep, notice_id: str) -> str:
        """Fold the end of a notice in; return its owner. Raise ``ValueError`` with the reason if it ends nothing."""
        notice = self.find(notice_id)
        if notice.proven and not (step.is_proven and self.may_end(step.speaker, notice, step.message.timestamp)):
            raise ValueError(f"the {self.KIND} is {word(notice.owner)}'s")
        self._all[notice_id] = notice.replace(over=True)
        return notice.owner

    def may_end(self, speaker: str, notice: N, when: int) -> bool:
        """Return whether a proven speaker may end it: its owner, the owner's lead, or the person."""
        return self.is_owner(speaker, notice, when) or authority.commands(speaker, notice.owner, when, self._roster)

    def is_owner(self, session_id: str, notice: N, when: int) -> bool:
        """Return whether the session is the owner, or has its place."""
        return authority.is_same(session_id, notice.owner, when, self._roster)

    def get(self, notice_id: str) -> N | None:
        """Return the notice of an id."""
        return self._all.get(notice_id)

    @property
    def plural(self) -> str:
        """Return the word for several of them."""
        return f"{self.KIND}{'es' if self.KIND.endswith('ch') else 's'}"

    def find(self, notice_id: str) -> N:
        """Return the notice of an id. Raise ``ValueError`` if there is none."""
        notice = self._all.get(notice_id)
        if notice is None:
            raise ValueError(f"there is no such {self.KIND}")
        return notice

    def live(self, now: int) -> list[N]:
        """Return the notices that hold at an instant (ms), oldest first."""
        return [one for one in self._all.values() if self.holds(one, now) and self.is_kept(one)]

    def holds(self, notice: N, when: int) -> bool:
        """Return whether it holds at an instant (ms), as far as the log tells."""
        return not notice.over and notice.begins <= when < notice.ends

    def is_kept(self, notice: N) -> bool:
        """Return whether its owner did not end, or somebody has its mail."""
        return notice.owner == USER or self._roster.get(notice.owner) is None or bool(self._roster.heirs(notice.owner))

    def standing(self, now: int) -> list[str]:
        """Return the messages of the notices that hold."""
        return [one.message_id for one in self.live(now)]

    def is_past(self, notice_id: str, now: int) -> bool:
        """Return whether a notice is over for good: ended, or expired before another was given, whose clock may have
        been ahead of ``now``."""
        notice = self._all.get(notice_id)
        return notice is not None and (notice.over or notice.ends < min(self._latest, now))
