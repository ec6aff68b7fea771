"""The table of the clients: what a run records, and what the table makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from scripts.client_runs import __main__ as runs
from scripts.client_runs import matrix, places, record
from scripts.client_runs.record import FAILED, PASSED, SKIPPED, Shown
from tests.e2e.shown import MARK, Recorder, shows, shows_at

if TYPE_CHECKING:
    from pathlib import Path


def shown(ability: str, outcome: str, test: str = "a") -> Shown:
    """A line of Codex's record."""
    return Shown("codex", ability, test, outcome, "0.169.0", "2026-11-24", "abc1234")


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ((PASSED,), matrix.LIVE),
        ((PASSED, PASSED), matrix.LIVE),
        ((PASSED, SKIPPED), matrix.NOT_RUN),
        ((PASSED, FAILED), matrix.NOT_RUN),
        ((SKIPPED,), matrix.NOT_RUN),
        ((), matrix.NOT_RUN),
    ],
)
def test_only_what_every_test_of_it_showed_is_in_the_table(outcomes: tuple[str, ...], said: str) -> None:
    """A skipped promise is no tick; what the client's module limits is there in part, and what it lacks is not."""
    for ability, right in (("start", said), ("permit", matrix.PARTLY if said == matrix.LIVE else said)):
        rows = [shown(ability, outcome, str(number)) for number, outcome in enumerate(outcomes)]
        assert matrix.cell(CODEX, ability, rows) == right
        assert matrix.cell(CLAUDE_CODE, ability, rows) == matrix.NOT_RUN
        assert matrix.cell(GEMINI_CLI, "start", rows) == matrix.NOT


def test_a_run_records_the_worst_of_a_test_and_leaves_what_it_did_not_run(tmp_path: Path) -> None:
    """A test that failed at its end, or with one of its parameters, showed nothing."""
    record.write([shown("start", PASSED, "x.py::gone"), shown("stop", PASSED, "x.py::one")], path := tmp_path / "shown")
    recorder = Recorder(path)
    for test, when, outcome in (
        ("x.py::one[a]", "call", PASSED),
        ("x.py::one[b]", "call", SKIPPED),
        ("x.py::two", "call", PASSED),
        ("x.py::two", "teardown", FAILED),
        ("x.py::three", "call", PASSED),
    ):
        marks = [(MARK, ["codex", "stop", "0.170.0", ""])]
        place = ("x.py", 1, "one")
        report = pytest.TestReport(test, place, {}, outcome, None, when, user_properties=marks)  # type: ignore[arg-type]
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    rows = {(row.test, row.outcome, row.version) for row in record.read(path)}
    assert rows == {
        ("x.py::gone", PASSED, "0.169.0"),
        ("x.py::one", SKIPPED, "0.170.0"),
        ("x.py::two", FAILED, "0.170.0"),
        ("x.py::three", PASSED, "0.170.0"),
    }


def test_nobody_shows_what_a_client_does_not_claim() -> None:
    """Its module is asked as the test is read."""
    with pytest.raises(AssertionError, match="gemini does not claim"):
        shows(GEMINI_CLI, "stop", "start")


def test_a_run_with_newer_versions_says_what_changed() -> None:
    """A report on newer versions names the tests that fail now, did not run, or are new. It leaves out tests that pass
    as before."""
    before = [shown("start", PASSED), shown("stop", PASSED, "b"), shown("once", PASSED, "c")]
    now = [shown("start", PASSED), shown("stop", FAILED, "b"), shown("seen", PASSED, "d"), shown("once", SKIPPED, "c")]
    text = runs.told([CODEX, GEMINI_CLI], {"codex": "0.170.0", "gemini": "0.61.0"}, before, now)
    assert "| 0.170.0 | 2 of " in text
    assert "| **stop** fails, once did not run, seen is new |" in text
    assert "- Codex: `b`" in text
    others = "| client | pinned |\n| --- | --- |\n| Codex | 0 | old |\n| OpenCode | 1.18.33 | kept |\n"
    assert runs.with_others(text, others).splitlines()[2] == "| OpenCode | 1.18.33 | kept |"
    assert "old" not in runs.with_others(text, others)
    assert "| Gemini CLI | 0.61.0 | 0.61.0 | 0 of " in text


def test_a_place_is_in_the_table_as_its_tests_showed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell by place needs every test of it. What no test ran there is named as not run, and no cell is made up."""
    rows = [
        shown("terminal/mail", PASSED),
        shown("terminal/wake", PASSED),
        shown("headless/no wake", PASSED),
        shown("resumed/mail", PASSED),
        shown("resumed/mail", FAILED, "b"),
        shown("cleared/mail", SKIPPED),
    ]
    monkeypatch.setattr(record, "read", lambda: rows)
    lines = [line for line in places.text().splitlines() if "Codex" in line]
    ends = "0.169.0, 2026-11-24 | `a` |"
    assert lines == [
        f"| Codex | terminal | yes | yes | {ends}",
        f"| Codex | headless | not run | no | {ends}",
        f"| Codex | resumed | not run | not run | {ends}",
        "- Codex: background, server, without its server, editor, container, forked, cleared.",
    ]
    with pytest.raises(AssertionError, match="no such place"):
        shows_at(CODEX, "terminal", "sleep")
