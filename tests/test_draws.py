"""What Hypothesis draws is the same in each worker, whatever tests ran there before."""

from __future__ import annotations

import pytest
from hypothesis.internal.conjecture import providers


@pytest.mark.parametrize("kind", ["integer", "float", "bytes", "string"])
def test_a_draw_takes_no_constant_from_a_module_of_ours(kind: str, request: pytest.FixtureRequest) -> None:
    """Modules of ours are loaded by now, and Hypothesis has none of their constants."""
    if request.config.getoption("--hypothesis-profile") == "long":
        pytest.skip("a long look takes them")
    assert not providers.HypothesisProvider(None)._local_constants.set_for_type(kind)
