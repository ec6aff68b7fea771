"""Decisions about the roster: names, roles, leads, succession, ends, the sweep."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core import proofs, roster_changes
from agent_mailbox.core.address import NAMESPACES
from agent_mailbox.core.instant import DAY, HOUR
from agent_mailbox.core.records import RosterEvent
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_changes import Decision, Registration
from agent_mailbox.errors import MailboxError, Malformed, NotFound, Refused

from .build import at, event, proof_of, register, roster

NOW = at(100)


def decide(agents: Roster, session_id: str, actor: str | None = None, **asked: object) -> Decision:
    """What a request leads to; who asks is the session itself unless said."""
    request = Registration(session_id=session_id, **asked)
    return roster_changes.enrolled(request, agents, actor or session_id, NOW, NAMESPACES)


def enrolled(agents: Roster, session_id: str, actor: str | None = None, **asked: object) -> Decision:
    """The same, carried out on ``agents``."""
    decision = decide(agents, session_id, actor, **asked)
    for told in decision.events:
        agents.apply(told.replace(proof=proof_of(actor or session_id)))
    return decision


# -- registering ------------------------------------------------------------------------------------------------------


def test_a_new_session_registers_with_all_that_it_says():
    """One event holds name, roles, tags, lead and client, at the time and by whom it was asked."""
    decision = decide(
        roster(register("ann-1")),
        "bob-1",
        "user",
        name="bob",
        roles=("x", "role:y"),
        tags=("project:p", "role:z"),
        lead="ann-1",
        client="claude-code",
    )
    (told,) = decision.events
    assert set(told.tags) == {"role:x", "role:y", "role:z", "project:p"}
    assert told.replace(tags=None) == RosterEvent(
        "register", "bob-1", NOW, name="bob", lead="ann-1", by="user", client="claude-code"
    )
    assert decision.warnings == ()


@pytest.mark.parametrize("kind", ["register", "update"])
def test_registering_and_updating_an_unknown_session_both_make_it_known(kind):
    """``roster update`` of a session nobody knows registers it, with the tags it names."""
    agents = roster()
    enrolled(agents, "bob-1", event=kind, tags=("project:p",))
    assert agents.state("bob-1") == "alive"
    assert agents.get("bob-1").tags == ("project:p",)


def test_saying_nothing_new_appends_nothing():
    """The roster log grows by changes alone."""
    agents = roster(register("bob-1", "role:x", name="bob", lead="user", client="c"))
    for kind in ("register", "update"):
        assert decide(agents, "bob-1", event=kind).events == ()
        same = decide(agents, "bob-1", event=kind, name="bob", roles=("x",), lead="user", client="c")
        assert same.events == ()


@pytest.mark.parametrize("end", ["freeze", "retire"])
def test_registering_brings_the_frozen_and_the_dead_back(end):
    """A session-start hook registers, and whoever registers lives."""
    agents = roster(register("bob-1", "role:x", name="bob"), event(end, "bob-1"))
    enrolled(agents, "bob-1")
    assert agents.state("bob-1") == "alive"
    assert agents.get("bob-1").roles == ("role:x",)


def test_the_dead_come_back_without_a_role_that_is_a_name_by_now():
    """An agent that comes back loses such a role, and keeps its other tags."""
    agents = roster(register("bob-1", "role:x", "role:y", "team:t"), event("retire", "bob-1"), register("x"))
    enrolled(agents, "bob-1")
    assert (agents.state("bob-1"), agents.get("bob-1").tags) == ("alive", ("role:y", "team:t"))


def test_updating_leaves_the_frozen_frozen_and_is_refused_to_the_dead():
    """Only registering again ends a death; an update is no sign of life."""
    agents = roster(register("bob-1"), event("freeze", "bob-1"))
    enrolled(agents, "bob-1", event="update", tags=("project:p",))
    assert agents.state("bob-1") == "frozen"
    assert agents.get("bob-1").tags == ("project:p",)
    agents.apply(event("retire", "bob-1"))
    with pytest.raises(Refused) as refused:
        decide(agents, "bob-1", event="update", tags=("project:q",))
    assert "register" in refused.value.hint


@pytest.mark.parametrize("session_id", ["", "a b", "role:x", "all", "../x", "user"])
def test_a_malformed_session_id_is_refused(session_id):
    """The person, everybody and words with colons or spaces are no sessions."""
    with pytest.raises(Malformed):
        decide(roster(), session_id)


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a b", "role:x", "all", "user", "a/b", "All", "USER", "you", "You"])
def test_a_malformed_or_reserved_name_is_refused(name):
    """Names follow the grammar of ids; the words for everyone, the person and the reader are not free, in any case."""
    with pytest.raises(Malformed):
        decide(roster(), "bob-1", name=name)


@pytest.mark.parametrize(
    "name", ["ANN", "aNn", "ANN-1", "1b4e28ba", "1B4E28BA", "1B4E28BA-2fa1-41d2-883f-0016d3cca427"]
)
@pytest.mark.parametrize("end", [None, "freeze"])
def test_a_name_looks_like_no_other_agent_that_is_not_dead(name, end):
    """Readers see names and short ids: neither a twin by case nor a short id is free, until its agent is dead."""
    ids = ("ann-1", "1b4e28ba-2fa1-41d2-883f-0016d3cca427")
    agents = roster(register(ids[0], name="ann"), register(ids[1]), *(event(end, one) for one in ids if end))
    with pytest.raises(Refused) as refused:
        decide(agents, "bob-1", name=name)
    assert refused.value.code == "name_taken"
    for one in ids:
        agents.apply(event("retire", one))
    assert decide(agents, "bob-1", name=name).events


@pytest.mark.parametrize("kind", ["register", "update"])
def test_a_living_agents_name_or_id_cannot_be_anothers_name_or_id(kind):
    """A bare word means one agent: the refusal names who has it."""
    agents = roster(register("ann-1", name="ann"), register("bob-1", name="bob"))
    for taken in ("ann", "ann-1"):
        with pytest.raises(Refused) as refused:
            decide(agents, "bob-1", event=kind, name=taken)
        assert refused.value.code == "name_taken"
        assert "ann-1" in str(refused.value)
    with pytest.raises(Refused):
        decide(agents, "ann", event=kind)
    assert agents.get("bob-1").name == "bob"


def test_a_frozen_agents_id_stays_its_own():
    """Frozen is not gone: its id is no one's name, and its name no one's id."""
    agents = roster(register("ann-1", name="ann"), event("freeze", "ann-1"))
    with pytest.raises(Refused):
        decide(agents, "bob-1", name="ann-1")
    with pytest.raises(Refused):
        decide(agents, "ann")


def test_a_name_is_free_again_once_its_agent_is_dead():
    """A new agent may take the name of a dead one, as its name, its id or its role."""
    agents = roster(register("ann-1", name="ann"), event("retire", "ann-1"))
    assert decide(agents, "ann-2", name="ann").events
    assert decide(agents, "ann").events
    assert decide(agents, "bob-1", roles=("ann",)).events


def test_an_agent_may_be_named_as_its_own_id_and_may_rename_itself():
    """A name clashes with others only."""
    agents = roster(register("bob-1", name="bob"))
    enrolled(agents, "bob-1", name="bob-1")
    assert agents.get("bob-1").name == "bob-1"
    enrolled(agents, "bob-1", name="bob")
    assert agents.get("bob-1").name == "bob"


@pytest.mark.parametrize("end", [None, "freeze"])
def test_ids_and_names_equal_no_role_in_use(end):
    """A word that is a role of someone not dead, frozen included, means the role."""
    agents = roster(register("ann-1", "role:x"), *([event(end, "ann-1")] if end else []))
    for asked in ({"session_id": "x"}, {"session_id": "bob-1", "name": "x"}):
        with pytest.raises(Refused) as refused:
            decide(agents, **asked)
        assert refused.value.code == "name_taken"
    agents.apply(event("retire", "ann-1"))
    assert decide(agents, "x").events
    assert decide(agents, "bob-1", name="x").events


@pytest.mark.parametrize("how", ["roles", "tags", "add_tags"])
@pytest.mark.parametrize("word", ["ann-1", "ann", "bob-1"])
def test_a_role_equals_no_id_or_name_of_an_agent_not_dead(how, word):
    """The other way round, and one's own id included, however the role is given."""
    agents = roster(register("ann-1", name="ann"), event("freeze", "ann-1"))
    with pytest.raises(Refused) as refused:
        decide(agents, "bob-1", **{how: (word if how == "roles" else f"role:{word}",)})
    assert refused.value.code == "name_taken"


