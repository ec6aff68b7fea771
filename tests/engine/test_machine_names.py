"""A machine's name is its own as long as it lives; once it was given up, another mailbox may take the name over."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Refused, Registration
from agent_mailbox.space import joining_space, machine_names
from agent_mailbox.space.copy.space_troubles import TAKEN, noted_trouble
from agent_mailbox.space.order.order import Moved
from agent_mailbox.space.space import Space
from agent_mailbox.space.trust import machine_keys, machine_trust, space_trust
from agent_mailbox.store.user_state import creation

from .hostile_space import Joined

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_spaces = itertools.count()
IS_ANOTHER_S = "machine's name is another mailbox's: north"


def take_over(place: Path, space: Callable[[str], Space]) -> None:
    """A new mailbox has the name of the north only once that one was given up and is silent, with a key of its own.

    It has the mail of the north's sessions, and the old mailbox, its key and its way back are refused. The south is
    listed, too, of which it heard nothing yet."""
    north, south = (Joined(place, space(name)) for name in ("north", "south"))
    for one, who in ((north, "ann"), (south, "ben")):
        one.box.register(Registration(session_id=who, roles=("dev",)), who)
    logs = Mailbox(creation.create(str(place / "again" / "north"), os.environ)).logs
    with pytest.raises(Refused, match=IS_ANOTHER_S):
        joining_space.join_space(logs, north.space)

    def north_speaks(directory: str) -> None:
        machine_keys.make_key(directory)
        north.catch_up()  # it hears that it was given up, and says that it lives

    joining_space.forget_machine(south.box, "north")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_names, "make_key", north_speaks)
        with pytest.raises(Moved):
            joining_space.join_space(logs, north.space)
    with pytest.raises(Refused, match=IS_ANOTHER_S):
        joining_space.join_space(logs, north.space)

    south.box.send(Draft(sender="ben", to=("ann",), content="to the lost one"))
    joining_space.forget_machine(south.box, "north")
    south.trust(north, "all", user=True)  # as a machine does on which nobody gave it up
    again = Joined(place / "again", north.space)
    again.join()  # once more: it is its own
    assert again.key is not None
    assert north.key is not None
    assert again.key.public != north.key.public
    again.box.register(Registration(session_id="ann", roles=("dev",)), "ann")
    assert shown(again, "ann") == ["to the lost one"]
    again.box.send(Draft(sender="ann", to=("ben",), content="back"))
    assert shown(south.catch_up(), "ben") == ["back"]

    assert machine_trust.load_rights(south.directory) == {}
    assert noted_trouble(again.directory, TAKEN) == ""
    (other,) = joining_space.read_standing(again.box.logs).machines
    assert other == {"machine": "south", "behind": None, "heard": None}
    assert [one.machine for one in space_trust.unheard_lines(again.box.logs)] == ["south"]
    north.catch_up()
    assert "another mailbox has its name now" in noted_trouble(north.directory, TAKEN)
    joining_space.leave_space(north.box.logs)
    with pytest.raises(Refused, match=IS_ANOTHER_S):
        north.join()
    for one in (north, south, again):
        one.close()


def shown(machine: Joined, who: str) -> list[str]:
    """What a session is shown."""
    found: list[str] = []
    machine.box.deliver(who, lambda items: found.extend(one.message.content for one in items) or items)
    return found


def test_the_name_of_a_machine_that_was_given_up_is_taken_over(tmp_path: Path, server: str, credential: str) -> None:
    """NATS orders it; ``test_postgres_order`` has the same with PostgreSQL."""
    space = f"names-{next(_spaces)}"
    take_over(tmp_path, lambda machine: Space(server, space, machine, credential))
