"""The bridge: a team's mail into the mailbox and the mailbox's into the team, until the team is over.

Belongs here: one bridge a team, one look after the other. It may be killed at any instant and started again: all it
knows is in the logs and in the team's own files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..clients.team_tasks import team_names
from ..core import naming
from ..core.roster import DEAD
from ..errors import Busy, Refused
from ..store.files import system, watch
from ..store.locks import team_lock
from ..store.locks.lock import FileLock
from . import team_files
from .mirror import Mirror, MirrorStep, members_here, retire_members
from .outward import Outward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..mailbox.mailbox import Mailbox

QUIET = 10
"""Looks are so many times rarer while nothing is left to find out."""


def times_to_look(where: str, name: str, pause: Callable[[], float], *more: str) -> Iterator[None]:
    """Yield when to look at a team: at once after a change in its directories or in ``more``, else after ``pause``
    seconds.

    A client fetches within milliseconds: looking now and then would miss much.
    """

    def watched_places() -> list[str]:
        wanted = (os.path.join(where, name), os.path.join(where, name, "inboxes"), *more)
        return [place for place in wanted if os.path.isdir(place)]

    while True:
        here = watched_places()
        with watch.Watch(here) as changes:
            while here == watched_places():
                yield
                changes.wait(watch.deadline(pause()))


def run_bridge(
    mailbox: Mailbox, where: str, name: str, interval: float, say: Callable[[str], None], *, once: bool
) -> tuple[int, int]:
    """Bridge the team until it is over (``once``: look once); return how many messages came in and went out.

    ``say`` is told each new problem of reading or delivering. Raise ``Refused`` beside another bridge of the team,
    ``StorageFailed``.
    """
    try:
        alone = _take_lock(mailbox, naming.tag(name))
    except Busy as error:
        raise Refused(
            f"team has a bridge already: {name} ({error.what})",
            "let it run, or stop the other `agent-mailbox teams bridge` first",
            code="bridged",
        ) from None
    with alone:
        mirror = Mirror(mailbox, where, name)
        outward = Outward(mailbox, where, mirror)
        came, went, before, over = 0, 0, frozenset[str](), False

        for _ in times_to_look(where, name, lambda: interval if outward.waits else interval * QUIET, mailbox.directory):
            step = MirrorStep()
            try:
                step = mirror.mirror_once()
                went += outward.deliver_once()
                problems = (*step.problems, *outward.problems)
            except Busy as error:
                problems = (*step.problems, f"{error.what}; looking again")
            for problem in problems:
                if problem not in before:
                    say(problem)
            before = frozenset(problems)
            came += step.new
            over = team_files.has_ended(where, mirror.team)
            if over or once or not alone.stands():
                break
        if over:
            outward.deliver_once()  # the transcripts outlive the team
            outward.remove_remains()
            retire_members(mailbox, naming.tag(name))
        return came, went


def bury_past(mailbox: Mailbox, where: str) -> None:
    """Retire the members of teams that ended unseen. A team with a bridge is that bridge's."""
    agents = mailbox.logs.read_roster().agents.values()
    tags = {tag for agent in agents if agent.state != DEAD for tag in agent.tags if tag.startswith("team:")}
    there = {
        naming.tag(name)
        for name in team_names(where)
        if not team_files.has_ended(where, team_files.load_team(where, name))
    }
    for tag in sorted(tags - there):
        try:
            if members_here(mailbox, tag):
                with _take_lock(mailbox, tag):
                    retire_members(mailbox, tag)
        except Busy:
            pass


def _take_lock(mailbox: Mailbox, tag: str) -> FileLock:
    """Take the mailbox's lock on a team (by its tag); raise ``Busy`` beside a bridge."""
    system.make_directory(mailbox.logs.cache(team_lock.DIRECTORY))
    return FileLock(team_lock.place(mailbox.logs, tag), team_lock.ASKED).take()
