"""The replicator: one process a machine that keeps its copy up with the order, until it is told to end.

Belongs here: when to look, and what to do while the engine is away. It holds nothing that a kill could lose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Busy, StorageFailed, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..mailbox.replica import Replica

TURN = 1.0
"""Seconds until what this machine's sessions read is shipped, if nothing else happens."""
LONGEST = 30.0
"""Most seconds between two attempts to reach an engine that is away."""


def run(
    copy: Replica, ended: Callable[[], bool], told: Callable[[str], None], pause: Callable[[float], object]
) -> None:
    """Catch up whenever there is something new, in the order or here. ``told`` hears of what changes; ``pause`` waits
    for so many seconds, or until the end."""
    away, delay, ends = "", TURN, None
    while not ended():
        try:
            before = copy.logs.ends()
            if ends != before or copy.order.end() > copy.applied:
                with copy.held():
                    copy.catch_up()
                ends = before  # what came meanwhile is seen next time
            if away:
                told("engine is back")
            away, delay = "", TURN
            copy.order.wait(copy.applied, TURN)
        except (Unavailable, Busy, StorageFailed) as error:
            if error.what != away:
                told(error.what)
            away = error.what
            pause(delay)
            delay = min(delay * 2, LONGEST)
