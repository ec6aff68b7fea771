"""The names of the list: easily told apart, each given once."""

from __future__ import annotations

from agent_mailbox.core import address, given_names, misspelt, roster_changes
from agent_mailbox.core.given_names import NAMES
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_changes import Registration
from tests.core.build import at, event


def named(roster: Roster, session_id: str, used: tuple[str, ...] = (), **more: object) -> str | None:
    """Register a session that has no name; return the name that it got."""
    request = Registration(session_id=session_id, is_unused=lambda name: name not in used, **more)
    for one in roster_changes.enrolled(request, roster, session_id, at(1), address.NAMESPACES).events:
        roster.apply(one.replace(proof=event("register", session_id).proof))
    agent = roster.get(session_id)
    return None if agent is None else agent.name


def test_no_two_names_of_the_list_look_alike() -> None:
    """A misspelt name means one agent or none, and no name is a word of ours."""
    for place, name in enumerate(NAMES):
        assert misspelt.nearly(name, (*NAMES[:place], *NAMES[place + 1 :])) == [], name
        assert address.check_name(name) == name
    assert len(NAMES) > 100


def test_no_name_is_given_twice_and_a_number_follows_where_all_are_used() -> None:
    """A name of the dead, of a role or of an id is passed over, whatever its case."""
    roster = Roster([event("register", "a", tags=("role:otter",)), event("register", "HERON")])
    first = named(roster, "s0")
    roster.apply(event("retire", "s0"))
    given = [first, *(named(roster, f"s{number}") for number in range(1, len(NAMES) + 20))]
    assert len(set(given)) == len(given)
    assert not {"Otter", "Heron"} & set(given)
    assert {*NAMES} - {*given} == {"Otter", "Heron"}
    extra = [name for name in given if name not in NAMES]
    assert len(extra) == 22
    assert all(name and name.rpartition("-")[0] in NAMES for name in extra)


def test_who_has_a_name_keeps_it_and_who_names_itself_decides() -> None:
    """A wish goes before the list; a session that registers again is who it was; a used name is passed over."""
    roster = Roster()
    assert named(roster, "s1", name="Ann") == "Ann"
    name = named(roster, "s2")
    assert named(roster, "s2") == name
    fresh = Roster()
    assert named(fresh, "s2", used=(str(name),)) != name
    assert next(given_names._candidates("s2")) == name