def test_a_role_and_a_name_of_one_request_must_differ():
    """An agent cannot register with the same word as its name and its role."""
    with pytest.raises(Refused):
        decide(roster(), "bob-1", name="x", roles=("x",))


def test_a_dead_id_does_not_hide_the_living_agent_of_that_name():
    """After a session ``x`` died, another may be named ``x``; then ``x`` is taken for names, ids and roles."""
    agents = roster(register("x"), event("retire", "x"), register("bob-1", name="x"))
    with pytest.raises(Refused):
        decide(agents, "cat-1", name="x")
    with pytest.raises(Refused):
        decide(agents, "cat-1", roles=("x",))


def test_a_dead_name_does_not_hide_the_living_agent_of_that_id():
    """After an agent named ``x`` died, a session may have the id ``x``; then nobody else is named or called so."""
    agents = roster(register("ann-1", name="x"), event("retire", "ann-1"), register("x"))
    with pytest.raises(Refused):
        decide(agents, "cat-1", name="x")


def alive_named(agents: Roster, name: str) -> list[str]:
    """Who has the name and is not dead."""
    return [a.session_id for a in agents.agents.values() if a.name == name and a.state != "dead"]


def test_who_comes_back_from_death_does_not_share_its_name_with_who_took_it():
    """A resumed session whose name has a new bearer must not make the name mean two agents."""
    agents = roster(register("bob-1", name="bob"), event("retire", "bob-1", 1), register("bob-2", name="bob"))
    try:
        enrolled(agents, "bob-1")
    except Refused:
        pass
    assert len(alive_named(agents, "bob")) == 1


