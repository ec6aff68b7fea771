"""Whose command counts: by the lead that an agent had at the instant of the command."""

from __future__ import annotations

import pytest

from agent_mailbox.core.address import ALL
from agent_mailbox.core.control import standing_orders
from agent_mailbox.core.control.authority import commands, lead_at
from agent_mailbox.core.proofs import of_session
from agent_mailbox.core.records import RosterEvent
from agent_mailbox.core.roster import Roster

from ..build import at, event, register, roster


@pytest.mark.parametrize(("hours", "lead"), [(0, "lee-1"), (1, "lee-1"), (2, "lee-1"), (3, "max-1"), (4, "max-1")])
def test_before_it_registered_an_agent_had_the_lead_that_it_registered_with(hours: int, lead: str) -> None:
    """A command of a clock that is behind counts, too; a later lead counts from its own instant on."""
    people = roster(register("bob-1", hours=1, lead="lee-1"), event("update", "bob-1", 3, lead="max-1"))
    assert lead_at(people.get("bob-1"), at(hours)) == lead


@pytest.mark.parametrize(("hours", "lead"), [(0, None), (1, None), (2, "lee-1")])
def test_a_lead_that_came_later_led_nobody_before(hours: int, lead: str | None) -> None:
    """An agent that registered without a lead had none."""
    people = roster(register("bob-1", hours=1), event("update", "bob-1", 2, lead="lee-1"))
    assert lead_at(people.get("bob-1"), at(hours)) == lead


def test_who_may_command_whom_is_told_by_whole_ids() -> None:
    """The person commands every agent, and a lead its own; an id may begin with another, and with the person's."""
    people = roster(register("user-1", lead="lee-1"), register("lee-1"), register("lee-10"))
    for worker in ("user-1", "lee-1", "lee-10"):
        assert commands("user", worker, at(1), people)
        assert not commands(worker, "user", at(1), people)
        assert not commands(worker, worker, at(1), people)
    able = {(one, two) for one in people.agents for two in people.agents if commands(one, two, at(1), people)}
    assert able == {("lee-1", "user-1")}


def test_an_order_to_all_binds_those_whom_its_sender_leads_by_a_foreign_line_alone() -> None:
    """Nothing proves that it is their lead, so it loosens nothing. It denies all the same."""
    roster = Roster(
        [
            RosterEvent("register", "ann", 0, proof=of_session("ann")),
            RosterEvent("register", "ben", 0, proof=of_session("ben")),
            RosterEvent("update", "ann", 1, lead="eve"),
        ]
    )
    for proven in (False, True):
        plan, loose = (
            standing_orders.Order(number, "eve", 2, ALL, standing_orders.MODE, mode, f"m{number}", proven)
            for number, mode in enumerate(("plan", "acceptEdits"))
        )
        assert standing_orders.find_mode([plan], "ann", roster)[0] == "plan"
        assert standing_orders.find_mode([plan], "ben", roster)[0] == "default"
        assert standing_orders.find_mode([loose], "ann", roster)[0] == "default"
