"""Two mailboxes that share a space on a real server, and the hand of the one that means ill.

Belongs here: a machine with its own credential and its own key, which publishes what no command would write.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.core import codec, proofs, space_seals
from agent_mailbox.core.machine_rights import Rights
from agent_mailbox.core.records import USER
from agent_mailbox.space import joining_space
from agent_mailbox.space import space as spaces
from agent_mailbox.space.order.order import MESSAGES
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.store.user_state import creation
from tests.control_desk import ControlDesk

if TYPE_CHECKING:
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
        """Take in what is new."""
        self.box.catch_up()
        return self

    def agent(self, session_id: str) -> Agent | None:
        """What this machine knows of a session."""
        return self.catch_up().box.logs.read_roster().get(session_id)

    def close(self) -> None:
        """Close the connections."""
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