def test_who_comes_back_from_death_does_not_share_its_id_with_a_role_or_name_taken_meanwhile():
    """The rule "ids equal no role in use" holds at every registration, not at the first alone."""
    for other in (register("cat-1", "role:x"), register("cat-1", name="x")):
        with pytest.raises(Refused):
            decide(roster(register("x"), event("retire", "x"), other), "x")


def test_who_comes_back_from_death_does_not_keep_a_name_that_became_a_role():
    """Its old name is a role in use by now: one of the two meanings must give way."""
    agents = roster(register("bob-1", name="x"), event("retire", "bob-1"), register("cat-1", "role:x"))
    try:
        enrolled(agents, "bob-1")
    except Refused:
        pass
    assert not (alive_named(agents, "x") and agents.role_in_use("x"))


def test_a_name_is_not_taken_from_a_frozen_agent_that_the_session_continues_already():
    """Continuing someone once is no licence to bear its name beside it when it lives again."""
    agents = roster(
        register("bob-1", name="bob"),
        event("retire", "bob-1"),
        register("bob-2", continues="bob-1"),
        event("register", "bob-1"),
        event("freeze", "bob-1"),
    )
    try:
        enrolled(agents, "bob-2", name="bob")
    except Refused:
        pass
    assert len(alive_named(agents, "bob")) == 1


# -- roles and tags ---------------------------------------------------------------------------------------------------


def tags_after(before: tuple[str, ...], **asked: object) -> set[str]:
    """The tags that an agent carries after an update."""
    agents = roster(register("bob-1", *before))
    enrolled(agents, "bob-1", event="update", **asked)
    return set(agents.get("bob-1").tags)


def test_tags_replace_all_but_role_tags():
    """``--tags`` says what an agent works on; its roles are another matter."""
    before = ("role:x", "project:p", "concern:c")
    assert tags_after(before, tags=("project:q",)) == {"role:x", "project:q"}
    assert tags_after(before, tags=()) == {"role:x"}


def test_roles_change_by_role_and_by_role_tags():
    """``--role`` replaces the roles; so does a ``role:`` among the tags; both together are a union."""
    before = ("role:x", "project:p")
    assert tags_after(before, roles=("y",)) == {"role:y", "project:p"}
    assert tags_after(before, tags=("role:y",)) == {"role:y"}
    assert tags_after(before, roles=("y",), tags=("role:z", "project:q")) == {"role:y", "role:z", "project:q"}


def test_tags_are_added_and_removed_one_by_one():
    """``--add-tags`` and ``--remove-tags`` leave the others; roles come and go with them too."""
    before = ("role:x", "project:p")
    assert tags_after(before, add_tags=("project:q", "role:y", "project:p")) == {
        *before,
        "project:q",
        "role:y",
    }
    assert tags_after(before, remove_tags=("project:p", "concern:c")) == {"role:x"}
    assert tags_after(before, remove_tags=("role:x",)) == {"project:p"}


def test_no_tag_is_carried_twice():
    """A tag given in several ways is one tag."""
    agents = roster()
    enrolled(agents, "bob-1", roles=("x", "x"), tags=("role:x", "project:p", "project:p"), add_tags=("project:p",))
    assert sorted(agents.get("bob-1").tags) == ["project:p", "role:x"]


@pytest.mark.parametrize("how", ["tags", "add_tags", "remove_tags"])
def test_a_tag_of_an_unknown_namespace_is_refused(how):
    """Naming the known ones, on whichever way it came."""
    with pytest.raises(Malformed) as refused:
        decide(roster(), "bob-1", **{how: ("planet:mars",)})
    assert "project:" in refused.value.hint


def test_several_live_holders_of_a_role_are_allowed_and_reported():
    """An agent that takes a role hears which living agents hold it too. Frozen and dead holders do not count."""
    agents = roster(
        register("ann-1", "role:x", name="ann"),
        register("cat-1", "role:x"),
        register("dan-1", "role:x", name="dan"),
        event("freeze", "cat-1"),
        event("retire", "dan-1"),
    )
    decision = enrolled(agents, "bob-1", roles=("x", "y"), tags=("project:p",))
    (warning,) = decision.warnings
    assert "role:x" in warning
    assert "ann" in warning
    assert "cat-1" not in warning
    assert "dan" not in warning
    assert agents.get("bob-1").roles == ("role:x", "role:y")


# -- leads ------------------------------------------------------------------------------------------------------------


