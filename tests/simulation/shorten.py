"""A failing run made short, and told in words.

Belongs here: leaving out commands and choices as long as the same promise is broken (delta debugging, Zeller 1999),
the story of what is left: who did what between which calls, and keeping it. ``python -m tests.simulation.shorten NAME
SEED [KIND]`` keeps a world that breaks a promise, whatever the drawing of worlds becomes: plan, commands, choices.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tests.simulation import kinds, machines_run, plans, runs
from tests.simulation.choices import Profile
from tests.simulation.machines_plans import MachinePlan
from tests.simulation.plans import Plan
from tests.simulation.telling import BROKEN, PEACE, READY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.runs import Result

    Jobs = list[plans.Job]
    Made = list[tuple[tuple[str, int], str]]
    Breaks = Callable[[Jobs, Made], bool]


T = TypeVar("T")
TOUCHING = 20
"""Events that are told of what a broken promise is about."""
WRITES = r"write|pwrite(?!.*\{)|rename|replace|unlink|ftruncate|open(?=.*/quiet/)"
"""Calls that change a file; not those that write again what a file has already."""
FILES = (
    r"agent-(mailbox|mailbox-reads|roster)\.jsonl\b(?!\.)|agent-mailbox-archive/2.*jsonl|config\.toml|\.cache/quiet/\w"
)
"""The logs, the configuration, and quiet stamps."""
SYNCS = r"f(data)?sync\(.*(/m|\.jsonl|/boxes(/\w{8})?)\)|rename\(.*/boxes/\w{8}(/[\w-]+)?'\)"
"""Calls that make logs, names, and the user's records of them durable, or that put such a record in its place."""
ANSWER = re.compile(r" = (None|\d+)$")
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
    """The last events of a told story that name what the broken promise is about."""
    return [line for line in told if any(name[:8] in line for name in result.about)][-TOUCHING:]


def words(result: Result) -> Iterator[str]:
    """The run, to the first broken promise: what happened, and the calls that change what others find.

    Ahead of each it says how far the others are, if they made calls since. What a command is for is said once."""
    ready = f"  {READY}"
    story = result.story[result.story.index(ready) + 1 :] if ready in result.story else result.story
    last = {line.partition(": ")[0]: n for n, line in enumerate(story) if not line.startswith(" ")}
    waiting, begun, heard, is_peace = dict[str, list[str]](), set[str](), set[str](), False
    telling = _telling(result)
    for n, line in enumerate(story):
        happened = line.startswith(" ")
        line = line.strip()
        who = next((name for name in last if line.startswith((f"{name} ", f"{name}: "))), "")
        line, starts, meaning = line.partition(" starts: ") if happened else (line, "", "")
        if is_peace and not happened and who not in waiting:  # one runs behind the other
            waiting.clear()
        if starts:
            if meaning not in heard:
                yield f"{line} starts: {meaning}"
            heard.add(meaning)
            begun.add(line)
        elif line in heard:  # it asks the engine again, and hears the same
            continue
        elif happened or telling.search(line):
            if ": ask(" in line:
                heard.add(line)
            waiting.pop(who, None)
            for other, calls in waiting.items():
                if last[other] > n or other in begun:
                    yield f"{other} makes {len(calls)} calls" + (f", the last {calls[-1]}" if last[other] > n else "")
            waiting.clear()
            begun.discard(who)
            yield line if "publish(" in line else ANSWER.sub("", line)
            is_peace = is_peace or line == PEACE
            if line.startswith(BROKEN):
                return
        else:
            waiting.setdefault(who, []).append(line.partition(": ")[2])


def _telling(result: Result) -> re.Pattern[str]:
    """The calls that a story tells. Names and syncs are among them if what broke is about power."""
    about = " ".join([*result.breaches, *(line for line in result.story if line.startswith("  "))])
    syncs = f"|{SYNCS}" if "durable" in about or "power" in about else ""
    return re.compile(rf": (publish\(|ask\('read behind [1-9].*\[\d|({WRITES})\(.*/m/({FILES}){syncs})")


PLACE = Path(__file__).parent / "worlds"


def keep(name: str, seed: int, kind: str = "") -> None:
    """Write the shortened world of a seed, as a ``kind`` of plan, to a file."""
    found = kinds.run(seed, kind)
    if not found.breaches:
        raise SystemExit(f"seed {seed} breaks no promise")
    short = shortened(found, steps=1000)
    plan = kinds.plan_of(seed, kind)
    about = plan._asdict() | {"profile": plan.profile._asdict(), "jobs": [list(job) for job in short.jobs]}
    machines = {"machines": True} if isinstance(plan, MachinePlan) else {}
    about |= {"network": plan.network._asdict()} if isinstance(plan, MachinePlan) else {}
    made = [[process, number, what] for (process, number), what in short.made.items()]
    told = {"seed": seed, "broke": short.breaches[0], "plan": about, "made": made, "story": [*words(short)]}
    PLACE.mkdir(exist_ok=True)
    (PLACE / f"{name}.json").write_text(json.dumps(told | machines, indent=1) + "\n")


def again(name: str) -> runs.Result:
    """Run a kept world."""
    kept = json.loads((PLACE / f"{name}.json").read_text())
    about, only = kept["plan"], {(process, number): what for process, number, what in kept["made"]}
    if kept.get("machines"):
        return machines_run.run(kept["seed"], plan=MachinePlan.again(about), only=only)
    profile = Profile(**about["profile"])
    plan = Plan(**about | {"profile": profile, "jobs": [tuple(job) for job in about["jobs"]]})
    return runs.run(kept["seed"], plan=plan, only=only)


if __name__ == "__main__":
    keep(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
