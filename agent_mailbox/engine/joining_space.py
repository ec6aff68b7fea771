"""Joining a space, leaving it, and what stands in it.

Belongs here: the order of those steps. ``mailbox.replica`` publishes and takes in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import NotFound, Refused, Unavailable
from ..mailbox import space as spaces
from ..store.lock import is_held

if TYPE_CHECKING:
    from ..mailbox.space import Space
    from ..nats.nats_order import NatsOrder
    from ..store.logs import Logs

SERVING = "serving"
"""The file whose lock the replicator holds."""


class SpaceStanding(Record):
    """A machine's place in its space.

    ``records``: the order's last position; ``applied``: up to where its records are here. ``waiting``: local lines that
    are not in the order. ``queued``: sends that wait. ``unsent``: messages whose ids are other messages'. ``trouble``:
    why the engine does not answer; empty if it does."""

    space: str
    machine: str
    url: str
    serving: bool
    records: int
    applied: int
    waiting: int
    queued: int
    unsent: int
    trouble: str


def join(logs: Logs, space: Space) -> SpaceStanding:
    """Put the mailbox into a space, publish what is here, take in what is there; idempotent.

    Raises ``Refused`` if another mailbox has the machine's name, or if this mailbox is in another space."""
    present = spaces.of(logs)
    if present is not None and (present.space, present.machine) != (space.space, space.machine):
        raise Refused(
            f"mailbox is in another space: {present.space} as {present.machine}", "run `agent-mailbox engine leave`"
        )
    copy = spaces.opened(logs, space)
    order: NatsOrder = copy.order  # type: ignore[assignment]
    order.make()
    mine = spaces.record_of(logs).id.decode()
    if order.named(mine) != mine:
        raise Refused(f"machine's name is another mailbox's: {space.machine}", "choose another --machine")
    with copy.held():
        copy.catch_up()
        copy.compare()
        spaces.save(logs, space)
        copy.catch_up()
    return standing(logs)


def leave(logs: Logs) -> SpaceStanding:
    """Publish what is here alone, compare, and make the mailbox one machine's; its files stay.

    An engine that is out of reach hinders nothing: what is here stays here."""
    space = _joined(logs)
    copy = spaces.opened(logs, space)
    with copy.held():
        try:
            copy.catch_up()
            copy.compare()
        except Unavailable:
            pass
        found = standing(logs)
        if found.queued:
            raise Refused(f"mail still waits for the engine: {found.queued} sends", "leave when it is in reach")
        spaces.forget(logs)
    return found


def standing(logs: Logs) -> SpaceStanding:
    """Return how far this machine is; asks the engine, and changes nothing."""
    space = _joined(logs)
    copy = spaces.opened(logs, space)
    copy.look()
    records, trouble = copy.applied, ""
    try:
        records = copy.order.end()
    except (Unavailable, Refused) as error:
        trouble = error.what
    queued = len(copy.queue.entries())
    waiting = sum(1 for _ in copy.waiting())
    serving = is_held(spaces.record_of(logs).path(spaces.PLACE, SERVING))
    where = space.space, space.machine, space.url
    return SpaceStanding(*where, serving, records, copy.applied, waiting, queued, copy.queue.unsent(), trouble)


def _joined(logs: Logs) -> Space:
    space = spaces.of(logs)
    if space is None:
        raise NotFound(f"mailbox is in no space: {logs.directory}", "`agent-mailbox engine join URL --space NAME`")
    return space