def test_the_lead_is_set_at_registration_by_id_or_by_name():
    """A registration names the lead by id or name. The roster stores the lead's session id, or ``user``."""
    agents = roster(register("ann-1", name="ann"))
    for asked, stored in (("ann", "ann-1"), ("ann-1", "ann-1"), ("user", "user"), ("later-1", "later-1")):
        (told,) = decide(agents, "bob-1", lead=asked).events
        assert told.lead == stored


@pytest.mark.parametrize(("lead", "meant"), [("xyz", "."), ("annn", "; did you mean ann?")])
def test_a_lead_that_nobody_knows_is_told_with_what_was_meant(lead, meant):
    """A misspelt lead would leave every request to the person."""
    agents = roster(register("lee-1", name="ann"))
    says = f"no agent {lead!r} is registered{meant} Until it is, only the person decides its requests"
    assert decide(agents, "bob-1", lead=lead).warnings == (says,)


@pytest.mark.parametrize(
    ("actor", "may"),
    [("user", True), ("ann-1", True), ("bob-1", False), ("cat-1", False), ("eve-1", False), ("ann-10", False)],
)
@pytest.mark.parametrize("kind", ["register", "update"])
def test_the_lead_is_changed_only_by_the_user_or_the_present_lead(actor, may, kind):
    """An agent cannot choose whom it obeys, nor can another choose for it."""
    agents = roster(register("ann-1"), register("cat-1"), register("bob-1", lead="ann-1"))
    assert agents.get("bob-1").proven_leads
    if may:
        enrolled(agents, "bob-1", actor, event=kind, lead="cat-1")
        assert agents.get("bob-1").lead == "cat-1"
    else:
        with pytest.raises(Refused):
            decide(agents, "bob-1", actor, event=kind, lead="cat-1")
        assert decide(agents, "bob-1", actor, event=kind, lead="ann-1").events == ()


def test_an_id_that_begins_with_another_makes_nobody_its_lead_or_its_own():
    """An agent may have a lead whose id begins with its own. Only it names a lead where a foreign line registered it,
    and only the lead that is proven gives its worker another."""
    (told,) = decide(roster(register("bob-10")), "bob-1", lead="bob-10").events
    assert told.lead == "bob-10"
    foreign = register("bob-1", proof=None)
    assert decide(roster(foreign), "bob-1", lead="ann-1").events
    with pytest.raises(Refused):
        decide(roster(foreign, register("bob-10")), "bob-1", "bob-10", event="update", lead="ann-1")
    led = [register("ann-1"), register("ann-10"), register("bob-1", lead="ann-10")]
    agents = roster(*led, event("update", "bob-1", 1, lead="ann-1", proof=proof_of("ann-10")))
    assert [lead for _, lead in agents.get("bob-1").proven_leads] == ["ann-10", "ann-1"]
    enrolled(agents, "bob-1", "ann-1", event="update", lead="cat-1")
    assert agents.get("bob-1").lead == "cat-1"
    before = roster(*led, event("update", "bob-1", 1, lead="ann-1", proof=proofs.BEFORE))
    with pytest.raises(Refused):
        decide(before, "bob-1", "ann-1", event="update", lead="cat-1")


def test_a_session_continues_one_whose_id_begins_with_its_own():
    """It takes the name of the dead, and gets no place in the team of that one's client."""
    agents = roster(register("bob-10", "team:t", "project:p", name="bob"), event("retire", "bob-10", 1))
    enrolled(agents, "bob-1", name="bob")
    assert agents.lineage("bob-1") == ("bob-1", "bob-10")
    assert agents.get("bob-1").tags == ("project:p",)


def test_where_no_lead_was_set_only_the_user_sets_one():
    """Having none is no licence to pick one later."""
    agents = roster(register("ann-1"), register("bob-1"))
    for actor in ("bob-1", "ann-1"):
        with pytest.raises(Refused):
            decide(agents, "bob-1", actor, event="update", lead="ann-1")
    assert decide(agents, "bob-1", "user", event="update", lead="ann-1").events


@pytest.mark.parametrize("end", ["freeze", "retire"])
def test_coming_back_does_not_free_an_agent_of_its_lead(end):
    """Dying and registering again is no way around the lead."""
    agents = roster(register("ann-1"), register("bob-1", lead="user"), event(end, "bob-1"))
    with pytest.raises(Refused):
        decide(agents, "bob-1", lead="ann-1")
    enrolled(agents, "bob-1")
    assert agents.get("bob-1").lead == "user"


