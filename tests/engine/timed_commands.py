"""Whole commands, timed: how long each took, and how it ended."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers import Program

    Outcome = tuple[float, str]


def run_timed(program: Program, box: Path, *words: object, stdin: str | None = None) -> Outcome:
    """Run a command on a mailbox; its seconds, and how it ended."""
    began = time.perf_counter()
    found = program.run(*words, *(() if words[0] == "hook" else ("--json",)), "--dir", box, stdin=stdin)
    took = time.perf_counter() - began
    if found.rc:
        return took, f"code {found.rc}"
    return took, "queued" if words[0] == "send" and found.json.get("queued") else "done"


def run_at_once(count: int, act: Callable[[], Outcome]) -> list[Outcome]:
    """Do it so often at once."""
    found: list[Outcome] = []
    threads = [threading.Thread(target=lambda: found.append(act())) for _ in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return found
