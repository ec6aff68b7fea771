"""Each protection taken away in turn: is there a test that notices?

``python -m tests.faults.mutants [WORD…]`` patches a copy of the package, runs the tests that are expected to fail on
it, and prints which did. The same tests must pass on an unpatched copy, or they prove nothing. With words only the
mutants in whose description, place or file one of them occurs are tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.mutant import Mutant, read_mutants
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

PROCESSES = 2
MUTANTS = [mutant for mutant in read_mutants() if mutant.tests]
"""Those that tests must notice; the others are the simulation's (``tests.simulation.mutation``)."""


def try_out(mutant: Mutant, place: Path) -> str | None:
    """The tests that noticed; None if none did. Raises ``SystemExit`` where a patch no longer fits."""
    tree = _copy(place)
    try:
        mutant.apply(tree)
    except LookupError as error:
        raise SystemExit(error.args[0]) from None
    done = _pytest(tree, mutant.tests)
    failed = re.findall(r"^FAILED (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"without {mutant.without!r} the tests do not even run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return ", ".join(f"`{name.rpartition('/')[2]}`" for name in failed) or None


def _copy(place: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("agent_mailbox", "tests", "hooks"):
        shutil.copytree(ROOT / name, place / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "scripts"):
        (place / name).symlink_to(ROOT / name)  # read, never changed: no mutant is in them
    return place


def _pytest(tree: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rf", "--tb=no", *dict.fromkeys(tests)]
    env = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "400", "AGENT_MAILBOX_NIGHT": "1"}
    return subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)


def main(words: list[str]) -> int:
    """Try all, or those that a word chooses; the exit code is 1 if one was not noticed, or a test fails without a
    mutant."""
    chosen = [m for m in MUTANTS if not words or any(word in f"{m.without} {m.at} {m.file}" for word in words)]
    if not chosen:
        print(f"no mutant is named so: {' '.join(words)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole")
        whole.mkdir()
        done = _pytest(_copy(whole), [test for mutant in chosen for test in mutant.tests])
        if done.returncode != 0 or " skipped" in done.stdout:
            print(done.stdout, "The tests fail, or are skipped, without any mutant.", sep="\n")
            return 1
        places = [Path(scratch, str(n)) for n in range(len(chosen))]
        for place in places:
            place.mkdir()
        with ThreadPoolExecutor(PROCESSES) as pool:
            caught = list(pool.map(try_out, chosen, places))
    for mutant, by in zip(chosen, caught, strict=True):
        print(f"{'caught' if by else 'NOT CAUGHT'}: {mutant.without}: {by or ''}")
    print(f"{sum(map(bool, caught))} of {len(chosen)} caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
