"""Real processes beside each other answer as the simulated ones do, wherever no order may change the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation import together

if TYPE_CHECKING:
    from tests.helpers import Post


def test_processes_at_once_answer_as_the_simulated_ones(post: Post) -> None:
    """Four agents, a steward, and pairs that want the same id, name and file: whoever comes first, one gets it."""
    wanted = together.simulated(1)
    assert wanted["codes"]["name"] == wanted["codes"]["lease"] == wanted["codes"]["conflict"] == [0, 1]
    assert {*wanted["role mail"].values()} == {1}
    assert wanted["shown"]["bob"].count("conflict") == wanted["shown"]["ada"].count("retried") == 1
    assert wanted["owed"] == {who: [] for who in together.AGENTS}
    assert together.real(post.scratch, post.environ()) == wanted


@pytest.mark.parametrize("seed", range(2, 5))
def test_no_order_changes_what_is_observed(seed: int) -> None:
    """Another seed has other processes go first."""
    assert together.simulated(seed) == together.simulated(1)