@pytest.mark.parametrize("end", ["freeze", "retire"])
@pytest.mark.parametrize("kind", ["register", "update"])
def test_nobody_takes_its_lead_s_place(end, kind):
    """An agent cannot take the name of a lead above it, even if that lead is frozen or dead."""
    people = [
        register("top-1", name="Top"),
        register("lee-1", name="Lee", lead="top-1"),
        register("wu-1", lead="lee-1"),
    ]
    agents = roster(*people, register("new-1"), event(end, "lee-1", 2), event(end, "top-1", 2))
    for name in ("Lee", "Top"):
        with pytest.raises(Refused) as caught:
            decide(agents, "wu-1", event=kind, name=name)
        assert caught.value.code == "not_lead"
        assert decide(agents, "new-1", event=kind, name=name).events
        assert decide(agents, "wu-1", "user", event=kind, name=name).events
    with pytest.raises(Refused):
        decide(agents, "wu-2", name="Lee", lead="lee-1")
    enrolled(agents, "lee-2", name="Lee")
    agents.apply(event("freeze", "lee-2", 101))
    with pytest.raises(Refused):
        decide(agents, "wu-1", event=kind, name="Lee")
    assert decide(agents, "wu-1", event=kind, name="Wu").events


def test_nobody_leads_itself():
    """Neither by id nor by name."""
    with pytest.raises(Refused):
        decide(roster(), "bob-1", lead="bob-1")
    with pytest.raises(Refused):
        decide(roster(register("bob-1", name="bob")), "bob-1", "user", event="update", lead="bob")


@pytest.mark.parametrize("others", [0, 1, 4])
@pytest.mark.parametrize("kind", ["register", "update"])
@pytest.mark.parametrize("actor", ["w-0", "user"])
def test_nobody_leads_itself_through_others(others, kind, actor):
    """A circle of any length is refused, whoever asks; the hint takes one out of it."""
    agents = roster(*(register(f"w-{n + 1}", lead=f"w-{n}") for n in range(others + 1)))
    if actor == "user":
        agents.apply(register("w-0", name="Top"))
    with pytest.raises(Refused) as refused:
        decide(agents, "w-0", actor, event=kind, lead=f"w-{others + 1}")
    assert refused.value.code == "lead_circle"
    assert f"w-{others + 1} → w-0" in str(refused.value)
    enrolled(agents, "w-1", "user", event="update", lead="user")
    assert enrolled(agents, "w-0", actor, event=kind, lead=f"w-{others + 1}").events or actor == "w-0"


def test_nobody_leads_itself_through_who_continues_another():
    """The lead of a worker is who continues the lead that it had."""
    agents = roster(register("old-1", name="bob"), event("retire", "old-1"), register("w-1", lead="old-1"))
    enrolled(agents, "new-1", "user", name="bob")
    with pytest.raises(Refused):
        decide(agents, "new-1", "user", event="update", lead="w-1")


# -- succession -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["freeze", "retire"])
def test_a_successor_by_name_continues_the_tags(end):
    """Projects, concerns and roles; what it names itself takes their place, and a client's team is the client's."""
    carried = ("role:dev", "project:toy", "concern:x", "team:t")
    before = (register("ana-1", *carried, name="ana"), event(end, "ana-1"))
    for asked, tags in (
        ({}, {"role:dev", "project:toy", "concern:x"}),
        ({"roles": ("ops",)}, {"role:ops", "project:toy", "concern:x"}),
        ({"tags": ("project:new",)}, {"role:dev", "project:new"}),
        ({"add_tags": ("domain:d",), "remove_tags": ("concern:x",)}, {"role:dev", "project:toy", "domain:d"}),
    ):
        agents = roster(*before)
        enrolled(agents, "ana-2", name="ana", **asked)
        assert set(agents.get("ana-2").tags) == tags
    agents = roster(*before, register("ana-2", "project:own"))
    enrolled(agents, "ana-2", event="update", name="ana")
    assert set(agents.get("ana-2").tags) == {"role:dev", "project:toy", "concern:x", "project:own"}
    agents = roster(*before, event("retire", "ana-1"), register("other", name="dev"))
    enrolled(agents, "ana-2", name="ana")
    assert set(agents.get("ana-2").tags) == {"project:toy", "concern:x"}


def test_registering_under_the_name_of_the_dead_continues_it():
    """The new agent has the old one in its lineage; the old one's death is not told again."""
    agents = roster(register("bob-1", name="bob"), event("retire", "bob-1"))
    (told,) = enrolled(agents, "bob-2", name="bob").events
    assert told.continues == "bob-1"
    assert agents.lineage("bob-2") == ("bob-2", "bob-1")


def test_registering_under_the_name_of_the_frozen_continues_it_and_ends_it():
    """The old one is retired first, so that the name never has two bearers that are not dead."""
    agents = roster(register("bob-1", name="bob"), event("freeze", "bob-1"))
    first, second = enrolled(agents, "bob-2", name="bob").events
    assert (first.event, first.session_id, first.timestamp, first.by) == ("retire", "bob-1", NOW, "bob-2")
    assert (second.event, second.session_id, second.continues) == ("register", "bob-2", "bob-1")
    assert agents.state("bob-1") == "dead"
    assert agents.bearer("bob").session_id == "bob-2"


