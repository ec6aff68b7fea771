"""Worlds that once broke a promise, as short as they were found, whatever the drawing of worlds becomes.

``python -m tests.simulation.kept NAME SEED [KIND]`` keeps the world of a seed that breaks one. Belongs here: writing
such a world to a file, and running it again. A file holds what the seed meant then: plan, commands, choices.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.simulation import kinds, machines_run, runs, shorten
from tests.simulation.machines_plans import MachinePlan
from tests.simulation.plans import Plan
from tests.simulation.profile import Profile

PLACE = Path(__file__).parent / "worlds"


def keep(name: str, seed: int, kind: str = "") -> None:
    """Write the shortened world of a seed, as a ``kind`` of plan, to a file."""
    found = kinds.run(seed, kind)
    if not found.breaches:
        raise SystemExit(f"seed {seed} breaks no promise")
    short = shorten.shortened(found, steps=1000)
    plan = kinds.plan_of(seed, kind)
    about = plan._asdict() | {"profile": plan.profile._asdict(), "jobs": [list(job) for job in short.jobs]}
    machines = {"machines": True} if isinstance(plan, MachinePlan) else {}
    about |= {"network": plan.network._asdict()} if isinstance(plan, MachinePlan) else {}
    made = [[process, number, what] for (process, number), what in short.made.items()]
    told = {"seed": seed, "broke": short.breaches[0], "plan": about, "made": made, "story": [*shorten.words(short)]}
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
