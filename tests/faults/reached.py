"""Which tests reach a line of the package: measured once for each test, and kept in the user's cache.

What was measured counts until the package, what tests share, or the test's own file changes. Belongs here: measuring,
keeping, and the order in which tests are tried.
"""

from __future__ import annotations

import ast
import json
import os
import signal
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coverage import Coverage

from tests.faults import warm
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-mailbox-tests"
DEAR = 10
"""Seconds of the processor, under coverage, after which a test is too dear to be tried with a mutant. Those that try a
rule with many drawn values take the longest, and are the last to be tried."""
NEAR = 0.2
"""A test whose file names the module comes as early as another of a fifth of its time."""


class Test(NamedTuple):
    """What is known of a test that passes."""

    name: str
    seconds: float
    """Of a processor, its children's among them, while it was measured."""
    lines: dict[str, set[int]]


def known_tests(there: warm.Warm) -> list[Test]:
    """Return all collected tests that pass, and measure those that are not known yet."""
    place = KEPT / f"reached-{_sum_of(*_shared())}.jsonl"
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = _read(place)
    missing = [name for name in there.items if (name, _file_sum(name)) not in rows]
    if missing:
        print(f"{len(missing)} tests to measure, {len(there.items) - len(missing)} are known", flush=True)
        _measure(there, missing, place)
        rows = _read(place)
    found = (rows.get((name, _file_sum(name))) for name in there.items)
    return [test for test in found if test is not None]


def tests_for(tests: Iterable[Test], path: Path, line: int, most: float) -> list[str]:
    """Return the tests that reach the statement of a line, else those that reach its function: those that are near and
    quick first, for so many seconds in all. Thousands reach some lines. So the second of a file that is not near counts
    as twice as dear, the third as three times: those of other files look at other things."""
    name = str(path.relative_to(ROOT))
    statement, function = _around(path, line)
    reaching = [test for test in tests if not statement.isdisjoint(test.lines.get(name, ()))]
    reaching = reaching or [test for test in tests if not function.isdisjoint(test.lines.get(name, ()))]
    reaching.sort(key=lambda test: test.seconds)
    before = Counter[str]()
    cost = dict[str, float]()
    for test in reaching:
        file = test.name.partition("::")[0]
        before[file] += 1
        cost[test.name] = test.seconds * (NEAR if path.stem in _words(file) else before[file])
    reaching.sort(key=lambda test: cost[test.name])
    chosen, spent = list[str](), 0.0
    for test in reaching:
        if spent + test.seconds <= most:
            spent += test.seconds
            chosen.append(test.name)
    return chosen


def _around(path: Path, line: int) -> tuple[set[int], set[int]]:
    """Return the lines of the innermost statement at a line, of one with a body those of its head, and the lines of the
    body of the function that it is in."""
    statement, function = {line}, {line}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = max(body[0].lineno - 1, node.lineno) if isinstance(body, list) else node.end_lineno or line
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                function = {*range(node.body[0].lineno, (node.end_lineno or line) + 1)}
            elif line <= end:
                statement = {*range(node.lineno, end + 1)}
    return statement, function


@cache
def _words(file: str) -> set[str]:
    """Return the names that a file of tests imports."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {part for one in node.names for part in one.name.split(".")}
            found |= {*(getattr(node, "module", None) or "").split(".")}
    return found


def _shared() -> list[Path]:
    return [*sorted((ROOT / "agent_mailbox").rglob("*.py")), *sorted((ROOT / "tests").glob("*.py"))]


@cache
def _sum_of(*paths: Path) -> str:
    total = sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def _file_sum(test: str) -> str:
    return _sum_of(ROOT / test.partition("::")[0])


def _read(place: Path) -> dict[tuple[str, str], Test | None]:
    """Return what is kept of each test, by its name and its file's sum; None of one that failed."""
    found: dict[tuple[str, str], Test | None] = {}
    lines: dict[tuple[str, str], dict[str, set[int]]] = {}
    for text in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        row = json.loads(text)
        key = row["test"], row["of"]
        mine = lines.setdefault(key, {})
        for file, numbers in row["lines"].items():
            mine.setdefault(file, set()).update(numbers)
        if "seconds" in row:
            found[key] = Test(row["test"], row["seconds"], mine) if row["passed"] else None
    return found


def _measure(there: warm.Warm, names: list[str], place: Path) -> None:
    """Run tests under coverage, and keep a row of each as soon as it ended."""

    def run(number: int) -> None:
        mine = names[number :: warm.PROCESSES]
        while stuck := warm.in_a_fork(lambda tell, mine=mine: _measure_some(there, mine, place, tell)):
            _keep(place, {"test": stuck, "of": _file_sum(stuck), "seconds": 0, "passed": False, "lines": {}})
            mine = mine[mine.index(stuck) + 1 :]

    warm.in_parallel(run)


def _keep(place: Path, row: dict[str, object]) -> None:
    to = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(to, f"{json.dumps(row, separators=(',', ':'))}\n".encode())
    os.close(to)


def _measure_some(there: warm.Warm, names: list[str], place: Path, tell: Callable[[str], None]) -> None:
    coverage = Coverage(data_file=None, include=[f"{ROOT}/agent_mailbox/*"], config_file=False, messages=False)
    me, leave = os.getpid(), os._exit
    at = ""

    def keep(**more: float) -> None:
        coverage.stop()
        data = coverage.get_data()
        lines = {os.path.relpath(file, ROOT): sorted(data.lines(file) or ()) for file in data.measured_files()}
        _keep(place, {"test": at, "of": _file_sum(at), **more, "lines": lines})

    def leave_known(code: int) -> None:
        try:
            if os.getpid() != me:  # a test's child, which is about to end
                keep()
        finally:
            leave(code)

    os._exit = leave_known  # type: ignore[assignment]
    for at in names:
        tell(at)
        warm.forget_answers()
        signal.setitimer(signal.ITIMER_PROF, DEAR)
        began = sum(os.times()[:4])
        coverage.erase()
        coverage.start()
        passed = warm.passes(there.items[at])
        keep(seconds=sum(os.times()[:4]) - began, passed=passed)
    tell("")