def test_a_name_borne_several_times_continues_the_last_bearer_and_so_all():
    """Through the generations nothing is dropped."""
    agents = roster()
    for generation in range(1, 5):
        enrolled(agents, f"bob-{generation}", name="bob")
        for told in roster_changes.ended(f"bob-{generation}", "retire", agents, "user", NOW + generation).events:
            agents.apply(told)
    assert set(agents.lineage("bob-4")) == {"bob-1", "bob-2", "bob-3", "bob-4"}


@pytest.mark.parametrize("end", [None, "freeze", "retire"])
def test_a_clients_clear_continues_the_session_before_and_takes_its_name(end):
    """``continues`` names the old session: it is retired if it was not dead, and its name goes on."""
    agents = roster(register("bob-1", name="bob"), *([event(end, "bob-1")] if end else []))
    decision = enrolled(agents, "bob-2", name="bob", continues="bob-1")
    assert [told.event for told in decision.events] == (["register"] if end == "retire" else ["retire", "register"])
    assert agents.state("bob-1") == "dead"
    assert agents.lineage("bob-2") == ("bob-2", "bob-1")
    assert alive_named(agents, "bob") == ["bob-2"]


def test_continuing_and_taking_the_name_of_another_dead_agent_continues_both():
    """Two successions in one request: the mail of neither is left behind."""
    agents = roster(register("bob-1"), register("cat-1", name="cat"), event("retire", "cat-1"))
    enrolled(agents, "bob-2", name="cat", continues="bob-1")
    assert set(agents.lineage("bob-2")) == {"bob-2", "bob-1", "cat-1"}


def test_nobody_continues_itself_nor_the_same_session_twice():
    """Registering again under one's own name, or as continuing what one continues, says nothing new."""
    agents = roster(register("bob-1", name="bob"), event("retire", "bob-1"))
    enrolled(agents, "bob-1", name="bob")
    assert agents.lineage("bob-1") == ("bob-1",)
    agents = roster(register("bob-1", name="bob"), event("retire", "bob-1"), register("bob-2", continues="bob-1"))
    assert decide(agents, "bob-2", continues="bob-1").events == ()
    (told,) = enrolled(agents, "bob-2", name="bob").events
    assert told.continues is None
    assert decide(agents, "bob-2", continues="bob-2").events == ()


def test_continuing_again_who_lives_again_ends_it_again():
    """The lineage has it already; what is new is its death."""
    agents = roster(
        register("bob-1"), event("retire", "bob-1"), register("bob-2", continues="bob-1"), event("register", "bob-1")
    )
    told = enrolled(agents, "bob-2", continues="bob-1").events
    assert [e.session_id for e in told if e.event == "retire"] == ["bob-1"]
    assert agents.state("bob-1") == "dead"
    assert agents.lineage("bob-2") == ("bob-2", "bob-1")


def test_whom_somebody_living_continues_nobody_else_does():
    """A session has one successor: its name can be taken, its mail is inherited once."""
    agents = roster(register("bob-1", name="bob"), event("retire", "bob-1"), register("bob-2", continues="bob-1"))
    enrolled(agents, "cat-1", name="bob")
    assert agents.bearer("bob").session_id == "cat-1"
    assert agents.heirs("bob-1") == ["bob-2"]


def test_nobody_continues_the_person():
    """``user`` always lives: its mail is no one's to inherit, and no death of it is told."""
    agents = roster()
    try:
        assert [told.session_id for told in enrolled(agents, "bob-1", continues="user").events] == ["bob-1"]
    except MailboxError:
        pass
    assert "user" not in agents.lineage("bob-1")
    assert agents.heirs("user") == ["user"]


def test_a_fork_under_a_new_id_is_a_new_agent():
    """Without the name of one that is gone and without a clear, nothing is continued."""
    agents = roster(register("bob-1", "role:x", name="bob"), event("retire", "bob-1"))
    enrolled(agents, "bob-2", name="bob2", roles=("x",))
    assert agents.lineage("bob-2") == ("bob-2",)


# -- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "kind", "outcome"),
    [
        ("alive", "freeze", "frozen"),
        ("alive", "thaw", None),
        ("alive", "retire", "dead"),
        ("frozen", "freeze", None),
        ("frozen", "thaw", "alive"),
        ("frozen", "retire", "dead"),
        ("dead", "freeze", Refused),
        ("dead", "thaw", Refused),
        ("dead", "retire", None),
    ],
)
def test_freezing_thawing_and_retiring_follow_the_table(state, kind, outcome):
    """Freezing, thawing and retiring an agent in that state already changes nothing. A dead agent can be neither frozen
    nor thawed."""
    ends = {"alive": [], "frozen": [event("freeze", "bob-1")], "dead": [event("retire", "bob-1")]}
    agents = roster(register("bob-1"), *ends[state])
    if outcome is Refused:
        with pytest.raises(Refused) as refused:
            roster_changes.ended("bob-1", kind, agents, "user", NOW)
        assert "register" in refused.value.hint
        return
    decision = roster_changes.ended("bob-1", kind, agents, "user", NOW, "why")
    if outcome is None:
        assert decision == Decision()
    else:
        assert decision.events == (RosterEvent(kind, "bob-1", NOW, by="user", reason="why"),)
        agents.apply(decision.events[0])
        assert agents.state("bob-1") == outcome


