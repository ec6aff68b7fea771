"""Records that no file can hold, or that are damaged, in the order of a real server.

Belongs here: what one machine publishes to keep the others out, and what they do all the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import BadData, Draft, Mailbox, Registration
from agent_mailbox.space import joining_space, space_checks
from agent_mailbox.space.order.order import ARCHIVE, CLAIMS, MESSAGES, PASSED, ROSTER, reads_of
from agent_mailbox.store.log.unordered import unsealed

from .hostile_space import Joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_mailbox.space.space import Space

LINES = b"", b"\n", b"a\nb", b"\r", b"\0", b"\xff\xfe", b"{}"
LOGS = MESSAGES, ROSTER, CLAIMS, ARCHIVE, PASSED, reads_of("north")


def lock_nobody_out(place: Path, at: Callable[[str], Space], damage: Callable[[Joined, str], object]) -> None:
    """North publishes such lines on each log; ``damage`` puts a damaged one there. South and north leave and join, mail
    arrives, and all copies are equal. The doctor counts what was passed over. Whoever lacks a record does not leave."""
    north, south = Joined(place, at("north")), Joined(place, at("south"))
    for log in LOGS:
        for line in LINES:
            north.order.append_lines(log, [line], ids=[os.urandom(8).hex()] if log == MESSAGES else [])
        damage(north, log)
    for one in (south, north):
        joining_space.leave_space(Mailbox(one.path).logs)
        one.join()
    south.box.register(Registration(session_id="ben"), "ben")
    sent = north.box.send(Draft(sender="ann", to=("ben",), content="one")).message.id
    assert [item.message.id for item in south.catch_up().box.peek("ben")] == [sent]
    said = [*space_checks.space_problems(north.box.logs, joining_space.read_standing(north.box.logs))]
    assert f"records of the engine are damaged: {len(LOGS)}; `engine purge` removes them" in said
    assert f"messages of other programs are among the space's records, and were passed over: {3 * 4}" in said
    logs = ((one.box.logs.roster, one.box.logs.messages, one.box.logs.reads) for one in (north, south))
    here, there = ([sorted(unsealed(line) for _, line in log.lines()) for log in three] for three in logs)
    assert here == there
    path = Path(south.box.logs.messages.path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"one"', b'"two"'))
    with pytest.raises(BadData, match="record of the space is not here"):
        joining_space.leave_space(Mailbox(south.path).logs)
    path.write_bytes(whole)
    for one in (north, south):
        joining_space.leave_space(Mailbox(one.path).logs)
        one.close()
