"""Whose command counts: by the lead that an agent had at the instant of the command."""

from __future__ import annotations

import pytest

from agent_mailbox.core.control.authority import lead_at

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
