"""Two machines in one process, whose order is in memory, and what happens on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.space import joining_space
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import shared_steward

from .memory_order import MemoryOrder, MemorySpace, copy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from agent_mailbox.core.records import Message
    from agent_mailbox.store.archive.rotation import Rotated


class Overtaken(MemoryOrder):
    """A way to a space on which another machine is first, once."""

    first: Callable[[], object] | None = None

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        """Let the other one go first, then append."""
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().append_lines(log, lines, ids=ids, expect=expect)


class Two:
    """Two machines of a space, each with a session that has the role ``dev``."""

    def __init__(self, place: Path) -> None:
        space = MemorySpace()
        self.orders = [Overtaken(space, name) for name in ("north", "south")]
        self.boxes = [Mailbox(creation.create(str(place / order.machine), os.environ)) for order in self.orders]
        for box, order, who in zip(self.boxes, self.orders, ("ann", "ben"), strict=True):
            box.share(copy_of(box.logs, order, str(place / f"{order.machine}.engine")))
            box.register(Registration(session_id=who, roles=("dev",)), who)


def shown(box: Mailbox, who: str) -> list[str]:
    found: list[Item] = []
    box.deliver(who, lambda items: (found.extend(items), items)[1])
    return [item.message.content for item in found]


def steward(box: Mailbox, *hopeless: str) -> Rotated:
    """A steward's decisions on a machine; of these dead letters nobody is told."""
    assert box.replica is not None
    return shared_steward.move_finished(box, box.replica, 0, {*hopeless})


def live(box: Mailbox) -> list[str]:
    """The contents of what is live on a machine."""
    return [message.content for message in box.state().messages.values()]


def archived(box: Mailbox) -> list[str]:
    """The contents of what a machine archived."""
    return sorted(message.content for message in box.archive.messages().values())


def read(two: Two, *contents: str) -> None:
    """Ann sends Ben mail, who reads it."""
    north, south = two.boxes
    for content in contents:
        north.send(Draft(sender="ann", to=("ben",), content=content))
    south.catch_up()
    assert shown(south, "ben") == list(contents)


def machine(two: Two, place: Path, name: str) -> Mailbox:
    """One more machine of the space, which has taken in everything."""
    box = Mailbox(creation.create(str(place / name), os.environ))
    box.share(copy_of(box.logs, MemoryOrder(two.orders[0].space, name), str(place / f"{name}.engine")))
    box.catch_up()
    return box


def purge(two: Two) -> int:
    """Purge the engine; how many records went."""
    found = joining_space.plan_purge(two.orders[0], ("north", "south"))
    joining_space.purge_records(two.orders[0], found, two.orders[0])
    return len(found.positions)


def gone(two: Two) -> Message:
    """The first message was archived on both machines, and another one waits for Ben; return the first one."""
    north, south = two.boxes
    read(two, "one")
    (sent,) = north.state().messages.values()
    for box in (south, north, south):
        box.catch_up()
        steward(north)
    north.send(Draft(sender="ann", to=("ben",), content="last"))
    return sent


def with_dead(box: Mailbox, patch: pytest.MonkeyPatch) -> None:
    """Two sessions come, take three names each, and end; a steward finds that long."""
    patch.setattr(shared_steward, "COMPACT_ABOVE", 8)
    for who in ("cat", "dot"):
        for name in ("one", "two", "three"):
            box.register(Registration(session_id=who, name=f"{who}-{name}"), who)
            box.end(who, "freeze", who)
        box.end(who, "retire", who)


def roster_lines(box: Mailbox) -> tuple[list[bytes], list[bytes]]:
    """The roster's lines of a machine, live and archived, without seals and sorted."""
    live, gone = ([unsealed(line) for _, line in log.lines()] for log in (box.logs.roster, box.archive.roster_log()))
    return sorted(live), sorted(gone)
