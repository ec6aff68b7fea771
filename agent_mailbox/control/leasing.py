"""Leases on a mailbox: taking, ending and finding them.

Belongs here: the order of those steps. A lease is a message of its holder to itself: it costs no other agent anything.
One goes with a claimed task: for the files that the task names, until it is over. Another's lease stays, and the
claimer is told of it. The rules are ``core.control.leases``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..control_plane import control_log
from ..core import frame
from ..core.control import lease_paths, messages
from ..core.control.leases import LONGEST, Lease
from ..core.records import Record
from ..core.text import neutral
from ..errors import MailboxError, Malformed, Refused
from ..mailbox.noting import Noting
from ..store.files import system
from ..store.files.edits import Edits
from ..store.user_state import project_paths, work_trees
from .steps import end_notice, note_read, post_message, refuse_unapplied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.control.leases import Leases
    from ..mailbox.open_mailbox import OpenMailbox
    from .task_views import TaskView

_MINUTE = 60_000
TASK_MINUTES = 240
"""A lease for a task ends after that, if the task does not."""


class Held(Record):
    """A path that another session leases."""

    path: str
    lease: Lease


class Leasing:
    """Keeps the leases in an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def leases(self) -> list[Lease]:
        """Return the leases that hold now: the proven ones first, each oldest first."""
        return self._live(control_log.of_leases(self.box).leases)

    def _live(self, fold: Leases) -> list[Lease]:
        found = fold.live(self.box.now())
        gone = self.box.gone({lease.owner for lease in found}) if found else ()
        return [lease for lease in found if lease.owner not in gone]

    def lease(self, me: str, paths: Sequence[str], base: str, minutes: float, note: str = "") -> Lease:
        """Lease paths or patterns to ``me``. ``base`` is the directory that relative ones start from. A lease of
        ``me`` on no others ends, but not that of another task.

        Raises ``Malformed`` for paths that nobody may lease, and ``Refused`` if another session holds one or ``me``
        holds too many.
        """
        if not 0 < minutes * _MINUTE <= LONGEST:
            raise Malformed(f"not a time to lease: {minutes:g} minutes", "pass --for with 1m to 24h")
        project, patterns = _patterns(paths, base)
        self._refuse_held(me, project, patterns)
        now = self.box.now()
        payload = messages.LeasePaths(
            request_id=f"lease-{system.urandom(6).hex()}", project=project, paths=patterns, note=note,
            expires=now + round(minutes * _MINUTE),
        )  # fmt: skip
        fold = control_log.of_leases(self.box).leases
        mine = [one for one in self._live(fold) if (one.owner, one.project) == (me, project)]
        earlier = [one for one in mine if {*one.paths} <= {*patterns} and fold.task_of(one) in ("", note)]
        edits = Edits(self.box.logs)
        edits.leased()
        sent = post_message(self.box, me, payload, (me,))
        edits.leased()
        note_read(self.box, me, {sent.message.id: me})
        made = control_log.of_leases(self.box).leases.get(payload.request_id)
        if made is None:
            refuse_unapplied(self.box, sent, "release one of yours: `agent-mailbox lease list` has them")
            raise Refused(f"{payload.request_id}: it vanished", "lease the paths again")
        try:
            self._refuse_held(me, project, patterns, before=made.place)
        except Refused:  # another took them at the same instant, and was first
            self.release_lease(me, made.id)
            raise
        for one in earlier:  # else others would still be warned of it, after this one's release
            with suppress(Refused):
                self.release_lease(me, one.id)
        return made

    def _refuse_held(self, me: str, project: str, paths: tuple[str, ...], before: float = float("inf")) -> None:
        fold = control_log.of_leases(self.box).leases
        for lease in self._live(fold):
            is_anothers = lease.proven and lease.place < before and not fold.is_owner(me, lease, self.box.now())
            if is_anothers and lease.overlaps(project, paths):
                shown = neutral(lease_paths.shown(lease.project, lease.paths))
                raise Refused(f"{shown} {self.said(lease)}", self.ask(lease), code="leased")

    def also_leased(self, me: str, made: Lease) -> list[Lease]:
        """Return the leases of others that overlap one of ``me``: nothing proves theirs, or nothing proves this."""
        fold = control_log.of_leases(self.box).leases
        others = [one for one in self._live(fold) if one.id != made.id and one.overlaps(made.project, made.paths)]
        return [one for one in others if not fold.is_owner(me, one, self.box.now())]

    def said(self, lease: Lease) -> str:
        """Return who leases it, until when and why."""
        name, until = frame.name_of(lease.owner, self.box.logs.read_roster()), frame.when(lease.ends)[11:]
        note = f': "{frame.quoted(lease.note)}"' if lease.note else ""
        return f"is leased by {name}{'' if lease.proven else ' (unverified)'} until {until}{note}"

    def ask(self, lease: Lease) -> str:
        """Return what to do about another's lease."""
        return (
            f"write to {frame.name_of(lease.owner, self.box.logs.read_roster())}, who can release {neutral(lease.id)}"
        )

    def release_lease(self, me: str, word: str) -> tuple[Lease, bool]:
        """End a lease, by its id or a unique beginning; return whether it was over before, too.

        Raises ``NotFound``, and ``Refused`` unless ``me`` holds it or commands its holder."""
        fold = control_log.of_leases(self.box).leases
        live = self._live(fold)

        def hint() -> str:
            named = [one.id for one in live if _is_named(one, word)]
            return f"to release it, name its id: `agent-mailbox lease release {named[0]}`" if named else ""

        return end_notice(
            self.box, me, word, fold, lambda: control_log.of_request(self.box, word).leases, live,
            messages.LeaseRelease, hint,
        )  # fmt: skip

    def held_by_others(self, me: str, paths: Sequence[str], base: str) -> list[Held]:
        """Return those of the files that another session leases, each with the lease that counts."""
        _refuse_empty(paths)
        fold = control_log.of_leases(self.box).leases
        live = self._live(fold)
        found = []
        for path in paths if live else ():
            lease = self.lease_on(path, base, live)
            if lease is not None and not fold.is_owner(me, lease, self.box.now()):
                found.append(Held(path, lease))
        return found

    def holds(self, me: str, lease: Lease) -> bool:
        """Return whether ``me`` is the holder, or has its place."""
        return control_log.of_leases(self.box).leases.is_owner(me, lease, self.box.now())

    def lease_on(self, path: str, base: str, live: Sequence[Lease]) -> Lease | None:
        """Return the first of the leases that covers a file, proven ones before others."""
        place = project_paths.of(path, base)
        blind = project_paths.is_blind(place.real)
        return next((one for one in live if one.covers(place.project, place.path, blind=blind)), None)

    def settle_leases(self) -> list[Lease]:
        """Return the leases that hold now, having noted for the shim whether one does, or a note names files."""
        if found := self.leases():
            if not Edits(self.box.logs).is_ready():
                Edits(self.box.logs).settle(holds=True)
            return found
        with self.box.logs.messages.held():  # a lease that is written later is noted later
            found = self.leases()
            Edits(self.box.logs).settle(holds=bool(found) or bool(Noting(self.box).with_paths()))
        return found


