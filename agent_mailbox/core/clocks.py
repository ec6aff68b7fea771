"""Whether a steward may believe its clock: by the signs of life in the mailbox, and by how steadily the clock runs.

Belongs here: the decision, and how long a doubt lasts. ``upkeep.doctor.clock_signs`` reads the signs.

A clock far from every sign is wrong, or the mailbox lay untouched. Both look the same at first, and waiting harms
nobody: no mail hangs on the steward. So it waits for one of these:

- a new sign near the clock: somebody used the mailbox
- a day in which the clock ran steadily, by the time since the machine started, and no other clock left a sign
- the person's word
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .instant import DAY, HOUR, MINUTE
from .records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

FAR = 24 * HOUR
"""Milliseconds between a clock and the nearest sign above which the steward doubts: it calls agents silent, and direct
mail expired, after as long."""
STEADY = DAY
"""Milliseconds of steady running that end a doubt: a wrong clock is noticed and set within a day."""
MOST_UNSEEN = 12 * HOUR
"""Milliseconds counted as steady across a restart at most, for nothing tells how the clock ran meanwhile."""
STEP = 10 * MINUTE
"""Milliseconds by which a clock and the time since the start may drift apart between two looks."""


class ClockDoubt(Record):
    """A look at a doubted clock, in ms.

    ``up`` is the time since the machine's start ``boot`` (-1: unknown), ``newest`` the newest sign, and ``steady`` for
    how long the clock has run steadily.
    """

    now: int
    boot: str
    up: int
    newest: int
    steady: int = 0


def distance(now: int, signs: Iterable[int]) -> int:
    """Return the ms from the clock to the nearest sign; 0 if there is none."""
    return min((abs(now - sign) for sign in signs), default=0)


def doubted(look: ClockDoubt, signs: Iterable[int], before: ClockDoubt | None) -> ClockDoubt | None:
    """Return the look as a doubt, with its steady time since the doubt ``before``; None if the clock is believed."""
    if distance(look.now, signs) <= FAR:
        return None
    steady = 0 if before is None or before.newest != look.newest else before.steady + _steady(before, look)
    return None if steady >= STEADY else look.replace(steady=max(steady, 0))


def _steady(before: ClockDoubt, look: ClockDoubt) -> int:
    """Return for how long the clock ran steadily between two looks; so much less than any doubt if it was set."""
    passed, ran = look.now - before.now, look.up - before.up
    if look.boot == before.boot and look.up >= 0 and before.up >= 0:
        return ran if abs(passed - ran) <= STEP else -STEADY
    return min(passed, MOST_UNSEEN) if passed >= 0 else -STEADY
