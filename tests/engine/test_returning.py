"""Sessions that were taken for gone, and come back: role mail, names and roles have one holder on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Refused, Registration
from agent_mailbox.core import message_reads
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster import CLIENT_ENDED
from agent_mailbox.mailbox import absence
from agent_mailbox.space import joining_space

from .memory_order import MemorySpace
from .mortal import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox.core.inbox import Item


class Two:
    """Ann of the north and ben of the south hold one role. ``shown``: who was shown what, in turn."""

    def __init__(self, root: Path, client: str | None = None) -> None:
        space = MemorySpace()
        self.north, self.south = (Machine(str(root), name, space) for name in ("north", "south"))
        self.shown: list[tuple[str, str]] = []
        for one, who in ((self.north, "ann"), (self.south, "ben")):
            one.box.register(Registration(session_id=who, roles=("dev",), client=client), who)
        self.north.catch_up()

    def trust(self) -> None:
        """Each machine may speak for its sessions on the other one."""
        self.north.trust([self.south])
        self.south.trust([self.north])

    def send(self, text: str) -> None:
        """Somebody writes to the role."""
        self.south.box.send(Draft(sender="boss", to=("role:dev",), content=text))
        self.north.catch_up()

    def check(self, machine: Machine, who: str) -> None:
        """A session looks."""

        def show(items: list[Item]) -> list[Item]:
            self.shown += [(who, item.message.content) for item in items]
            return items

        machine.box.deliver(who, show)

    def die(self, machine: Machine, who: str) -> None:
        """A session is killed behind its claim, before it is shown anything."""

        def dies(_: list[Item]) -> list[Item]:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            machine.box.deliver(who, dies)

    def give_up(self, machine: Machine, other: Machine) -> None:
        """The person of a machine gives up another one."""
        absence.give_up(machine.box, joining_space.give_up(machine.box, machine.order, other.order.machine), USER)

    def holders(self) -> list[dict[str, str | None]]:
        """Who holds or claims each message, as each machine has it."""
        found = []
        for one in (self.north, self.south):
            one.catch_up()
            one.catch_up()
            state = one.box.state()
            claims = {message.content: state.reads.claim(i) for i, message in state.messages.items()}
            held = {m.content: message_reads.holder(m, state.reads, state.roster) for m in state.messages.values()}
            found.append({text: held[text] or (claim and claim.session_id) for text, claim in claims.items()})
        return found


def test_mail_that_another_machine_took_over_is_not_shown_again_though_nobody_is_listed(tmp_path: Path) -> None:
    """Ann is killed behind her claim, and recorded as gone. Ben takes the mail over. As ann comes back, his claim
    counts with her machine, though nobody said there whose word counts."""
    two = Two(tmp_path)
    two.send("one")
    two.die(two.north, "ann")
    two.north.box.end("ann", "freeze", "ann", CLIENT_ENDED)
    two.check(two.south, "ben")
    two.check(two.north, "ann")
    assert two.shown == [("ben", "one")]
    assert two.holders() == [{"one": "ben"}, {"one": "ben"}]


def test_a_session_claims_again_what_it_had_claimed_before_it_is_shown_it(tmp_path: Path) -> None:
    """Ben's process looked while ann was away, and does not look again. Ann comes back, and is shown her mail. The
    order refuses ben's claim, since hers is there once more."""
    two = Two(tmp_path)
    two.trust()
    two.send("one")
    two.die(two.north, "ann")
    two.give_up(two.south, two.north)
    two.south.catch_up()
    two.check(two.north, "ann")
    two.check(two.south, "ben")
    assert two.shown == [("ann", "one")]


def test_who_learns_as_it_claims_that_it_was_given_up_thaws_first(tmp_path: Path) -> None:
    """Ann's machine did not know that it was given up. Her claim comes behind her return, so nobody takes it over."""
    two = Two(tmp_path)
    two.trust()
    two.send("one")
    two.give_up(two.south, two.north)
    two.check(two.north, "ann")
    assert [one.log for one in two.south.order.read_after(0, 99) if one.machine == "north"][-2:] == ["roster", "claims"]
    two.check(two.south, "ben")
    assert two.shown == [("ann", "one")]


def test_a_session_with_a_client_is_back_with_those_who_gave_its_machine_up(tmp_path: Path) -> None:
    """The south gave the north up, and does not list it any more. Ann's return counts there all the same: else ben
    would take over whatever she claims from then on."""
    two = Two(tmp_path, client="1")
    two.trust()
    two.north.catch_up()
    two.south.catch_up()
    two.give_up(two.south, two.north)
    two.north.catch_up()
    two.send("one")
    two.die(two.north, "ann")
    two.check(two.south, "ben")
    two.check(two.north, "ann")
    assert two.shown == [("ann", "one")]
    assert two.south.box.state().roster.state("ann") == "alive"


def test_a_name_of_a_session_of_another_machine_is_not_taken(tmp_path: Path) -> None:
    """Ben cannot continue ann, who lives in the north: no other machine would believe it, and each would have a roster
    of its own. Once she is dead her name is free, and ben has none of her mail."""
    two = Two(tmp_path)
    two.north.box.register(Registration(session_id="ann", name="chief"), "ann")
    two.north.box.end("ann", "freeze", "ann")
    with pytest.raises(Refused, match="'chief' is taken by ann"):
        two.south.box.register(Registration(session_id="ben", name="chief"), "ben")
    with pytest.raises(Refused, match="ann lives on north, and ben does not"):
        two.south.box.register(Registration(session_id="ben", continues="ann"), "ben")
    two.north.box.end("ann", "retire", "ann")
    two.south.box.register(Registration(session_id="ben", name="chief"), "ben")
    for one in (two.north, two.south):
        one.catch_up()
        agent = one.box.state().roster.get("ben")
        assert agent is not None
        assert (agent.name, agent.continues) == ("chief", ())
