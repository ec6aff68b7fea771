"""A failing run made short, and told in words.

Belongs here: leaving out commands and choices as long as the same promise is broken (delta debugging, Zeller 1999),
and the story of what is left: who did what between which calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tests.simulation import kinds, plans, runs
from tests.simulation.world import ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.runs import Result

    Jobs = list[plans.Job]
    Made = list[tuple[tuple[str, int], str]]
    Breaks = Callable[[Jobs, Made], bool]

T = TypeVar("T")
TOUCHING = 20
"""Events that are told of what a broken promise is about."""


STEPS = 200
"""Runs that shortening takes at most: as many on a busy machine as on another."""


class Steps:
    """How many runs are left."""

    def __init__(self, left: int) -> None:
        self.left = left


def shortened(found: Result, steps: int = STEPS) -> Result:
    """The shortest run that was found within so many steps and breaks the same promise."""
    wanted = {runs.kind(breach) for breach in found.breaches}
    until = Steps(steps)
    jobs, choices = list(found.jobs), list(found.made.items())

    def breaks(jobs: list[plans.Job], choices: list[tuple[tuple[str, int], str]]) -> bool:
        until.left -= 1
        again = kinds.run(found.seed, found.kind, beside=found.beside, jobs=jobs, only=dict(choices))
        return not wanted.isdisjoint(map(runs.kind, again.breaches))

    if not breaks(jobs, choices):
        return found
    rounds = _fewer(_rounds(jobs), lambda some: breaks(_jobs(some), choices), until)
    jobs = _jobs(rounds)
    for _ in range(2):
        jobs = _fewer_jobs(jobs, choices, breaks, until)
        names = {str(place) for place, _, _ in jobs}
        ours = [c for c in choices if c[0][0].removeprefix("after ").split(" ")[0].rstrip("+") in names]
        choices = ours if breaks(jobs, ours) else choices
        choices = _fewer_choices(jobs, choices, breaks, until)
    return kinds.run(found.seed, found.kind, beside=found.beside, jobs=jobs, only=dict(choices), told=True)


def _rounds(jobs: Jobs) -> list[Jobs]:
    """The rounds of a drill, which hardly need each other; a long world is one."""
    found: list[Jobs] = [[]]
    for job in jobs:
        if job[1] == plans.CALM:
            found.append([])
        found[-1].append(job)
    return found


def _jobs(rounds: list[Jobs]) -> Jobs:
    return [job for round_ in rounds for job in round_]


def _fewer_jobs(jobs: Jobs, choices: Made, breaks: Breaks, until: Steps) -> Jobs:
    return _fewer(jobs, lambda some: breaks(some, choices), until)


def _fewer_choices(jobs: Jobs, choices: Made, breaks: Breaks, until: Steps) -> Made:
    return _fewer(choices, lambda some: breaks(jobs, some), until)


def _fewer(items: list[T], breaks: Callable[[list[T]], bool], until: Steps) -> list[T]:
    step = max(len(items) // 2, 1)
    while items and until.left > 0:
        start, left = 0, len(items)
        while start < len(items) and until.left > 0:
            without = items[:start] + items[start + step :]
            if breaks(without):
                items = without
            else:
                start += step
        if step == 1 and len(items) == left:
            break
        step = max(step // 2, 1)
    return items


def touching(result: Result, told: list[str]) -> list[str]:
    """The last events of a told story that name what the broken promise is about; none, if all do or none does."""
    names = [name[:8] for name in result.about]
    found = [line for line in told if any(name in line for name in names)]
    return found[-TOUCHING:]


def words(result: Result) -> Iterator[str]:
    """The run, a line for each stretch of one process's calls, for each question to the engine, and for each thing that
    befell one."""
    who, calls = "", list[str]()
    for line in [*result.story, ""]:
        name, colon, call = line.partition(": ")
        if colon and not line.startswith(" ") and name == who:
            calls.append(call)
            continue
        yield from _stretch(who, calls)
        who, calls = "", []
        if line.startswith(" ") or not colon:
            if line:
                yield line.strip()
        else:
            who, calls = name, [call]


def _stretch(who: str, calls: list[str]) -> Iterator[str]:
    if calls:
        yield f"{who} makes {len(calls)} calls: {calls[0]}" + (f" … {calls[-1]}" if len(calls) > 1 else "")
        yield from (f"{who}: {call}" for call in calls[1:-1] if call.partition("(")[0] in ENGINE)
