"""``scripts/mutate``: draw mutants that nobody chose, and say how many are found: by tests, by the simulation, by none.

A mutant is put into a forked process that has imported all (``warm``). It first runs the tests that reach the changed
line (``reached``); then mypy looks. Those that neither finds are tried in worlds, in which more befalls their function;
of the others each tenth is. So the second share is of a sample. Tests of real clients, of the browser and of strace are
left out.

Each result is kept as it comes, so a draw that was stopped goes on where it was. Survivors are printed as patches. No
mutant is kept: a survivor that counts becomes a test, and ``--again`` tries the survivors with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from math import sqrt
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from tests.faults import reached, warm
from tests.faults.drawing import ROOMS, draw
from tests.helpers import ROOT
from tests.simulation import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.faults.drawing import Drawn

TESTS = (
    *("core", "judge", "store", "cli", "trust", "engine", "claude", "mcp", "console", "swarm", "teams", "fuzz"),
    "simulation/test_found.py",
)
SAMPLE = 10
"""One in so many of those that tests find is tried in worlds."""
SECONDS = 120
"""Of the processor: as long run the tests of one mutant, at most. Only one that survives takes so long. In 20 seconds a
third of the tests that reach a busy line were tried, and the ones that find it were among the others."""


def find_by_tests(there: warm.Warm, tests: list[str], mutant: Drawn) -> str:
    """Return the test that notices; empty if none does. It must do so twice, the second time alone, and pass without
    the mutant: a busy machine makes tests fail, too."""
    left, put = tests, lambda: warm.put_in_place(mutant.path, mutant.text)
    while left and (failed := there.first_failure(left, put)):
        name = failed.removeprefix(warm.ENDLESS)
        if name != failed or name not in left:
            return failed
        if there.first_failure([name], put) and not there.first_failure([name], lambda: None):
            return failed
        left = left[left.index(name) + 1 :]
    return ""


def find_by_types(mutant: Drawn) -> str:
    """Return the first error that mypy finds, as each push would; empty if it finds none."""
    with NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as shadow:
        shadow.write(mutant.text)
        shadow.flush()
        command = [sys.executable, "-m", "mypy", "--no-error-summary", "--shadow-file", mutant.path, shadow.name]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode > 1:  # it did not look: its cache cannot be written, or the like
        raise RuntimeError(found.stderr or found.stdout)
    return f"mypy: {found.stdout.partition(chr(10))[0]}" if found.returncode else ""


def find_by_worlds(mutant: Drawn, worlds: int) -> str:
    """Return the first world that breaks; empty if none does."""
    beside = [f"{mutant.path.stem}.{mutant.within}"]

    def run(tell: Callable[[str], None]) -> None:
        warm.put_in_place(mutant.path, mutant.text)
        for seed in range(1, worlds + 1):
            for kind in ("", kinds.MACHINES)[: 1 + (seed % kinds.SHARE == 0)]:
                tell(f"{warm.ENDLESS}seed {seed} {kind}")
                result = kinds.run(seed, kind=kind, beside=beside)
                if result.breaches:
                    tell(f"seed {seed} ({result.kind}): {result.breaches[0]}")
                    return
        tell("")

    return warm.in_a_fork(run)


def told_share(name: str, found: int, of: int) -> str:
    """Return a share in words, with where the true one is in 95 of 100 cases (Wilson)."""
    z, share = 1.96, found / of
    middle, wide = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + sign * wide) / (1 + z * z / of) for sign in (-1, 1))
    return f"{found} of {of} found by {name}: {share:.0%} ({low:.0%} to {high:.0%})"


def main(given: Iterable[str] | None = None) -> int:
    """Draw, try out, sum up. The exit code is 0, whatever survives: a survivor is judged by a person."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="What is drawn; each seed draws others.")
    parser.add_argument("--count", type=int, default=10, help="How many.")
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=ROOMS, help="Where.")
    parser.add_argument("--worlds", type=int, default=40, metavar="N", help="Worlds for each; 0: none.")
    parser.add_argument("--again", action="store_true", help="Try what survived before once more.")
    parser.add_argument("--results", type=Path, metavar="FILE", help="Where results are kept.")
    parser.add_argument("--list", action="store_true", help="Only say what is drawn.")
    options = parser.parse_args(given if given is None else [*given])
    chosen = draw(options.seed, options.count, tuple(options.rooms))
    if options.list:
        print("\n".join(f"{mutant.name} in {mutant.within}" for mutant in chosen))
        return 0
    place = options.results or reached.KEPT / f"drawn-{options.seed}.jsonl"
    known = _results(place)
    if any(_is_left(mutant, known, again=options.again) for mutant in chosen):
        warm.start(TESTS, lambda there: _try_all(there, chosen, known, place, options))
    return _sum_up(chosen, known, options.seed)


def _results(place: Path) -> dict[str, dict[str, Any]]:
    """Return what is known of each mutant, by its patch: the last word of each."""
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else ()
    return {row["patch"]: row for row in map(json.loads, lines)}


def _is_left(mutant: Drawn, known: dict[str, dict[str, Any]], *, again: bool) -> bool:
    row = known.get(mutant.diff())
    return row is None or (again and not row["test"])


def _try_all(
    there: warm.Warm,
    chosen: list[Drawn],
    known: dict[str, dict[str, Any]],
    place: Path,
    options: argparse.Namespace,
) -> None:
    """Try those that are not known, and keep each result."""
    tests = reached.known_tests(there)
    left = [one for one in enumerate(chosen, 1) if _is_left(one[1], known, again=options.again)]

    def run(share: int) -> None:
        for number, mutant in left[share :: warm.PROCESSES]:
            near = reached.tests_for(tests, mutant.path, mutant.line, SECONDS)
            test = find_by_tests(there, near, mutant) or find_by_types(mutant)
            world = known.get(mutant.diff(), {}).get("world")
            if options.worlds and world is None and (not test or number % SAMPLE == 0):
                world = find_by_worlds(mutant, options.worlds)
            row = {"name": mutant.name, "test": test, "world": world, "patch": mutant.diff()}
            with place.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(row)}\n")
            told = "not tried" if world is None else world or "nothing"
            print(f"{number} {mutant.name}: tests: {test or 'nothing'}; worlds: {told}", flush=True)

    warm.in_parallel(run)
    known |= _results(place)


def _sum_up(chosen: list[Drawn], known: dict[str, dict[str, Any]], seed: int) -> int:
    rows = [known[mutant.diff()] for mutant in chosen if mutant.diff() in known]
    sample = [row for number, row in enumerate(rows, 1) if number % SAMPLE == 0 and row["world"] is not None]
    for row in rows:
        if not row["test"] and not row["world"]:
            print(row["patch"])
    print(f"seed {seed}")
    print(told_share("tests", sum(bool(row["test"]) for row in rows), len(rows)))
    if sample:
        print(told_share("the simulation", sum(bool(row["world"]) for row in sample), len(sample)))
    print(told_share("either", sum(bool(row["test"] or row["world"]) for row in rows), len(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
