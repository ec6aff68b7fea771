"""The lock that a team's bridge holds while it carries mail to the client's team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import StorageFailed
from ..files import system
from .lock import is_held

if TYPE_CHECKING:
    from ..log.logs import Logs

DIRECTORY = "teams"
"""The place of the bridges' locks among the derived files."""
ASKED = 0.2
"""Seconds a bridge waits for its lock: ``runs`` takes it for a moment, too."""


def place(logs: Logs, tag: str) -> str:
    """Return the lock file of a team, by its tag."""
    return system.join(logs.cache(DIRECTORY), tag.partition(":")[2])


def runs(logs: Logs, tag: str) -> bool:
    """Return whether the team has a bridge at this moment."""
    try:
        return is_held(place(logs, tag))
    except StorageFailed:
        return False