def lease_for(desk: OpenMailbox, me: str, view: TaskView, directory: str) -> tuple[list[str], str]:
    """Lease what a task that was just claimed names to its holder. Return the paths, and a line about that."""
    task, top = view.task, work_trees.top(directory)
    if view.already or task.hands or top is None:
        return [], ""
    names = project_paths.named_in("\n".join((task.title, task.payload.instructions, task.payload.context)), top)
    if not names:
        return [], ""
    try:
        made = Leasing(desk).lease(me, names, top, TASK_MINUTES, task.id)
    except MailboxError as error:
        return [], f"{error.what}\n" if error.code == "leased" else ""
    shown = neutral(lease_paths.shown(made.project, made.paths))
    return list(made.paths), f"leased to you until it is over: {shown}\n"


def _is_named(lease: Lease, word: str) -> bool:
    """Return whether a word is one of the lease's paths, or its end."""
    end = "/" + word.strip("/")
    return any(f"/{path}".removesuffix("/**").endswith(end) for path in lease.paths)


def _refuse_empty(paths: Sequence[str]) -> None:
    """Raise ``Malformed`` for an empty path: it would mean the working directory."""
    if "" in paths:
        raise Malformed("a path is empty", "name files, or src/parser/**")


def _patterns(paths: Sequence[str], base: str) -> tuple[str, tuple[str, ...]]:
    """Return the project of the paths, and what they are in it; a directory means all below it."""
    _refuse_empty(paths)
    projects: dict[str, None] = {}
    patterns: dict[str, None] = {}
    for path in paths:
        try:
            place = project_paths.of(path, base)
            pattern = place.path
            if system.is_directory(place.real):
                pattern = f"{pattern}/**" if pattern else "**"
            patterns[lease_paths.check(pattern, place.project)] = None
        except ValueError as error:
            raise Malformed(f"{neutral(path)} cannot be leased: {error}", "name files, or src/parser/**") from None
        projects[place.project] = None
    if len(projects) != 1:
        raise Malformed("a lease is for one project: " + ", ".join(map(neutral, projects)), "lease each by its own")
    if len(patterns) > lease_paths.MOST_PATHS:
        raise Malformed(f"a lease has {lease_paths.MOST_PATHS} paths at most: {len(patterns)}", "lease a directory")
    return next(iter(projects)), tuple(patterns)