def test_an_end_names_its_agent_as_any_command_does_and_says_who_asked():
    """A command ends an agent by its id, name or prefix. An agent that ends itself is not noted as asked by another."""
    agents = roster(register("abcdef-1", name="bob"))
    for word in ("abcdef-1", "bob", "abcdef"):
        (told,) = roster_changes.ended(word, "retire", agents, "abcdef-1", NOW).events
        assert (told.session_id, told.by) == ("abcdef-1", None)


def test_strangers_and_the_user_do_not_end():
    """An unknown agent and the person can be neither frozen, thawed nor retired."""
    for kind in ("freeze", "thaw", "retire"):
        with pytest.raises(NotFound):
            roster_changes.ended("eve-1", kind, roster(register("bob-1")), "user", NOW)
        with pytest.raises(Refused):
            roster_changes.ended("user", kind, roster(), "user", NOW)
        agents = roster(register("user-1"), *([event("freeze", "user-1", 1)] if kind == "thaw" else []))
        assert roster_changes.ended("user-1", kind, agents, "user", NOW).events


# -- checking in ------------------------------------------------------------------------------------------------------


def test_a_check_registers_the_unknown_thaws_the_frozen_and_is_refused_to_the_dead():
    """A check is a sign of life, of those that can still live."""
    assert roster_changes.checked_in("bob-1", roster(), NOW).events == (RosterEvent("register", "bob-1", NOW, tags=()),)
    agents = roster(register("bob-1", name="bob"))
    assert roster_changes.checked_in("bob-1", agents, NOW) == Decision()
    agents.apply(event("freeze", "bob-1"))
    assert roster_changes.checked_in("bob-1", agents, NOW).events == (RosterEvent("thaw", "bob-1", NOW),)
    agents.apply(event("retire", "bob-1", reason="bye"))
    with pytest.raises(Refused) as refused:
        roster_changes.checked_in("bob-1", agents, NOW)
    assert "bye" in str(refused.value)
    assert refused.value.code == "dead"


def test_a_check_is_by_session_id_and_the_person_needs_no_register():
    """A check by a word that is another's name is no check by that agent; ``user`` leaves no event."""
    agents = roster(register("bob-1", name="bob"))
    with pytest.raises(Refused):
        roster_changes.checked_in("bob", agents, NOW)
    assert roster_changes.checked_in("user", agents, NOW) == Decision()


# -- the sweep --------------------------------------------------------------------------------------------------------


def swept(agents: Roster, seen: dict[str, int], now: int) -> list[tuple[str, str]]:
    """What a sweep with the default thresholds does."""
    return [(told.event, told.session_id) for told in roster_changes.swept(agents, seen, now, 24, 7)]


def test_silence_of_exactly_the_threshold_freezes():
    """One millisecond less does not; the heartbeat counts, and so does each registration."""
    agents = roster(register("bob-1"))
    assert swept(agents, {}, at(24) - 1) == []
    assert swept(agents, {}, at(24)) == [("freeze", "bob-1")]
    assert swept(agents, {"bob-1": at(5)}, at(29) - 1) == []
    assert swept(agents, {"bob-1": at(5)}, at(29)) == [("freeze", "bob-1")]
    assert swept(agents, {"bob-1": at(-50)}, at(24) - 1) == []
    assert swept(agents, {"other": at(20)}, at(24)) == [("freeze", "bob-1")]
    agents.apply(register("bob-1", hours=20))
    assert swept(agents, {}, at(44) - 1) == []
    assert swept(agents, {}, at(44)) == [("freeze", "bob-1")]


def test_frozen_for_exactly_the_threshold_retires():
    """Counted from the freezing, whatever the heartbeats say; one millisecond less does not."""
    agents = roster(register("bob-1"), event("freeze", "bob-1", 10))
    deadline = at(10) + 7 * DAY
    assert swept(agents, {}, deadline - 1) == []
    assert swept(agents, {"bob-1": at(10)}, deadline) == [("retire", "bob-1")]
    again = roster(register("bob-1"), event("freeze", "bob-1"), event("thaw", "bob-1", 1), event("freeze", "bob-1", 10))
    assert swept(again, {}, deadline - 1) == []
    assert swept(again, {}, deadline) == [("retire", "bob-1")]


