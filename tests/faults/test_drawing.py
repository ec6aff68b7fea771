"""Mutants that nobody chose: drawn from a seed, tried in a copy, never kept."""

from __future__ import annotations

import ast

from tests.faults import mutants
from tests.faults.drawing import Drawn, draw
from tests.faults.drawn import find_by_tests, near_tests, told_share
from tests.helpers import ROOT


def test_a_seed_draws_the_same_changes_each_time_and_another_seed_others():
    """Each is one place of one file, parses, and says something else than the file; the file itself stays as it is."""
    drawn = draw(7, 6, ("control",))
    assert [mutant.name for mutant in drawn] == [mutant.name for mutant in draw(7, 6, ("control",))]
    assert {mutant.name for mutant in drawn}.isdisjoint(mutant.name for mutant in draw(8, 6, ("control",)))
    for mutant in drawn:
        there = mutant.path.read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(there))
        assert mutant.diff().startswith(f"--- a/{mutant.path.relative_to(ROOT)}\n")


def test_the_tests_near_a_change_are_those_that_speak_most_of_its_function():
    """A change of expiry is tried by the tests of expiry, and by the judge of the core."""
    mutant = Drawn(ROOT / "agent_mailbox/core/inbox.py", 1, "", "expires_at", "")
    assert {"tests/core/test_expiry.py", "tests/judge"} <= {*near_tests(mutant, 8)}


def test_a_share_is_told_with_how_unsure_it_is():
    """Thirty draws say little: the true share is within a wide stretch."""
    assert told_share("tests", 24, 30) == "24 of 30 found by tests: 80% (63% to 90%)"


def test_a_test_that_fails_without_the_mutant_finds_none(tmp_path, monkeypatch):
    """It is left out, and the tests behind it are asked."""
    whole, mutated = tmp_path / "whole", tmp_path / "mutated"
    for tree, number in ((whole, 1), (mutated, 2)):
        for room in ("agent_mailbox", "tests", "hooks"):
            (tree / room).mkdir(parents=True)
        profile = 'from hypothesis import settings\n\nsettings.register_profile("push")\n'
        (tree / "tests/conftest.py").write_text(profile)
        (tree / "agent_mailbox/__init__.py").touch()
        (tree / "agent_mailbox/number.py").write_text(f"NUMBER = {number}\n")
        (tree / "tests/test_broken.py").write_text("def test_broken():\n    assert False\n")
        says = "from agent_mailbox.number import NUMBER\n\n\ndef test_says():\n    assert NUMBER == 1\n"
        (tree / "tests/test_number.py").write_text(says)
    monkeypatch.setattr(mutants, "ROOT", whole)
    near = ["tests/test_broken.py", "tests/test_number.py"]
    assert find_by_tests(mutated, near) == "tests/test_number.py::test_says"
    assert find_by_tests(mutated, near[:1]) == ""
