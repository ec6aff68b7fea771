"""In which order tests run on several workers: those that wait come first, so that none is left alone at the end.

Belongs here: the order of one run. Which worker takes over from another one is xdist's matter (``worksteal``).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WAITING = tuple(f"tests/{name}/" for name in ("console", "e2e", "engine", "faults", "fuzz", "judge", "swarm"))
"""Where the tests take seconds each, most of which they wait for clients, browsers and servers."""


def deal_out(tests: Sequence[str], workers: int) -> list[int]:
    """Return the places of the tests (by their node ids) in the order to run them.

    Each worker is given an equal part of the whole at first. Here each part begins with some of the files whose tests
    wait. Every other part has these in reverse order: while a browser is waited for, a client computes.
    """
    files = [
        list(places) for _, places in itertools.groupby(range(len(tests)), lambda at: tests[at].partition("::")[0])
    ]
    waiting = [places for places in files if tests[places[0]].startswith(WAITING)]
    others = [at for places in files if places not in waiting for at in places]
    dealt: list[int] = []
    for worker in range(workers):
        mine = waiting[worker::workers][:: -1 if worker % 2 else 1]
        part = [at for places in mine for at in places]
        fair = (len(tests) - len(dealt)) // (workers - worker)
        more = max(0, fair - len(part))
        dealt += [*part, *others[:more]]
        del others[:more]
    return [*dealt, *others]