@pytest.mark.parametrize("said", [{"tags": ("project:p",)}, {"lead": "ann-1"}, {"name": "bob"}])
def test_what_is_said_of_an_agent_is_no_sign_of_its_life(said):
    """Another may say it: neither the silence ends, nor the time that it was frozen begins again."""
    agents = roster(register("bob-1"), event("update", "bob-1", 20, **said))
    assert swept(agents, {}, at(24)) == [("freeze", "bob-1")]
    frozen = roster(register("bob-1"), event("freeze", "bob-1", 10), event("update", "bob-1", 100, **said))
    assert swept(frozen, {}, at(10) + 7 * DAY) == [("retire", "bob-1")]


def test_the_dead_and_the_user_are_left_alone_and_no_agent_goes_two_steps_at_once():
    """However long a silence, an agent freezes first: its mail waits, and it can come back."""
    agents = roster(register("bob-1"), register("cat-1"), event("retire", "cat-1"))
    assert swept(agents, {"user": at(0)}, at(24 * 365)) == [("freeze", "bob-1")]


def test_a_clock_gone_back_sweeps_nobody():
    """Heartbeats and registrations of the future are no silence."""
    agents = roster(register("bob-1"), register("cat-1"), event("freeze", "cat-1", 500))
    assert swept(agents, {"bob-1": at(300)}, at(100)) == []


def test_the_thresholds_are_those_given_and_the_events_say_why():
    """Half hours and part days are taken; what is appended names the steward and the reason."""
    agents = roster(register("bob-1"), register("cat-1"), event("freeze", "cat-1"))
    told = roster_changes.swept(agents, {}, at(0) + DAY // 2, 0.5, 0.5)
    assert [(e.event, e.session_id, e.by, e.timestamp) for e in told] == [
        ("freeze", "bob-1", "steward", at(12)),
        ("retire", "cat-1", "steward", at(12)),
    ]
    assert all(e.reason for e in told)
    assert not roster_changes.swept(agents, {}, at(0) + HOUR // 2 - 1, 0.5, 0.5)


# -- whatever is asked, in whatever order -----------------------------------------------------------------------------

WORDS = ["w-1", "w-2", "w-3", "w-4"]  # ids, names and roles from one small pool, so that they meet
maybe_word = st.none() | st.sampled_from(WORDS)
requests = st.builds(
    Registration,
    session_id=st.sampled_from(WORDS),
    event=st.sampled_from(["register", "update"]),
    name=maybe_word,
    roles=st.none() | st.lists(st.sampled_from(WORDS), max_size=2).map(tuple),
    add_tags=st.lists(st.sampled_from(WORDS).map("role:{}".format), max_size=1).map(tuple),
    lead=maybe_word,
    continues=maybe_word,
)
ends = st.tuples(st.sampled_from(WORDS), st.sampled_from(["freeze", "thaw", "retire"]))


def clashes(agents: Roster) -> list[str]:
    """Words that mean more than one thing among agents not dead."""
    living = [a for a in agents.agents.values() if a.state != "dead"]
    words = [*(a.session_id for a in living), *(a.name for a in living if a.name and a.name != a.session_id)]
    roles = {role.removeprefix("role:") for a in living for role in a.roles}
    return [word for word in words if words.count(word) > 1 or word in roles]


@given(st.lists(st.tuples(requests | ends, st.sampled_from([*WORDS, "user"])), max_size=12))
@settings(max_examples=10 * settings().max_examples)
def test_no_history_of_requests_gives_a_word_two_meanings_or_a_lead_by_the_wrong_hand(asked):
    """After any accepted requests: every bare word means one agent or one role, and leads changed by right."""
    agents = roster()
    for moment, (request, actor) in enumerate(asked):
        try:
            if isinstance(request, Registration):
                decision = roster_changes.enrolled(request, agents, actor, at(moment), NAMESPACES)
            else:
                decision = roster_changes.ended(*request, agents, actor, at(moment))
        except MailboxError:
            continue
        for told in decision.events:
            before = agents.get(told.session_id)
            agents.apply(told.replace(proof=proof_of(actor)))
            after = agents.get(told.session_id)
            if before is not None and after.lead != before.lead:
                assert actor in ("user", before.lead)
        assert clashes(agents) == []


@given(st.lists(st.tuples(requests, st.sampled_from([*WORDS, "user"])), max_size=12))
@settings(max_examples=5 * settings().max_examples)
def test_no_history_of_requests_makes_an_agent_its_own_lead(asked):
    """Through however many others; a name of the gone that the person lets somebody take is another matter."""
    agents = roster()
    for moment, (request, actor) in enumerate(asked):
        try:
            plain = request.replace(name=None, continues=None)
            decision = roster_changes.enrolled(plain, agents, actor, at(moment), NAMESPACES)
        except MailboxError:
            continue
        for told in decision.events:
            agents.apply(told.replace(proof=proof_of(actor)))
        for agent in agents.agents.values():
            above = [agent.lead]
            while above[-1] in agents.agents:
                assert above[-1] != agent.session_id
                above.append(agents.get(above[-1]).lead)
