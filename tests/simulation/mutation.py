"""Each protection of the store and of delivery taken away: do worlds break without it?

``python -m tests.simulation.mutation [WORD…]`` takes it out of a forked process and runs worlds there until one breaks:
first of the kind that broke before, then of any. ``found.json`` keeps a world for each. Belongs here: which rows of the
tables ``tests/*/mutants.md`` are the simulation's to find, and the hunt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.faults import scopes, warm
from tests.faults.mutant import Mutant, read_mutants
from tests.helpers import ROOT
from tests.simulation import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

WORLDS = 200
"""So many of a kind are tried."""
FOUND = Path(__file__).with_name("found.json")
SHARED = ("Many machines", "The engines")
"""The tables of mutants for the worlds of several machines alone."""
HISTORIC = [mutant for mutant in read_mutants() if not mutant.tests]
"""What the change log mended, put back."""


class World(NamedTuple):
    """A world that breaks without a protection; more is drawn beside the function that has it."""

    kind: str
    seed: int


def found_worlds() -> dict[str, World]:
    """Return the world that is kept for each mutant."""
    return {without: World(*row) for without, row in json.loads(FOUND.read_text()).items()}


def function_of(mutant: Mutant) -> str:
    """Return the function that has the protection, as ``--beside`` takes it."""
    module = scopes.find(ROOT, mutant.at).path.stem
    return f"{module}.{mutant.at.removeprefix(f'{module}.')}"


def hunt(mutant: Mutant, known: World | None) -> World | None:
    """Return the first world that breaks without the protection; None if none of those that were tried does."""
    several = World(kinds.MACHINES if mutant.part in SHARED else "", 1)
    beside, text = [function_of(mutant)], mutant.patched()

    def run(tell: Callable[[str], None]) -> None:
        warm.put_in_place(ROOT / mutant.file, text)
        for kind, first in [known, several] if known else [several]:
            for seed in range(first, first + WORLDS):
                tell(f"{warm.ENDLESS}{kind} {seed}")
                result = kinds.run(seed, kind, beside=beside)
                if result.breaches:
                    tell(json.dumps([result.kind, seed]))
                    return
        tell("null")

    said = warm.in_a_fork(run)
    if said.startswith(warm.ENDLESS):
        raise SystemExit(f"{mutant.without}: {said}")
    return World(*json.loads(said)) if said != "null" else None


def main(words: list[str]) -> int:
    """Hunt all, or those that a word names; the exit code is 1 if one was not found."""
    known, missed = found_worlds(), 0
    ours = [mutant for mutant in read_mutants() if mutant.is_simulated]
    todo = [one for one in ours if not words or any(word in f"{one.without} {one.at}" for word in words)]
    for mutant in todo:
        world = hunt(mutant, known.get(mutant.without))
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
