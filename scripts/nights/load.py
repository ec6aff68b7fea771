"""The suite again and again beside busy processes: ``python -m scripts.nights.load [--times N] [WORD…]``.

A test that fails in one run and passes in another is one whose verdict depends on the machine. Each is told with how
often it failed; its cause is mended, and no time is made longer. WORDs go to pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
COMPUTES = "while True: sum(range(100_000))"
SYNCS = "import os\nfile = open('busy', 'wb')\nwhile True: file.write(bytes(1 << 20)); os.fdatasync(file); file.seek(0)"


def main(words: list[str]) -> int:
    """Run them; exit 1 where any test failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.nights.load", description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    options, tests = parser.parse_known_args(words)
    cores = os.cpu_count() or 1
    failed: Counter[str] = Counter()
    with ExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory())
        for code in [COMPUTES] * 2 * cores + [SYNCS] * cores:
            busy = subprocess.Popen([sys.executable, "-c", code], cwd=scratch)
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        for number in range(1, options.times + 1):
            names = _failed(tests)
            failed.update(names)
            print(f"run {number}: {len(names)} failed", flush=True)
    for name, times in failed.most_common():
        print(f"{name}: {times} of {options.times}")
    print(f"{options.times} runs beside {3 * cores} busy processes; {len(failed)} failed")
    return int(bool(failed))


def _failed(tests: list[str]) -> list[str]:
    """Return the tests that fail in one run; what pytest says, where it does not run them."""
    words = [sys.executable, "-m", "pytest", "-n", os.environ.get("TEST_WORKERS", "3"), "--dist", "worksteal", "-rfE"]
    done = subprocess.run(
        [*words, "--tb=short", *tests], cwd=ROOT, env={**os.environ, "COLUMNS": "300"}, capture_output=True, text=True
    )
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode:
        sys.stderr.write(done.stdout)
    return found or ([f"pytest itself, exit {done.returncode}"] if done.returncode else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
