"""The mutants of ``scripts/mutants`` still fit the code they take a protection out of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.faults import scopes
from tests.faults.mutants import MUTANTS
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.without)
def test_what_it_takes_out_is_there_once(mutant: Mutant) -> None:
    """Else the run would show nothing; it is still Python without it, and its tests exist."""
    path, text = mutant.patched(ROOT)
    assert text != path.read_text(encoding="utf-8")
    ast.parse(text)
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_no_two_mutants_have_one_name() -> None:
    """The table has one row for each."""
    names = [mutant.without for mutant in MUTANTS]
    assert [name for name in names if names.count(name) > 1] == []


def test_a_name_is_found_by_its_end_wherever_its_module_stands(tmp_path: Path) -> None:
    """A class, a method, a function with its decorators, an assignment, a module; one that several bear is refused."""
    there = tmp_path / "agent_mailbox" / "far" / "away.py"
    there.parent.mkdir(parents=True)
    there.write_text(
        "LIMIT = 1\n\n\nclass Log:\n    @property\n    def end(self):\n        return 1\n\n\ndef end():\n    pass\n"
    )
    found = {name: scopes.find(tmp_path, name).parts()[1] for name in ("away.LIMIT", "Log.end", "away.end", "away")}
    assert found["away.LIMIT"] == "LIMIT = 1\n"
    assert found["Log.end"] == "    @property\n    def end(self):\n        return 1\n"
    assert found["away.end"] == "def end():\n    pass\n"
    assert found["away"] == there.read_text()
    with pytest.raises(LookupError, match="names 2 places"):
        scopes.find(tmp_path, "end")
    with pytest.raises(LookupError, match="names 0 places"):
        scopes.find(tmp_path, "og.end")
