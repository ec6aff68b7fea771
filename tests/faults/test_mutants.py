"""The mutants of ``scripts/mutants`` still fit the code they take a protection out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.mutants import MUTANTS
from tests.helpers import ROOT

if TYPE_CHECKING:
    from tests.faults.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.without)
def test_what_it_takes_out_is_there_once(mutant: Mutant) -> None:
    """Else the run would show nothing; and its tests exist."""
    text = (ROOT / mutant.file).read_text()
    assert [text.count(before) for before, _ in mutant.patches] == [1] * len(mutant.patches)
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists()
