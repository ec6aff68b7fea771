"""Servers that are dark: they take connections, and say nothing, as behind a cable that was pulled out.

Belongs here: stopping processes for a while.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """These processes are stopped within."""
    try:
        _signal_all(pids, signal.SIGSTOP)
        yield
    finally:
        _signal_all(pids, signal.SIGCONT)


def _signal_all(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # a database's server may end one that it started
            os.kill(pid, what)
