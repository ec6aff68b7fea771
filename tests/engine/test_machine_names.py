"""A machine's name is its own as long as it lives; once it was given up, another mailbox may take the name over."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from agent_mailbox import Draft, Mailbox, Refused, Registration
from agent_mailbox.errors import BadData, Unavailable
from agent_mailbox.space import joining_space, replicator, space_checks, space_words
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.copy.space_troubles import TAKEN, noted_trouble
from agent_mailbox.space.order.order import Displaced, Moved
from agent_mailbox.space.space import Space
from agent_mailbox.space.trust import machine_keys, space_judge
from agent_mailbox.store.user_state import creation

from .hostile_space import Joined

if TYPE_CHECKING:
    from collections.abc import Callable

_spaces = itertools.count()
IS_GONE = "this machine was given up, and another mailbox has its name now: north"
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

    make_key = machine_keys.make_key

    def north_speaks(directory: str) -> None:
        make_key(directory)
        north.catch_up()  # it hears that it was given up, and says that it lives

    joining_space.forget_machine(south.box, "north")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_keys, "make_key", north_speaks)
        with pytest.raises(Moved):
            joining_space.join_space(logs, north.space)
    with pytest.raises(Refused, match=IS_ANOTHER_S):
        joining_space.join_space(logs, north.space)

    south.box.send(Draft(sender="ben", to=("ann",), content="to the lost one"))
    joining_space.forget_machine(south.box, "north")
    assert [one["given_up"] for one in joining_space.read_standing(south.box.logs).machines] == [True]
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

    assert machine_keys.load_rights(south.directory) == {}
    assert noted_trouble(again.directory, TAKEN) == ""
    problems = space_checks.space_problems(again.box.logs, joining_space.read_standing(again.box.logs))
    assert replicator.name_warning("north") not in problems
    (other,) = joining_space.read_standing(again.box.logs).machines
    assert other == {"machine": "south", "behind": None, "heard": None, "given_up": False, "key": None}
    assert [one["machine"] for one in space_judge.unheard_lines(again.box.logs)] == ["south"]
    key = machine_keys.key_fingerprint(again.key.public)
    (other,) = joining_space.read_standing(south.box.logs).machines
    assert (other["given_up"], other["key"]) == (False, key)

    def is_away(*_: object) -> NoReturn:
        raise Unavailable("away", "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining_space, "look_ahead", is_away)
        assert [one["key"] for one in joining_space.read_standing(south.box.logs).machines] == [key]
    told = space_words.describe_standing(joining_space.read_standing(south.box.logs), str)
    assert f"engine join --key north={key} --speaks north=user,all" in told
    assert "by its key before another mailbox took its name over: they count for nothing" in told
    wakes(north, south, space("east"))
    for one in (north, south, again):
        one.close()


def wakes(north: Joined, south: Joined, other: Space) -> None:
    """The old mailbox hears at the first look that it has no name, and keeps what its sessions send.

    Under another name it brings that mail to the others."""
    logs = north.box.logs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining_space, "AHEAD", 3)  # of what it has yet to follow
        standing = joining_space.read_standing(logs)
    assert IS_GONE in standing.troubles[0]
    assert "serve --install" not in space_words.describe_standing(standing, str)
    assert noted_trouble(north.directory, TAKEN) == spaces.why_late(logs)
    end = south.order.last_position()
    for _ in range(2):  # the first look takes the order in
        sent = north.box.send(Draft(sender="ann", to=("ben",), content="of the old disk"))
        assert sent.queued is not None
        assert IS_GONE in sent.queued
    with pytest.raises(Displaced):
        joining_space.purge_archived(logs, None, None)
    why, waits = space_checks.space_problems(logs, joining_space.read_standing(logs))
    assert (why, waits.partition(" since ")[0]) == (spaces.why_late(logs), "2 sends wait here for the engine")
    assert south.order.last_position() == end
    joining_space.leave_space(logs)
    assert spaces.why_late(logs) == ""
    with pytest.raises(Refused, match=IS_ANOTHER_S):
        north.join()
    north.space = other
    north.join()
    assert shown(south.catch_up(), "ben") == ["of the old disk"] * 2


def shown(machine: Joined, who: str) -> list[str]:
    found: list[str] = []
    machine.box.deliver(who, lambda items: found.extend(one.message.content for one in items) or items)
    return found


def test_the_name_of_a_machine_that_was_given_up_is_taken_over(tmp_path: Path, server: str, credential: str) -> None:
    """NATS orders it; ``test_postgres_order`` has the same with PostgreSQL."""
    space = f"names-{next(_spaces)}"
    take_over(tmp_path, lambda machine: Space(server, space, machine, credential))


def test_who_is_cut_off_as_it_joins_is_in_no_space(
    tmp_path: Path, server: str, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mailbox is in a space once all of that is here, and compared: one that lost its engine before is in none."""
    space = Space(server, f"names-{next(_spaces)}", "north", credential)
    logs = Mailbox(creation.create(str(tmp_path / "north"), os.environ)).logs

    def lose_engine(*_: object) -> None:
        raise Unavailable("engine is out of reach", "wait for it")

    with monkeypatch.context() as away:
        away.setattr(Replica, "take_in", lose_engine)
        with pytest.raises(Unavailable):
            joining_space.join_space(logs, space)
    assert spaces.space_of(logs) is None
    assert joining_space.join_space(logs, space).machine == "north"


def test_who_lacks_a_record_of_the_space_is_told_as_it_joins(tmp_path: Path, server: str, credential: str) -> None:
    """A line that was changed here is no line of the space any more: the copies would differ for ever."""
    one = Joined(tmp_path, Space(server, f"names-{next(_spaces)}", "north", credential))
    one.box.send(Draft(sender="ann", to=("all",), content="of all"))
    log = Path(one.box.logs.messages.path)
    log.write_bytes(log.read_bytes().replace(b"of all", b"of one"))
    with pytest.raises(BadData, match="record of the space is not here"):
        one.join()
    one.close()
