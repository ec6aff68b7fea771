"""Any command killed before its system calls, on a real kernel: for promises that are not about mail alone.

Belongs here: the calls of a run without faults, and a run for each kind of them. ``faults.Case`` does the same for the
commands of mail, which have one verdict.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.faults.faults import EXHAUSTIVE, KILLED, TRACING, Call, assert_struck, read_calls, sample, why_no_strace
from tests.helpers import begin_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.helpers import Program

TURNING = ("rename", "link", "unlink", "rmdir")
"""Calls that make a change visible to others: killed at each of their kinds, and at every third of the other kinds."""


def skip_without_strace() -> None:
    """Skip where calls cannot be traced."""
    if reason := why_no_strace():
        pytest.skip(reason)


def killed(
    program: Program,
    *words: object,
    ends: int = 0,
    places: Sequence[Path] = (),
    every: int = 3,
    fresh: Callable[[], None] = lambda: None,
) -> Iterator[Call | None]:
    """Kill a command before each kind of its calls in turn, and let it run to its end at last (None); yield each time.

    Of the kinds that show nothing to others it is every third, or ``every`` so manieth. Before each run the mailbox,
    the home and ``places`` are as they were, and ``fresh`` was called.
    """
    skip_without_strace()
    trace, kept = program.scratch / "trace", program.scratch / "kept"
    trees = [program.home, *places, *([program.box] if program.box.exists() else [])]
    for number, tree in enumerate(trees):
        shutil.copytree(tree, kept / str(number), symlinks=True)

    def begin() -> None:
        for number, tree in enumerate(trees):
            shutil.rmtree(tree)
            shutil.copytree(kept / str(number), tree, symlinks=True)
        if program.box in trees:
            begin_again(program.box, program.env)
        fresh()

    def run(*options: str) -> int:
        result = program.run(*words, under=("strace", *options, "-o", os.fspath(trace)), forked=not EXHAUSTIVE)
        assert "Traceback" not in result.stderr, result
        return result.rc

    begin()
    there = {str(path) for tree in trees for path in tree.rglob("*")}
    assert run(*TRACING) == ends
    calls = sample([call for call in read_calls(trace, trees, there) if EXHAUSTIVE or call.leaves])
    turning = [call for call in calls if call.name.startswith(TURNING)]
    between = [call for call in calls if call not in turning]
    for call in calls if EXHAUSTIVE else [*turning, *between[::every]]:
        begin()
        rc = run("-f", "-qq", *call.options("signal=KILL"))
        if rc == ends and call.whole:
            continue  # this time there were fewer calls of that name
        assert rc == KILLED, call
        assert_struck(trace, call)
        yield call
    begin()
    assert run("-f", "-qq", "-e", "trace=none") == ends
    yield None
