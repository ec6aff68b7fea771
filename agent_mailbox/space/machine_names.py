"""Taking a machine's name in a space, or taking it over from a machine that was given up.

Belongs here: that decision. The engine keeps the mailbox that was first to take a name. Another one may take it over
once a person gave the machine up (`engine forget`) and nothing came of that machine since. A machine that lives answers
as it hears that (``replica``), so its name stays its own. Each of these records is as good as its writer:

    first mailbox, took over    whoever has the credential of that name, which may say anything in that name
    gave up                     any machine of the space; alone it gives nobody the name
    answer                      the machine itself, as the engine proves it

The record of a take-over has the new key. An earlier one counts for nothing on any machine that comes to this record.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ..errors import Refused
from . import space as spaces
from .copy.space_troubles import note_displaced
from .order.follow_progress import FollowProgress, took_over
from .order.order import PASSED
from .trust import machine_keys
from .trust.machine_keys import make_key

if TYPE_CHECKING:
    from .copy.replica import Replica
    from .order.order import SpaceOrder

MOST = 1000
"""Records that a look reads ahead: each is a question."""


def take_name(copy: Replica, order: SpaceOrder) -> None:
    """Take the machine's name for the mailbox of a copy, perhaps from a machine that was given up; idempotent.

    Raises ``Refused`` if another mailbox has it."""
    mine, machine = spaces.owner_of(copy.logs), order.machine
    first = order.take_name(mine)
    standing = FollowProgress().take_records(order.of_log(PASSED))
    key = standing.keys.get(machine)
    if first != mine if key is None else key != _own_fingerprint(copy):
        if machine not in standing.gone:
            raise Refused(
                f"machine's name is another mailbox's: {machine}",
                f"choose another --machine; or, if {machine} is lost, repeat this once another machine of the space"
                f" ran: agent-mailbox engine forget {machine}",
            )
        _take_over(copy, order, standing.position)
    if first != mine:
        spaces.keep_owner(copy.logs, first)


def look_ahead(copy: Replica, order: SpaceOrder) -> FollowProgress:
    """Return who was given up and whose name was taken over, also by what the copy has yet to follow.

    If this machine's name was, that is noted."""
    ahead = itertools.islice(order.of_log(PASSED, copy.state.applied), MOST)
    standing = FollowProgress({*copy.state.gone}, {**copy.state.keys}).take_records(ahead)
    key = standing.keys.get(order.machine)
    if key is not None and copy.judge is not None and not copy.judge.is_own_key(key):
        note_displaced(copy.directory, order.machine)
    return standing


def _take_over(copy: Replica, order: SpaceOrder, last: int) -> None:
    """Make a new key, and tell it; ``last``: the position of the last record by which that was decided."""
    if not machine_keys.is_available():
        what = "package for signatures is missing, by which a name is taken over: cryptography"
        raise Refused(what, "agent-mailbox's extra `engine` brings it", code="no_extra")
    with copy.machine_lock():
        machine_keys.remove_key(copy.directory)
        make_key(copy.directory)
        spaces.keep_last_name(copy.logs, order.machine)
    order.append_lines(PASSED, [took_over(_own_fingerprint(copy))], expect=last)


def _own_fingerprint(copy: Replica) -> str:
    """Return the fingerprint of the key that is here; empty if there is none."""
    key = machine_keys.load_key(copy.directory)
    return "" if key is None else machine_keys.key_fingerprint(key.public)
