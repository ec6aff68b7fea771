"""The replicator's log, and the word of a command that waits for the engine.

Belongs here: lines for the standard error output. ``space.space_words`` has the answers.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ..core import instant
from ..core.text import neutral
from ..store.files import system
from ..store.locks.holder import holder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..space.space import Space

SILENT = 1.0
"""Seconds for which a command asks the engine without a word."""


def print_logged(said: str) -> None:
    """Print a line of the replicator's log, with its time."""
    click.echo(f"{instant.text(system.time_ns() // 1_000_000)} {neutral(said)}", err=True)


@contextmanager
def saying_whom(place: Space | None) -> Iterator[None]:
    """Say whom the command waits for, if the block takes more than a second: who has a lock, or the engine."""
    if place is None:
        yield
        return
    url = place.url

    def say_whom() -> None:
        held = next(filter(None, map(holder_of, [*system.waiting])), "")
        click.echo(neutral(f"waiting: the mailbox is locked{held} …" if held else f"asking {url} …"), err=True)

    clock = threading.Timer(SILENT, say_whom)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
