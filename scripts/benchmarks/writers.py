"""Throughput: durable writers that begin together, beside raw locked appends on the same disk in the same run.

Belongs here: the order of the runs and the arithmetic of rates.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import TYPE_CHECKING

from .children import Child

if TYPE_CHECKING:
    from pathlib import Path

    from .world import World

MANY = 8
REPEATS = 5
ONE_RATE, MANY_RATE, RAW_ONE, RAW_MANY = "1 writer", "8 writers", "raw appends, 1 process", "raw appends, 8 processes"
GAIN, RAW_GAIN, OF_RAW, UNFAIR = (
    "8 writers : 1",
    "raw appends, 8 : 1",
    "8 writers : raw appends by 8",
    "fastest : slowest of 8 writers",
)


def figures(scratch: Path, world: World, count: int) -> list[tuple[str, float, str]]:
    """(name, median over the repeats, unit) of every figure; ``count`` messages by each of the eight."""
    seen: dict[str, list[float]] = {}
    log = str(scratch / "raw")

    def note(name: str, value: float) -> float:
        seen.setdefault(name, []).append(value)
        return value

    for _ in range(REPEATS):
        one, _ = _rate(scratch, "write", str(world.directory), 1, 2 * count)
        raw_one, _ = _rate(scratch, "raw", log, 1, 2 * count)
        many, unfair = _rate(scratch, "write", str(world.directory), MANY, count)
        raw_many, _ = _rate(scratch, "raw", log, MANY, count)
        for name, value in ((ONE_RATE, one), (MANY_RATE, many), (RAW_ONE, raw_one), (RAW_MANY, raw_many)):
            note(name, value)
        note(GAIN, many / one)
        note(RAW_GAIN, raw_many / raw_one)
        note(OF_RAW, many / raw_many)
        note(UNFAIR, unfair)
    rates = (ONE_RATE, MANY_RATE, RAW_ONE, RAW_MANY)
    return [(name, statistics.median(values), "/s" if name in rates else "×") for name, values in seen.items()]


def _rate(scratch: Path, job: str, place: str, processes: int, count: int) -> tuple[float, float]:
    """(appends a second of all together, the fastest's rate by the slowest's)."""
    with ExitStack() as stack:
        names = [f"writer-{k}" for k in range(processes)]
        children = [stack.enter_context(Child(scratch, job, place, name, str(count))) for name in names]
        for child in children:
            child.release()
    answers = [child.answer for child in children]
    lasted = [answer["ended"] - answer["started"] for answer in answers]
    whole = max(answer["ended"] for answer in answers) - min(answer["started"] for answer in answers)
    return processes * count / whole, max(lasted) / min(lasted)
