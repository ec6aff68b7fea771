"""Killed before any of its system calls, a command loses nothing acknowledged, and repeating it completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults import commands
from tests.faults.faults import EXHAUSTIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.commands import Command
    from tests.faults.faults import Call, Case


def tells(case: Case, call: Call) -> bool:
    """Is this one that the shorter run must not leave out where a start is slow?"""
    return call.name != "flock" and (case.is_log(call) or not case.command.steward)


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", commands.ALL, ids=repr)
def test_killed_before_any_system_call(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Before every call that changes a file, its name or its durability, takes a lock, or writes output."""
    case = case_of(command)
    calls = [call for call in case.calls() if EXHAUSTIVE or command.lean or tells(case, call)]
    for call in calls:
        verdict = case.killed_before(call)
        try:
            verdict.all()
        except AssertionError as error:
            raise AssertionError(f"killed before {call}: {error}") from error
    tally(command, "killed", len(calls))
