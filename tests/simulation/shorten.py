"""A failing run made short, and told in words.

Belongs here: leaving out commands and choices as long as the same promise is broken (delta debugging, Zeller 1999),
and the story of what is left: who did what between which calls.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from tests.simulation import kinds, plans, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.runs import Result

    Jobs = list[plans.Job]
    Made = list[tuple[tuple[str, int], str]]
    Breaks = Callable[[Jobs, Made], bool]

T = TypeVar("T")


def shortened(found: Result, seconds: float = 20.0) -> Result:
    """The shortest run that was found within the time and breaks the same promise."""
    wanted = {runs.kind(breach) for breach in found.breaches}
    until = perf_counter() + seconds
    jobs, choices = list(found.jobs), list(found.made.items())

    def breaks(jobs: list[plans.Job], choices: list[tuple[tuple[str, int], str]]) -> bool:
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


def _fewer_jobs(jobs: Jobs, choices: Made, breaks: Breaks, until: float) -> Jobs:
    return _fewer(jobs, lambda some: breaks(some, choices), until)


def _fewer_choices(jobs: Jobs, choices: Made, breaks: Breaks, until: float) -> Made:
    return _fewer(choices, lambda some: breaks(jobs, some), until)


def _fewer(items: list[T], breaks: Callable[[list[T]], bool], until: float) -> list[T]:
    step = max(len(items) // 2, 1)
    while items and perf_counter() < until:
        start, left = 0, len(items)
        while start < len(items) and perf_counter() < until:
            without = items[:start] + items[start + step :]
            if breaks(without):
                items = without
            else:
                start += step
        if step == 1 and len(items) == left:
            break
        step = max(step // 2, 1)
    return items


def words(result: Result) -> Iterator[str]:
    """The run, a line for each stretch of one process's calls, and for each thing that befell one."""
    who, first, last, count = "", "", "", 0
    for line in [*result.story, ""]:
        name, colon, call = line.partition(": ")
        if colon and not line.startswith(" ") and name == who:
            last, count = call, count + 1
            continue
        if count:
            yield f"{who} makes {count} calls: {first}" + (f" … {last}" if count > 1 else "")
        who, first, last, count = "", "", "", 0
        if line.startswith(" ") or not colon:
            if line:
                yield line.strip()
        else:
            who, first, last, count = name, call, call, 1
