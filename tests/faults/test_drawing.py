"""Mutants that nobody chose: drawn from a seed, tried in a forked process, never kept."""

from __future__ import annotations

import ast
import os
import signal
from argparse import Namespace

from hypothesis.internal import charmap

from agent_mailbox.core import instant
from agent_mailbox.core.instant import parse
from tests.faults import reached, warm
from tests.faults.drawing import draw
from tests.faults.drawn import told_share
from tests.helpers import ROOT

INSTANT = ROOT / "agent_mailbox/core/instant.py"


def test_a_seed_draws_the_same_changes_each_time_and_another_seed_others():
    """Each is one place of one file, parses, and says something else than the file; the file itself stays as it is."""
    drawn = draw(7, 6, ("control",))
    assert [mutant.name for mutant in drawn] == [mutant.name for mutant in draw(7, 6, ("control",))]
    assert {mutant.name for mutant in drawn}.isdisjoint(mutant.name for mutant in draw(8, 6, ("control",)))
    for mutant in drawn:
        there = mutant.path.read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(there))
        assert mutant.diff().startswith(f"--- a/{mutant.path.relative_to(ROOT)}\n")


def test_a_share_is_told_with_how_unsure_it_is():
    """Thirty draws say little: the true share is within a wide stretch."""
    assert told_share("tests", 24, 30) == "24 of 30 found by tests: 80% (63% to 90%)"


def test_a_forked_process_alone_runs_the_change_under_every_name_that_was_imported():
    """A name that another module took from the changed one before gets the changed code, too."""
    text = INSTANT.read_text(encoding="utf-8").replace("return day * DAY\n", "return day * DAY + 1\n")

    def run(tell):
        warm.put_in_place(INSTANT, text)
        tell(f"{parse('1970-01-01')} {instant.told('1970-01-02')}")

    assert warm.in_a_fork(run) == "1 86400001"
    assert parse("1970-01-01") == 0


def test_a_process_that_ends_before_its_last_word_is_told_by_the_word_before():
    """A test that ends the process, or is ended because it has no end, is the one that noticed."""

    def run(tell):
        tell("no end: this test")
        os.kill(os.getpid(), signal.SIGKILL)

    assert warm.in_a_fork(run) == "no end: this test"


def test_a_change_is_tried_by_the_tests_that_reach_it_the_near_and_quick_ones_first():
    """They are as many as fit into the time; where none reaches its line, those of its function are tried."""
    line = next(n for n, text in enumerate(INSTANT.read_text().split("\n"), 1) if "not a time of day" in text)
    file = str(INSTANT.relative_to(ROOT))
    near, far = "tests/core/test_instant.py::test_near", "tests/core/test_inbox.py::test_far"
    tests = [reached.Test(far, 0.2, {file: {line}}), reached.Test(near, 0.9, {file: {line}})]
    tests += [reached.Test(f"{far}_dear", 60.0, {file: {line}}), reached.Test(f"{far}_aside", 0.1, {file: {line - 1}})]
    assert reached.tests_for(tests, INSTANT, line, 20) == [near, far]
    assert reached.tests_for(tests[3:], INSTANT, line, 20) == [f"{far}_aside"]


def test_a_line_that_too_many_tests_reach_is_tried_by_some_of_each_file():
    """The quickest ones of one file alone would look at the same thing again and again."""
    line = next(n for n, text in enumerate(INSTANT.read_text().split("\n"), 1) if "not a time of day" in text)
    file = str(INSTANT.relative_to(ROOT))
    tests = [reached.Test(f"tests/core/test_inbox.py::test_{n}", 0.1, {file: {line}}) for n in range(9)]
    tests.append(reached.Test("tests/core/test_text.py::test_another", 0.15, {file: {line}}))
    assert reached.tests_for(tests, INSTANT, line, 0.3) == [tests[0].name, tests[9].name]


def test_no_forked_process_makes_the_table_of_characters_of_its_own(monkeypatch):
    """It takes longer than most tests: in a fresh checkout all those that draw texts were taken for too slow."""
    monkeypatch.setattr(charmap, "_charmap", None)
    made = []
    there = warm.Warm(lambda _: made.append(charmap._charmap))
    there.pytest_runtestloop(Namespace(items=[]))
    assert made[0]
