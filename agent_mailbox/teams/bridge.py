"""The bridge: a team's mail into the mailbox and the mailbox's into the team, until the team is over.

Belongs here: one bridge a team, one look after the other. It may be killed at any instant and started again: what it
knows stands in the logs and in the team's own files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import Busy, Refused
from ..store import system, watch
from ..store.lock import FileLock
from . import files, naming
from .mirror import Mirror, Step, bury
from .outward import Outward, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..mailbox import Mailbox

DIRECTORY = "teams"
"""Where, among the derived files, bridges hold their locks."""


def looks(where: str, name: str, interval: float, *more: str) -> Iterator[None]:
    """When to look at a team: at once where something changes in it or in the directories besides, and every
    ``interval`` seconds. What a client fetches within milliseconds must be seen before; a look now and then would miss
    much of it."""

    def places() -> list[str]:
        wanted = (os.path.join(where, name), os.path.join(where, name, "inboxes"), *more)
        return [place for place in wanted if os.path.isdir(place)]

    while True:
        here = places()
        with watch.Watch(here) as changes:
            while here == places():
                yield
                changes.wait(watch.deadline(interval))


def run(
    mailbox: Mailbox, where: str, client: str, name: str, interval: float, say: Callable[[str], None], *, once: bool
) -> tuple[int, int]:
    """Bridge the team until it is over (``once``: look once); returns how many messages came in and went out.

    ``say`` is told what cannot be delivered or read, whenever that changes. Raises ``Refused`` beside another bridge of
    the team, ``StorageFailed``.
    """
    place = mailbox.logs.cache(DIRECTORY)
    system.make_directory(place)
    try:
        alone = FileLock(system.join(place, naming.word(name)), 0).take()
    except Busy as error:
        raise Refused(f"team {name} has a bridge: {error.what}", "one is enough", code="bridged") from None
    with alone:
        mirror = Mirror(mailbox, where, name)
        outward = Outward(mailbox, where, client, mirror)
        came, went, before = 0, 0, frozenset[str]()
        over = False
        for _ in looks(where, name, interval, mailbox.directory):
            step, sent = Step(), Sent()
            try:
                step = mirror.step()
                sent = outward.step()
            except Busy as error:
                step = step.replace(problems=(*step.problems, f"{error.what}; looking again"))
            problems = (*step.problems, *sent.problems)
            for problem in problems:
                if problem not in before:
                    say(problem)
            before = frozenset(problems)
            came, went = came + step.new, went + sent.delivered
            over = files.ended(where, mirror.team)
            if over or once or not alone.stands():
                break
        if over:
            outward.step()  # the transcripts outlive the team
            bury(mailbox, name)
        return came, went
