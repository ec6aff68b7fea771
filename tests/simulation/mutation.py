"""Each protection of the store and of delivery taken away: do worlds break without it?

``python -m tests.simulation.mutation [WORD…]`` patches a copy of the package and runs worlds on it until one breaks:
first of the kind that broke before, then of any. ``found.json`` keeps a world for each. Belongs here: which rows of the
tables ``tests/*/mutants.md`` are the simulation's to find, and the hunt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.faults import scopes
from tests.faults.mutant import Mutant, read_mutants
from tests.helpers import ROOT
from tests.simulation import kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 60
FOUND = Path(__file__).with_name("found.json")
SHARED = ("Many machines", "The engines")
"""The tables of mutants for the worlds of several machines alone."""
HISTORIC = [mutant for mutant in read_mutants() if not mutant.tests]
"""What the change log mended, put back."""


class World(NamedTuple):
    """A world that breaks without a protection."""

    kind: str
    seed: int
    beside: Sequence[str]


def found_worlds() -> dict[str, World]:
    """Return the world that is kept for each mutant."""
    return {without: World(*row) for without, row in json.loads(FOUND.read_text()).items()}


def hunt(mutant: Mutant, known: World | None) -> World | None:
    """Return the first world that breaks without the protection; None after a minute of each kind that was tried."""
    scope = scopes.find(ROOT, mutant.at)
    beside = [f"{scope.path.stem}.{mutant.at.removeprefix(f'{scope.path.stem}.')}"]
    several = kinds.MACHINES if mutant.part in SHARED else ""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for name in ("agent_mailbox", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.apply(tree)
        for kind, named in ([(known.kind, known.beside)] if known else []) + [(several, beside)]:
            words = [sys.executable, "-m", "tests.simulation", "--seconds", str(SECONDS), "--until-broken"]
            words += ["--from", str(known.seed if known and kind == known.kind else 1)]
            words += ["--plan", kind] if kind else []
            words += ["--beside", *named]
            env = {**os.environ, "PYTHONPATH": scratch}
            done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)
            if told := re.search(r"^seed (\d+) \((.*)\): ", done.stdout, re.MULTILINE):
                return World(told[2], int(told[1]), named)
            if done.returncode or done.stderr:
                raise SystemExit(f"{mutant.without}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return None


def main(words: list[str]) -> int:
    """Hunt all, or those that a word names, one on each core; the exit code is 1 if one was not found."""
    known, missed = found_worlds(), 0
    ours = [mutant for mutant in read_mutants() if mutant.is_simulated]
    todo = [one for one in ours if not words or any(word in f"{one.without} {one.at}" for word in words)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        worlds = cores.map(hunt, todo, [known.get(mutant.without) for mutant in todo])
        for mutant, world in zip(todo, worlds, strict=True):
            print(f"{'found' if world else 'NOT FOUND'}: {mutant.without}: {world or ''}", flush=True)
            missed += world is None
            known |= {mutant.without: world} if world else {}
    names = {mutant.without for mutant in ours}
    rows = (f"{json.dumps(key)}: {json.dumps(known[key])}" for key in sorted(known) if key in names)
    FOUND.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{len(todo) - missed} of {len(todo)} found")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
