"""The order of the tests on several workers."""

from __future__ import annotations

from tests.order import deal_out


def test_each_worker_begins_with_its_share_of_what_waits() -> None:
    """Every test stays in the run, once, and each file's tests stay in their order. A worker alone has them first."""
    names = [f"tests/core/test_{file}.py::test_{n}" for file in "ab" for n in range(5)]
    names += [f"tests/e2e/test_{file}.py::test_{n}" for file in "cdef" for n in range(2)]
    names += ["tests/test_x.py::test_1", "tests/test_x.py::test_2"]
    dealt = [names[at].removeprefix("tests/") for at in deal_out(names, 2)]
    first, second = dealt[:10], dealt[10:]
    assert [name[9:10] for name in first[:4]] == ["c", "c", "e", "e"]
    assert [name[9:10] for name in second[:4]] == ["f", "f", "d", "d"]
    assert not any("e2e" in name for name in [*first[4:], *second[4:]])
    for workers in (1, 2, 3, 4, 50):
        places = deal_out(names, workers)
        assert sorted(places) == list(range(len(names)))
        for file in {name.partition("::")[0] for name in names}:
            mine = [at for at in places if names[at].startswith(file)]
            assert mine == sorted(mine)
