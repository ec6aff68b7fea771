"""Each protection of the store and of delivery taken away: does the simulation alone notice, and how soon?

``python -m tests.simulation.mutation [WORD…]`` patches a copy of the package, runs worlds on it from five seeds each,
and writes how many calls and seconds it took to docs/internals/simulation-mutants.json. The worlds are directed at the
lines that were changed, as ``scripts/simulate --changed`` directs them. Belongs here: which rows of the tables
``tests/*/mutants.md`` are the simulation's to find.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from tests.faults.mutant import Mutant, read_mutants
from tests.faults.mutants import MUTANTS
from tests.helpers import ROOT
from tests.simulation import directed, kinds
from tests.simulation.__main__ import commit

SEEDS = (86_008_105, 122_690_886, 160_450_383, 325_216_002, 409_173_435)
"""Drawn on 2026-11-25 behind the last change of the worlds and the mutants; none was used before."""
SECONDS = 60
FOUND = ROOT / "docs/internals/simulation-mutants.json"
SHARED = ("Many machines", "The engines")
"""The tables of mutants for the worlds of several machines alone."""
HISTORIC = [mutant for mutant in read_mutants() if not mutant.tests]
"""What the change log mended, put back."""
OUTSIDE = {mutant.without: mutant.outside for mutant in MUTANTS if mutant.outside}
"""Mutants that no world of ours can notice, each with the reason."""


def ours() -> list[Mutant]:
    """The mutants that the simulation is to find."""
    return [mutant for mutant in read_mutants() if mutant.is_simulated]


def lines_of(mutant: Mutant) -> set[directed.Line]:
    """The lines of the whole package that it changes."""
    return {(mutant.file, line) for line in directed.touched((ROOT / mutant.file).read_text(), mutant.patched())}


def hunt(mutant: Mutant, direction: directed.Direction, seconds: float = SECONDS) -> list[dict[str, Any]]:
    """How it went from each seed, in worlds of that direction; ends at the second seed that finds nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for name in ("agent_mailbox", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.apply(tree)
        (tree / "direction.json").write_text(json.dumps(direction))
        words = [sys.executable, "-m", "tests.simulation", "--seconds", str(seconds)]
        words += ["--direction", str(tree / "direction.json"), "--hunt", *map(str, SEEDS)]
        env = {**os.environ, "PYTHONPATH": str(tree)}
        done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise SystemExit(f"{mutant.without}: {done.stderr[-2000:]}")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def write_found(found: dict[str, Any]) -> None:
    """Write what was found: a line for each mutant."""
    rows = (f"{json.dumps(key)}: {json.dumps(found[key], ensure_ascii=False, sort_keys=True)}" for key in sorted(found))
    FOUND.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main(words: list[str]) -> int:
    """Hunt all, or those that a word names, one on each core; others keep what was found before."""
    known = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    todo = [one for one in ours() if not words or any(word in f"{one.without} {one.at}" for word in words)]
    here = {one.without: lines_of(one) for one in todo}
    one_machine, several = kinds.one_machine(), kinds.several_machines()
    reached = directed.reach(set().union(*here.values()), one_machine | several, seconds=2.0)

    def found_for(mutant: Mutant) -> list[dict[str, Any]]:
        usual = several if mutant.part in SHARED else one_machine
        return hunt(mutant, directed.towards(here[mutant.without], reached, usual))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        for mutant, found in zip(todo, cores.map(found_for, todo), strict=True):
            known[mutant.without] = {"commit": commit(), "runs": found}
            got = [one for one in found if one["breach"]]
            calls, took = (median(one[key] for one in got or [{key: 0}]) for key in ("calls", "seconds"))
            told = f", median {calls:,.0f} calls, {took:.1f} s: {got[0]['breach']}" if got else ""
            print(f"{mutant.without}: {len(got)}/{len(SEEDS)}{told}", flush=True)
            write_found(known)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
