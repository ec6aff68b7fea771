"""Every kind of world by its name, how often it is drawn, and how it is run.

Belongs here: one door to the worlds of one machine (``plans``) and of several (``machines_plans``). A kind's first word
is its family; ``machines`` alone is any of several machines, and no name any of one machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation import machines_plans, machines_run, machines_sweeps, plans, runs

if TYPE_CHECKING:
    from tests.simulation.machines_plans import MachinePlan
    from tests.simulation.plans import Plan

MACHINES = "machines"
SHARE = 4
"""One in so many worlds is followed by one of several machines, from the same seed."""


def one_machine() -> dict[str, float]:
    """Each kind of one machine, and how often it is drawn."""
    return plans.kinds()


def several_machines() -> dict[str, float]:
    """Each kind of several machines, and how often it is drawn of these."""
    return {f"{MACHINES} {name}": often for name, often in machines_sweeps.kinds().items()}


def plan_of(seed: int, kind: str) -> Plan | MachinePlan:
    """What a seed means as a plan of a kind."""
    family, _, name = kind.partition(" ")
    return machines_plans.plan_of(seed, kind=name) if family == MACHINES else plans.plan_of(seed, kind=kind)


def run(seed: int, kind: str = "", **more: Any) -> runs.Result:
    """Run the world of a seed as a plan of a kind; ``more`` as ``runs.run`` takes it."""
    family, _, name = kind.partition(" ")
    if family == MACHINES:
        return machines_run.run(seed, kind=name, **more)._replace(kind=kind)
    return runs.run(seed, kind=kind, **more)
