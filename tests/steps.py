"""Count the work of a call, for bounds that no machine's speed can blur: the steps of Python and those of SQLite."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.store.projection.projection_file import sqlite3

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def steps(call: Callable[[], object]) -> int:
    """How many lines of Python, and instructions of the index's database, the call takes."""
    count = 0

    def python(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"  # also for each turn of a comprehension
        return python

    def database() -> None:
        nonlocal count
        count += 10

    def connect(*given: Any, **more: Any) -> Any:
        opened = real(*given, **more)
        opened.set_progress_handler(database, 10)
        return opened

    real, before = sqlite3.connect, sys.gettrace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        sys.settrace(python)
        try:
            call()
        finally:
            sys.settrace(before)
    return count


def grows_no_faster(make: Callable[[int], Callable[[], object]], few: int = 40) -> None:
    """Four times as much of something takes about four times the steps; quadratic work would take sixteen times."""
    small, large = steps(make(few)), steps(make(few * 4))
    assert large < small * 7, f"{few}: {small} steps, {few * 4}: {large}"
