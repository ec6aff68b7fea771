"""Directed worlds: plans are drawn by how often they come to the lines that changed (AFLGo, Böhme 2017).

Belongs here: which lines a change touches, how often each kind of plan comes to them, and the shares that follow. One
subject has a few percent of all worlds; a change is about one subject, and its author wants to know soon.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from difflib import SequenceMatcher
from itertools import groupby
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.helpers import ROOT
from tests.simulation import kinds
from tests.simulation.sites import function_name
from tests.simulation.subjects import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from tests.simulation.runs import Result

Line = tuple[str, int]
"""A file of the checkout, from its root, and a number of a line of it."""
SAMPLED = 700_000_000
"""The first seed of the worlds that tell what comes where."""
LEAST = 2
"""So many of each kind at least."""
KEPT, COMES, MADE = 0.2, 0.3, 0.5
"""The shares of time: of all kinds as they usually are, since what changed here may show elsewhere; of those that come
to the lines; of those that were made for their functions."""


class Direction(NamedTuple):
    """Which worlds are drawn."""

    shares: dict[str, float]
    """How often each kind of plan is."""
    beside: list[str]
    """The functions that changed, ``log.HeldLog.append``."""


class Reach(NamedTuple):
    """How a kind of plan comes to lines."""

    seconds: float
    """What a world costs, of one core."""
    often: Counter[Line]
    """How often a world comes to a line."""


def touched(before: str, after: str) -> set[int]:
    """The numbers of the lines of ``before`` that differ in ``after``; where it only adds, of those beside that."""
    lines = before.splitlines()
    found: set[int] = set()
    for what, start, end, *_ in SequenceMatcher(None, lines, after.splitlines(), autojunk=False).get_opcodes():
        if what == "insert":
            found |= {max(start, 1), min(start + 1, len(lines))}
        elif what != "equal":
            found |= set(range(start + 1, end + 1))
    return found


def changed_since(ref: str) -> set[Line]:
    """The lines of the package that changed since a commit, as they are numbered now."""
    named = subprocess.run(
        ["git", "diff", "--name-only", ref, "--", "agent_mailbox"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: set[Line] = set()
    for file in named.stdout.split():
        if not (ROOT / file).exists():
            continue
        then = subprocess.run(["git", "show", f"{ref}:{file}"], cwd=ROOT, capture_output=True, text=True, check=False)
        found |= {(file, line) for line in touched((ROOT / file).read_text(), then.stdout)}
    return found


def reach(lines: Iterable[Line], of: Iterable[str], seconds: float = 0.5) -> dict[str, Reach]:
    """Run worlds of each of these kinds for so many seconds of one core; count how often they come to these lines."""
    wanted: dict[str, set[int]] = {}
    for file, line in lines:
        wanted.setdefault(str(ROOT / file), set()).add(line)
    return {kind: _reach(kind, wanted, seconds) for kind in of}


def _reach(kind: str, wanted: dict[str, set[int]], seconds: float) -> Reach:
    met: Counter[Line] = Counter()
    hit: dict[Any, Counter[int]] = {}

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            hit[frame.f_code][frame.f_lineno] += 1
        return local

    def entered(frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if code not in hit:
            there = wanted.get(code.co_filename)
            if there is None or there.isdisjoint(line for *_, line in code.co_lines()):
                return None
            hit[code] = Counter()
        return local

    worlds, began = 0, process_time()
    while worlds < LEAST or process_time() - began < seconds:
        sys.settrace(entered)
        try:
            kinds.run(SAMPLED + worlds, kind)
        finally:
            sys.settrace(None)
        worlds += 1
    each = (process_time() - began) / worlds
    for code, lines in hit.items():
        file = code.co_filename.removeprefix(f"{ROOT}/")
        for line in wanted[code.co_filename] & lines.keys():
            met[file, line] += lines[line]
    return Reach(each, Counter({line: count / worlds for line, count in met.items()}))


def shares(lines: set[Line], reached: dict[str, Reach], usual: dict[str, float]) -> dict[str, float]:
    """How often each kind of plan is drawn.

    The time of a kind is the sum of three parts: as usual; as the root of how often it comes in a second to the rarest
    of the lines; and, if it was made for one of their functions (``subjects``), as the others that were.
    """
    totals = {line: sum(one.often[line] / one.seconds for one in reached.values()) for line in lines}
    rarest = min((line for line in lines if totals[line]), key=lambda line: (totals[line], line), default=None)
    there = set(functions(lines))
    parts: list[tuple[float, dict[str, float]]] = [
        (KEPT, {kind: often * reached[kind].seconds for kind, often in usual.items()}),
        (COMES, {kind: (one.often[rarest] / one.seconds) ** 0.5 if rarest else 0 for kind, one in reached.items()}),
        (MADE, {kind: float(not there.isdisjoint(SUBJECTS.get(kind, ()))) for kind in reached}),
    ]
    parts = [(share, times) for share, times in parts if any(times.values())]
    return {
        kind: sum(share * times[kind] / sum(times.values()) for share, times in parts) / reached[kind].seconds
        for kind in reached
    }


def functions(lines: Iterable[Line]) -> list[str]:
    """The functions that hold these lines, ``log.HeldLog.append``."""
    found: set[str] = set()
    for path, there in groupby(sorted(lines), key=lambda line: line[0]):
        file = path.removeprefix("agent_mailbox/")
        known = functions_of(file).items()
        for _, line in there:
            found |= {
                function_name(file, name) for name in [n for n, (first, last) in known if first <= line <= last][-1:]
            }
    return sorted(found)


def functions_of(file: str) -> dict[str, tuple[int, int]]:
    """The functions of a file of the package, inner ones behind outer ones, each with its first and last line."""
    return {
        name: (first, last)
        for name, first, last in _functions(ast.parse((ROOT / "agent_mailbox" / file).read_text()), "")
    }


def _functions(tree: ast.AST, above: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{above}{node.name}", node.lineno, node.end_lineno or node.lineno
            yield from _functions(node, f"{above}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def towards(lines: set[Line], reached: dict[str, Reach], usual: dict[str, float]) -> Direction:
    """Direct worlds, of the kinds that are drawn as usual so often, at lines."""
    return Direction(shares(lines, {kind: reached[kind] for kind in usual}, usual), functions(lines))


def run(direction: Direction, seed: int, *, told: bool = False) -> Result:
    """Run the world of a seed, in that direction."""
    kind = Random(f"directed {seed}").choices([*direction.shares], [*direction.shares.values()])[0]
    return kinds.run(seed, kind, beside=direction.beside, told=told)
