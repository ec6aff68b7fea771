"""``scripts/simulate``: run worlds, one after the other; replay one; go on for hours.

Belongs here: the command line, and the sums.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from tests.simulation import directed, kinds, runs, shorten
from tests.simulation.mishaps import Met

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).absolute().parents[2]
LINES = 80
"""How much of a story is told: its end."""


class Sums:
    """What all worlds of a run came to."""

    def __init__(self) -> None:
        self.worlds = self.calls = self.shown = self.acknowledged = self.checks = 0
        self.simulated = self.seconds = 0.0
        self.met: Counter[Met] = Counter()
        self.broken: list[int] = []

    def add(self, result: runs.Result) -> None:
        """Count one."""
        self.worlds += 1
        self.calls += result.calls
        self.shown += result.shown
        self.acknowledged += result.acknowledged
        self.checks += result.checks
        self.simulated += result.simulated
        self.seconds += result.seconds
        self.met.update(result.met)
        if result.breaches:
            self.broken.append(result.seed)

    def save(self, file: str) -> None:
        """Write the sums, and what was met, for ``tests.simulation.pages``."""
        numbers = {name: value for name, value in vars(self).items() if name not in ("met", "broken")}
        met = [[*key, count] for key, count in sorted(self.met.items())]
        said = {"commit": commit(), "broken": len(self.broken), "numbers": numbers}
        Path(file).write_text(json.dumps({"sums": said, "met": met}))

    def merge(self, numbers: dict[str, float]) -> None:
        """Count what another run came to."""
        for name, value in numbers.items():
            setattr(self, name, getattr(self, name) + value)

    def told(self) -> str:
        """One line."""
        rate, days = self.calls / max(self.seconds, 1e-9), self.simulated / 86400
        return (
            f"{self.worlds:,} worlds; {self.calls:,} calls ({rate:,.0f} a second); {days:,.1f} days; "
            f"{self.acknowledged:,} acknowledgements; {self.shown:,} showings; {self.checks:,} looks at the platter; "
            f"{len(self.met):,} distinct (call site, call, fault, state of another)"
        )


def commit() -> str:
    """The present commit, short; empty outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def report(result: runs.Result) -> None:
    """Say what broke, how to replay it, and its short story."""
    print(f"seed {result.seed}: {result.breaches[0]}")
    options = ["--plan", result.kind] if result.kind else []
    options += ["--beside", *result.beside] if result.beside else []
    print(f"replay: {shlex.join(['scripts/simulate', *options])} --seed {result.seed} --commit {commit()}")
    short = shorten.shortened(result)
    print(f"shortened from {len(result.jobs)} commands to {len(short.jobs)}, {result.calls} calls to {short.calls}:")
    told = list(shorten.words(short))
    for line in told[-LINES:]:
        print(f"    {line[:300]}")
    sys.stdout.flush()


def main(words: list[str] | None = None) -> int:
    """Run; the exit code is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="Replay one world.")
    drawing = parser.add_mutually_exclusive_group()
    one, several = kinds.one_machine(), kinds.several_machines()
    drawing.add_argument(
        "--plan", choices=[*one, kinds.MACHINES, *several], default="", metavar="KIND", help="Worlds of one kind."
    )
    drawing.add_argument(
        "--machines", dest="plan", action="store_const", const=kinds.MACHINES, help="Worlds of several machines alone."
    )
    drawing.add_argument(
        "--changed", metavar="REF", help="Worlds that come to the lines which changed since a commit: mostly these."
    )
    drawing.add_argument("--direction", help=argparse.SUPPRESS)  # a file, by ``mutation``
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
        "--hunt",
        type=int,
        nargs="+",
        help="From each of these seeds, end at the first broken promise; print a document.",
    )
    parser.add_argument("--trace", action="store_true", help="Print every call of the world.")
    parser.add_argument(
        "--coverage", help="Write what was met to this file; `python -m tests.simulation.pages FILE…` records it."
    )
    given = parser.parse_args(words)
    if given.commit and commit() and not commit().startswith(given.commit[:7]):
        print(f"this is commit {commit()}: check out {given.commit} first", file=sys.stderr)
        return 2
    if given.seed is not None:
        result = _runner(given)(given.seed, told=given.trace)
        if given.trace:
            print("\n".join(result.story))
        broken = len(result.breaches)
        print(f"seed {result.seed}: {result.calls} calls, digest {result.digest:08x}, {broken} broken promises")
        if result.breaches:
            report(result)
        return 1 if result.breaches else 0
    return _hunt(given) if given.hunt else _many(given)


def _runner(given: argparse.Namespace) -> Callable[..., runs.Result]:
    """How a seed is run, as the options say."""
    if given.changed:
        lines = directed.changed_since(given.changed)
        print(f"{len(lines)} lines changed; looking for the kinds of worlds that come there", file=sys.stderr)
        usual = kinds.one_machine() | {kind: often / kinds.SHARE for kind, often in kinds.several_machines().items()}
        return partial(directed.run, directed.towards(lines, directed.reach(lines, usual), usual))
    if given.direction:
        return partial(directed.run, directed.Direction(*json.loads(Path(given.direction).read_text())))
    return partial(kinds.run, kind=given.plan, beside=given.beside)


def _hunt(given: argparse.Namespace) -> int:
    """Print how it went from each seed; end at the second one that finds nothing. It is measured in the seconds of one
    core, however busy that is."""
    found: list[dict[str, object]] = []
    run = _runner(given)
    for first in given.hunt:
        sums, seed, until = Sums(), first, process_time() + (given.seconds or 60)
        while process_time() < until and not sums.broken:
            result = run(seed)
            sums.add(result)
            seed += 1
        how = {"calls": sums.calls, "seconds": sums.seconds, "worlds": sums.worlds}
        breach = result.breaches[0] if sums.broken else None
        found.append(
            {"from": first, **how, "breach": breach, "seed": result.seed, "kind": result.kind, "beside": result.beside}
        )
        if sum(one["breach"] is None for one in found) == 2:
            break
    print(json.dumps(found))
    return 0


def _many(given: argparse.Namespace) -> int:
    several = partial(kinds.run, kind=kinds.MACHINES)
    run, usual = _runner(given), not (given.plan or given.changed or given.direction)
    until = perf_counter() + (given.hours * 3600 if given.hours else given.seconds or 1e12)
    sums, seed, told = Sums(), given.first, perf_counter()
    while perf_counter() < until and (given.worlds is None or sums.worlds < given.worlds):
        for one in [run] + [several] * (usual and seed % kinds.SHARE == 0):
            result = one(seed)
            sums.add(result)
            if result.breaches:
                report(result)
        seed += 1
        if given.hours and perf_counter() - told > 600:
            print(sums.told(), flush=True)
            told = perf_counter()
            if given.coverage:
                sums.save(given.coverage)
    if given.coverage:
        sums.save(given.coverage)
    print(sums.told())
    print(f"{len(sums.broken)} broken{': seeds ' if sums.broken else ''}{', '.join(map(str, sums.broken))}")
    return 1 if sums.broken else 0


if __name__ == "__main__":
    sys.exit(main())
