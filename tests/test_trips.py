"""The commonest trips stay short: how many modules and functions they touch, and how often they change the module."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from scripts.tracing import Trip, Walk
from tests.helpers import Post

if TYPE_CHECKING:
    from pathlib import Path

CEILINGS = {
    "send": Trip(30, 180, 150),
    "check, 3 unread": Trip(34, 255, 325),
    "hook with mail": Trip(38, 264, 248),
    "hook, nothing new": Trip(28, 129, 127),
    "control approve": Trip(48, 280, 319),
}
"""The most that each trip may take: these figures only go down."""


@pytest.mark.skipif(sys.platform != "linux", reason="the trips' callers are told by /proc")
def test_a_trip_is_a_budget(tmp_path: Path) -> None:
    """No trip touches more modules or functions than its ceiling, or changes the module more often."""
    found = walk(tmp_path / "first")
    assert found.keys() == CEILINGS.keys()
    if list_longer(found):  # on a busy machine a lock is waited for now and then, by calls of its own
        again = walk(tmp_path / "again")
        found = {name: Trip(*map(min, trip, again[name])) for name, trip in found.items()}
    assert not list_longer(found), f"ceilings {CEILINGS}; what calls what: scripts/trace TRIP"


def walk(scratch: Path) -> dict[str, Trip]:
    """Walk the trips in a mailbox of their own."""
    scratch.mkdir()
    return dict(Walk(Post(scratch)).trips())


def list_longer(found: dict[str, Trip]) -> dict[str, Trip]:
    """Return the trips that are over their ceilings."""
    return {name: trip for name, trip in found.items() if any(map(int.__gt__, trip, CEILINGS[name]))}
