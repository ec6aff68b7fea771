"""``scripts/mutate``: draw mutants that nobody chose, and say how many are found: by tests, by the simulation, by none.

Each is tried in a throw-away copy of the tree. First come the tests near it, by name: those that speak most of its
function, its module, and the modules that use it. Then worlds, in which more befalls that function. Survivors are
printed as patches. No drawn mutant is kept; a survivor that counts becomes a test.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.drawing import ROOMS, Drawn, draw
from tests.faults.mutants import _copy
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR = ("core", "judge", "store", "faults", "cli", "trust", "engine", "claude", "simulation")
SLOW = ("test_mutants.py", "test_simulation.py", "test_machines.py", "test_kills.py", "test_agreement.py")
TIME = 600
"""Seconds for the tests of one mutant, whose loop may have no end."""


def near_tests(mutant: Drawn, most: int) -> list[str]:
    """Return the test files that import the mutant's module, then those that mention its function, module and room, and
    the modules that use it, most."""
    own, module, room = mutant.within.rpartition(".")[2], mutant.path.stem, mutant.path.parent.name
    spoken = {own: 8, module: 3, room: 1} | dict.fromkeys(_importers(mutant.path), 1)
    words = {re.compile(rf"\b{re.escape(word.strip('_'))}\b"): weight for word, weight in spoken.items()}
    imports = _imports_of(module)
    scores = {
        name: sum(weight * len(word.findall(text)) for word, weight in words.items()) / len(text) ** 0.5
        + bool(imports.search(text))
        for name, text in _tests().items()
    }
    found = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])[:most]
    return [*found, "tests/judge"] if "/core/" in str(mutant.path) else found


def _importers(path: Path) -> list[str]:
    """Return the names of the modules that import one."""
    word = _imports_of(path.stem)
    return [one.stem for one, text in _product().items() if word.search(text)]


def _imports_of(module: str) -> re.Pattern[str]:
    """Return the pattern of a line that imports a module, or something of it."""
    return re.compile(rf"^ *(from [.\w]*\b{module} import|from [.\w]+ import .*\b{module}\b)", re.MULTILINE)


@cache
def _product() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "agent_mailbox").rglob("*.py"))}


@cache
def _tests() -> dict[str, str]:
    files = (path for room in NEAR for path in sorted((ROOT / "tests" / room).glob("test_*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files if path.name not in SLOW}


def find_by_tests(tree: Path, tests: list[str]) -> str:
    """Return the test that notices; empty if none does. One that fails without the mutant, too, notices nothing."""
    left = [one for one in tests if one not in _broken]
    while left:
        try:
            failed = _failed_test(tree, left)
        except subprocess.TimeoutExpired:
            return f"no end in {TIME} s"
        if failed is None or not _fails_anyway(failed):
            return failed or ""
        _broken.update(one for one in left if failed.startswith(one))
        left = [one for one in left if one not in _broken]
    return ""


_broken: set[str] = set()
"""Files and directories of tests that fail without any mutant: they say nothing about one."""


def _failed_test(tree: Path, tests: list[str]) -> str | None:
    """Return the first test that fails; None if none does.

    Raises:
        subprocess.TimeoutExpired: they do not end.
    """
    words = ["pytest", "-p", "no:cacheprovider", "-x", "-q", "-rfE", "--tb=no", "--hypothesis-profile=push", *tests]
    done = _run(tree, words)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[0] if failed else None if done.returncode in (0, 5) else "the tests do not begin"


def _fails_anyway(test: str) -> bool:
    """Return whether a test fails in a copy that has no mutant."""
    if "::" not in test:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        return _failed_test(_copy(Path(scratch)), [test.partition("::")[0]]) is not None


def find_by_worlds(tree: Path, mutant: Drawn, worlds: int) -> str:
    """Return the first world that breaks; empty if none does."""
    words = ["tests.simulation", "--worlds", str(worlds), "--until-broken", "--beside"]
    try:
        done = _run(tree, [*words, f"{mutant.path.stem}.{mutant.within}"])
    except subprocess.TimeoutExpired:
        return f"no end in {TIME} s"
    told = re.search(r"^seed .*", done.stdout, re.MULTILINE)
    return told[0] if told else "worlds do not run" if done.returncode else ""


def _run(tree: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "300"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=TIME)


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
    parser.add_argument("--tests", type=int, default=16, metavar="N", help="Files of tests near each, at most.")
    parser.add_argument("--worlds", type=int, default=40, metavar="N", help="Worlds for each; 0: none.")
    parser.add_argument("--list", action="store_true", help="Only say what is drawn.")
    options = parser.parse_args(given if given is None else [*given])
    chosen = draw(options.seed, options.count, tuple(options.rooms))
    if options.list:
        print("\n".join(f"{mutant.name} in {mutant.within}" for mutant in chosen))
        return 0
    by_tests, by_worlds, left = 0, 0, list[Drawn]()
    for number, mutant in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory() as scratch:
            tree = _copy(Path(scratch))
            (tree / mutant.path.relative_to(ROOT)).write_text(mutant.text, encoding="utf-8")
            test = find_by_tests(tree, near_tests(mutant, options.tests))
            world = find_by_worlds(tree, mutant, options.worlds) if options.worlds else ""
        by_tests, by_worlds = by_tests + bool(test), by_worlds + bool(world)
        left += [] if test or world else [mutant]
        print(f"{number} {mutant.name}: tests: {test or 'nothing'}; worlds: {world or 'nothing'}", flush=True)
    for mutant in left:
        print(mutant.diff())
    for name, found in (("tests", by_tests), ("the simulation", by_worlds), ("either", len(chosen) - len(left))):
        print(told_share(name, found, len(chosen)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
