"""Killed before any of its system calls, a command loses nothing acknowledged, and repeating it completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.faults import EXHAUSTIVE, TRIED, sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.commands import Command
    from tests.faults.faults import Case


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", TRIED, ids=repr)
def test_killed_before_any_system_call(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Before every call that changes a file or its name, or writes output: killed before a sync, a lock or the opening
    of what is there, a command leaves what it leaves killed before the next of those, or at its end; exhaustively it is
    killed there as well."""
    case = case_of(command)
    calls = sample([call for call in case.calls() if EXHAUSTIVE or call.leaves])
    for call in calls:
        verdict = case.killed_before(call)
        try:
            verdict.all()
        except AssertionError as error:
            raise AssertionError(f"killed before {call}: {error}") from error
    tally(command, "killed", len(calls))
