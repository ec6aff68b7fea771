"""Directed worlds: a change is looked for where its lines are come to."""

from __future__ import annotations

from collections import Counter

import pytest

from agent_mailbox.upkeep import steward
from tests.faults import scopes
from tests.helpers import ROOT
from tests.simulation import directed, kinds, runs, subjects
from tests.simulation.choices import Choices
from tests.simulation.directed import Reach
from tests.simulation.sites import Site

BEFORE = "one\ntwo\nthree\nfour\n"
REPLACES = "store/log/replacement.py:replace"
TRIED = ("sweep a steward", "sweep the first read")


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (BEFORE, set()),
        (BEFORE.replace("two", "2"), {2}),
        (BEFORE.replace("two\nthree\n", ""), {2, 3}),
        (BEFORE.replace("three", "new\nthree"), {2, 3}),
        (f"new\n{BEFORE}", {1}),
        (f"{BEFORE}new\n", {4}),
    ],
)
def test_the_lines_that_a_change_touches_are_told(after: str, lines: set[int]) -> None:
    """Those that differ or are gone; where it only adds, those beside."""
    assert directed.touched(BEFORE, after) == lines


def test_a_kind_of_world_comes_to_the_lines_of_what_it_does() -> None:
    """Worlds with stewards run the steward's lines; those of first reads do so at their end alone."""
    code = steward.run.__code__
    line = str(code.co_filename).removeprefix(f"{ROOT}/"), max(at for *_, at in code.co_lines() if at)
    often = {kind: one.often[line] for kind, one in directed.reach([line], TRIED).items()}
    assert often["sweep a steward"] > 3 * often["sweep the first read"] > 0


def test_kinds_that_come_to_the_rarest_line_or_were_made_for_it_get_most_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others keep a share: a change may show where nobody thought of."""
    file, usual, rare = "agent_mailbox/upkeep/steward.py", 1, steward.run.__code__.co_firstlineno + 2
    often = {"one": 0.5, "two": 0.25, "three": 0.25}
    reached = {
        "one": Reach(1.0, Counter({(file, usual): 9.0})),
        "two": Reach(2.0, Counter({(file, usual): 9.0, (file, rare): 2.0})),
        "three": Reach(1.0, Counter({(file, usual): 9.0, (file, rare): 1.0})),
    }

    def times() -> dict[str, float]:
        shares = directed.shares({(file, usual), (file, rare)}, reached, often)
        return {kind: share * reached[kind].seconds for kind, share in shares.items()}

    first = times()
    assert first["two"] == pytest.approx(first["three"] + directed.KEPT * 0.2)
    assert first["three"] > 1.5 * first["one"] > 0
    monkeypatch.setitem(subjects.SUBJECTS, "one", ("steward.run",))
    assert times()["one"] > times()["two"]


def test_the_worlds_that_were_made_for_functions_are_there_and_so_are_these() -> None:
    """A name that changed in one place only would direct nobody."""
    assert {*subjects.SUBJECTS} <= {*kinds.one_machine(), *kinds.several_machines()}
    for function in {one for made in subjects.SUBJECTS.values() for one in made}:
        scopes.find(ROOT, function.replace(".<locals>", ""))


def test_a_line_is_told_by_its_function() -> None:
    """A line is told by its function, named as a call site names it. A line outside every function has none."""
    file, code = "agent_mailbox/upkeep/steward.py", steward.run.__code__
    inside = code.co_firstlineno + 2
    assert directed.functions([(file, inside), (file, 1)]) == ["steward.run"]


def test_places_beside_a_named_function_are_drawn_more_often() -> None:
    """Half of them are, where a command comes there."""

    def befell(*beside: str) -> int:
        results = [runs.run(seed, kind="sweep a steward", beside=beside) for seed in range(4)]
        assert [result.breaches for result in results] == [[]] * 4
        met = [item for result in results for item in result.met.items()]  # a switch may come anywhere
        return sum(count for (site, _, kind, _), count in met if site == REPLACES and kind != "switch")

    assert befell("replacement.replace") > befell()


def test_a_fault_for_each_time_strikes_from_the_drawn_call_on() -> None:
    """A fault that is drawn to fail once strikes one call. A fault that is drawn to fail each time strikes all later
    calls, too."""
    place: Site = ("open", 1, 2)
    once, each = {place: (2, "fault")}, {place: (2, "faults")}
    assert [Choices._marked(once, place) for _ in range(2)] == [None, "fault"]
    assert not once
    assert [Choices._marked(each, place) for _ in range(4)] == [None, "fault", "fault", "fault"]
