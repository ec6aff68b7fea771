"""Two mailboxes that share a space on a real server, and the hand of the one that means ill.

Belongs here: a machine with its own credential and its own key, which publishes what no command would write.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import BadData, Draft, Mailbox, Registration
from agent_mailbox.core import codec, proofs, space_seals
from agent_mailbox.core.machine_rights import Rights
from agent_mailbox.core.records import USER
from agent_mailbox.space import joining_space, space_checks
from agent_mailbox.space import space as spaces
from agent_mailbox.space.order.order import ARCHIVE, CLAIMS, MESSAGES, PASSED, ROSTER, reads_of
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import creation
from tests.control_desk import ControlDesk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_mailbox.core.records import RosterEvent
    from agent_mailbox.core.roster import Agent
    from agent_mailbox.space.order.order import SpaceOrder
    from agent_mailbox.space.space import Space


_numbers = itertools.count(2 * 10**15)


def saying(who: str) -> str:
    """The proof of whoever the test lets speak."""
    return proofs.TERMINAL if who == USER else proofs.of_session(who)


class Joined:
    """A mailbox that is a machine of a space."""

    def __init__(self, place: Path, space: Space) -> None:
        self.space = space
        self.path = creation.create(str(place / space.machine), os.environ)
        self.join()
        self.order: SpaceOrder = spaces.order_of(space)

    def join(self) -> None:
        """Join the space, perhaps once more."""
        logs = Mailbox(self.path).logs
        joining_space.join_space(logs, self.space)
        self.directory = spaces.record_of(logs).path(spaces.PLACE)
        self.key = machine_keys.load_key(self.directory)
        self.box = Mailbox(self.path, prove=saying)

    @property
    def control(self) -> ControlDesk:
        """The control plane of the mailbox."""
        return ControlDesk(self.box)

    def trust(self, other: Joined, *sessions: str, user: bool = False) -> None:
        """The person here says whom the other machine may speak for."""
        assert other.key is not None
        rights = Rights(machine_keys.key_fingerprint(other.key.public), user, sessions)
        machine_keys.save_rights(self.directory, {other.space.machine: rights}, applied=True)

    def catch_up(self) -> Joined:
        self.box.catch_up()
        return self

    def agent(self, session_id: str) -> Agent | None:
        """What this machine knows of a session."""
        return self.catch_up().box.logs.read_roster().get(session_id)

    def close(self) -> None:
        self.order.close()

    # -- what no command writes ---------------------------------------------------------------------------------------

    def put(self, log: str, line: bytes, proof: str | None = None) -> None:
        """Publish bytes in this machine's name; ``proof``: with a true seal that says that word."""
        line = line.rstrip(b"\n")
        if proof is not None:
            assert self.key is not None
            signed = space_seals.begun(line, self.space.machine, next(_numbers), self.key.public, proof)
            line = space_seals.ended(signed, self.key.sign_bytes(space_seals.covered(self.space.space, log, signed)))
        message = codec.message(line) if log == MESSAGES else None
        ids = [getattr(message, "id", os.urandom(8).hex())] if log == MESSAGES else []
        self.order.append_lines(log, [line], ids=ids)

    def tell(self, event: RosterEvent, proof: str | None = None) -> None:
        """Publish a roster event."""
        self.put("roster", codec.spell_event(event), proof)


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
