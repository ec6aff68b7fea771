"""``scripts/simulate``: run worlds, one after the other; replay one; go on for hours.

Belongs here: the command line, and the sums.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tests.simulation import kinds, runs, shorten
from tests.simulation.telling import PEACE

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).absolute().parents[2]
LINES, LAST = 60, 20
"""How much of a story is told: lines before nothing goes wrong any more, and of the last look. Ahead of them come
earlier ones that name what the judge compared."""


class Sums:
    """What all worlds of a run came to."""

    def __init__(self) -> None:
        self.worlds = self.calls = self.shown = self.acknowledged = self.checks = 0
        self.simulated = self.seconds = 0.0
        self.broken: list[int] = []

    def add(self, result: runs.Result) -> None:
        self.worlds += 1
        self.calls += result.calls
        self.shown += result.shown
        self.acknowledged += result.acknowledged
        self.checks += result.checks
        self.simulated += result.simulated
        self.seconds += result.seconds
        if result.breaches:
            self.broken.append(result.seed)

    def told(self) -> str:
        rate, days = self.calls / max(self.seconds, 1e-9), self.simulated / 86400
        return (
            f"{self.worlds:,} worlds; {self.calls:,} calls ({rate:,.0f} a second); {days:,.1f} days; "
            f"{self.acknowledged:,} acknowledgements; {self.shown:,} showings; {self.checks:,} looks at the platter"
        )


def commit() -> str:
    """The present commit, short; empty outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def report(result: runs.Result, *, shortly: bool = False) -> None:
    """Say what broke, how to replay it, and its short story; ``shortly``: without that."""
    print(f"seed {result.seed} ({result.kind}): {result.breaches[0]}")
    options = ["--plan", result.kind] if result.kind else []
    options += ["--beside", *result.beside] if result.beside else []
    print(f"replay: {shlex.join(['scripts/simulate', *options])} --seed {result.seed} --commit {commit()}")
    if shortly:
        return
    short = shorten.shortened(result)
    print(f"shortened from {len(result.jobs)} commands to {len(short.jobs)}, {result.calls} calls to {short.calls}:")
    told = list(shorten.words(short))
    peace = told.index(PEACE) if PEACE in told else len(told)
    if touching := shorten.touching(short, told[:peace][:-LINES]):
        print("  earlier events that name these:")
        for line in touching:
            print(f"    {line[:300]}")
        print("  the end:")
    for line in [*told[:peace][-LINES:], *told[peace:][:1], *told[peace:][1:][-LAST:]]:
        print(f"    {line[:300]}")
    sys.stdout.flush()


def main(words: list[str] | None = None) -> int:
    """Run; the exit code is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="Replay one world.")
    one, several = kinds.one_machine(), kinds.several_machines()
    parser.add_argument(
        "--plan", choices=[*one, kinds.MACHINES, *several], default="", metavar="KIND", help="Worlds of one kind."
    )
    parser.add_argument(
        "--machines", dest="plan", action="store_const", const=kinds.MACHINES, help="Worlds of several machines alone."
    )
    parser.add_argument(
        "--beside", nargs="+", default=[], metavar="FUNCTION", help="Draw more there: log.HeldLog.append"
    )
    parser.add_argument("--commit", help="Replay it on that commit: refused on any other.")
    parser.add_argument(
        "--from", dest="first", type=int, default=1, help="The first seed; a second process takes another."
    )
    parser.add_argument("--worlds", type=int, help="How many worlds.")
    parser.add_argument("--hours", type=float, help="For how long.")
    parser.add_argument("--seconds", type=float, help="For how long.")
    parser.add_argument(
        "--until-broken", action="store_true", help="End at the first broken promise, and tell no story."
    )
    parser.add_argument("--trace", action="store_true", help="Print every call of the world.")
    given = parser.parse_args(words)
    if given.commit and commit() and not commit().startswith(given.commit[:7]):
        print(f"this is commit {commit()}: check out {given.commit} first", file=sys.stderr)
        return 2
    some = [kinds.plan_of(seed, given.plan) for seed in range(20)] if given.beside else []
    if some and not any(plan.sited for plan in some):
        parser.error(f"--beside draws nothing more in worlds of the kind {given.plan!r}: leave --plan out")
    if given.seed is not None:
        result = _runner(given)(given.seed, told=given.trace)
        if given.trace:
            print("\n".join(result.story))
        broken = len(result.breaches)
        print(f"seed {result.seed}: {result.calls} calls, digest {result.digest:08x}, {broken} broken promises")
        if result.breaches:
            report(result)
        return 1 if result.breaches else 0
    return _many(given)


def _runner(given: argparse.Namespace) -> Callable[..., runs.Result]:
    """How a seed is run, as the options say."""
    return partial(kinds.run, kind=given.plan, beside=given.beside)


def _many(given: argparse.Namespace) -> int:
    several = partial(kinds.run, kind=kinds.MACHINES)
    run, usual = _runner(given), not given.plan
    until = perf_counter() + (given.hours * 3600 if given.hours else given.seconds or 1e12)
    sums, seed, told = Sums(), given.first, perf_counter()
    while perf_counter() < until and (given.worlds is None or sums.worlds < given.worlds):
        for one in [run] + [several] * (usual and seed % kinds.SHARE == 0):
            result = one(seed)
            sums.add(result)
            if result.breaches:
                report(result, shortly=given.until_broken)
        seed += 1
        if sums.broken and given.until_broken:
            break
        if given.hours and perf_counter() - told > 600:
            print(sums.told(), flush=True)
            told = perf_counter()
    print(sums.told())
    print(f"{len(sums.broken)} broken{': seeds ' if sums.broken else ''}{', '.join(map(str, sums.broken))}")
    return 1 if sums.broken else 0


if __name__ == "__main__":
    sys.exit(main())
