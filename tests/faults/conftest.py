"""What the fault tests share: a case for each command, skipping where a tool is missing, counting what was run."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.archive import roster_compaction
from tests.faults import faults, world
from tests.faults.faults import Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.commands import Command


@pytest.fixture
def case_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Command], Case]:
    """Makes the case of a command."""
    monkeypatch.setattr(roster_compaction, "COMPACT_ABOVE", world.LONG_ROSTER - 1)

    def make(command: Command) -> Case:
        place = tmp_path / command.name.replace(" ", "-")
        place.mkdir()
        return Case(place, command)

    return make


@pytest.fixture
def tally() -> Callable[[object, str, int], None]:
    """Adds a number of cases to the table that ``scripts/faults`` makes, if it asked for one."""

    def add(row: object, fault: str, cases: int) -> None:
        assert cases > 0, f"{row}: not one case of {fault}"
        path = os.environ.get("AGENT_MAILBOX_FAULTS_TABLE")
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{row}\t{fault}\t{cases}\n")

    return add


@functools.cache
def _no_strace() -> str | None:
    return faults.why_no_strace()


@pytest.fixture
def strace() -> None:
    """Skips where calls cannot be traced."""
    reason = _no_strace()
    if reason:
        pytest.skip(reason)
