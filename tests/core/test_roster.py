"""The roster: who lives, who holds a role, whom a name means, who continues whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import roster as module
from agent_mailbox.core.address import DIRECT, ROLE, Reader
from agent_mailbox.core.misspelt import folded, nearly
from agent_mailbox.core.records import ROSTER_EVENTS
from agent_mailbox.core.roster import Roster, changed
from agent_mailbox.errors import Ambiguous, NotFound

from .build import at, event, register, roster

HOW_TO_BE = {
    None: [],
    "alive": [register("bob-1")],
    "frozen": [register("bob-1"), event("freeze", "bob-1")],
    "dead": [register("bob-1"), event("retire", "bob-1")],
}
# The page: alive → frozen → alive, alive|frozen → dead, dead → alive only by registering again.
BECOMES = {
    (None, "register"): "alive",
    (None, "update"): "alive",
    (None, "freeze"): None,
    (None, "thaw"): None,
    (None, "retire"): None,
    ("alive", "register"): "alive",
    ("alive", "update"): "alive",
    ("alive", "freeze"): "frozen",
    ("alive", "thaw"): "alive",
    ("alive", "retire"): "dead",
    ("frozen", "register"): "alive",
    ("frozen", "update"): "frozen",
    ("frozen", "freeze"): "frozen",
    ("frozen", "thaw"): "alive",
    ("frozen", "retire"): "dead",
    ("dead", "register"): "alive",
    ("dead", "update"): "dead",
    ("dead", "freeze"): "dead",
    ("dead", "thaw"): "dead",
    ("dead", "retire"): "dead",
}
WITHOUT_EFFECT = [
    *((None, kind) for kind in ("freeze", "thaw", "retire")),
    *(("dead", kind) for kind in ("update", "freeze", "thaw", "retire")),
    *(("alive", "thaw"), ("frozen", "freeze")),
]


# -- states -----------------------------------------------------------------------------------------------------------


def test_every_state_of_an_agent_meets_every_event():
    """Every state meets every event."""
    assert BECOMES.keys() == {(state, kind) for state in HOW_TO_BE for kind in ROSTER_EVENTS}


@pytest.mark.parametrize(("pair", "after"), BECOMES.items(), ids=str)
def test_each_event_takes_each_state_where_the_page_says(pair, after):
    """States change as the page says and in no other way."""
    before, kind = pair
    assert roster(*HOW_TO_BE[before]).state("bob-1") == before
    assert roster(*HOW_TO_BE[before], event(kind, "bob-1", 1)).state("bob-1") == after


@pytest.mark.parametrize(("before", "kind"), WITHOUT_EFFECT, ids=str)
def test_an_event_that_does_not_fit_the_state_says_nothing(before, kind):
    """Nothing an impossible event carries reaches the agent, its roles or its time, nor anybody else."""
    events = [register("gone-1", name="bobby"), event("retire", "gone-1"), *HOW_TO_BE[before]]
    tried = roster(*events, event(kind, "bob-1", 5, name="bobby", tags=("role:x",), lead="ann-1", continues="old-1"))
    assert tried.agents == roster(*events).agents
    assert tried.roles_ever == set()
    assert tried.bearer("bobby").session_id == "gone-1"
    agent = roster(*events).get("bob-1")
    assert changed(agent, event(kind, "bob-1", 5)) is agent


# -- the fold ---------------------------------------------------------------------------------------------------------


def test_an_event_changes_what_it_says_and_leaves_the_rest():
    """Absent fields keep what was; an empty list of tags empties them."""
    agents = roster(
        register("bob-1", "role:x", "project:p", name="bob", lead="ann-1", client="claude-code"),
        event("update", "bob-1", 1, tags=("concern:c",)),
        event("update", "bob-1", 2, name="robert"),
        event("freeze", "bob-1", 3, reason="session ended"),
    )
    bob = agents.get("bob-1")
    assert (bob.name, bob.tags, bob.lead, bob.client) == ("robert", ("concern:c",), "ann-1", "claude-code")
    assert (bob.state, bob.reason, bob.registered, bob.changed) == ("frozen", "session ended", at(0), at(3))
    agents.apply(event("thaw", "bob-1", 4))
    agents.apply(event("update", "bob-1", 5, tags=()))
    bob = agents.get("bob-1")
    assert (bob.tags, bob.roles, bob.reason, bob.state) == ((), (), None, "alive")


@pytest.mark.parametrize("kind", ["freeze", "thaw", "retire"])
def test_an_end_says_nothing_but_itself_and_its_reason(kind):
    """Only registering and updating speak of name, tags, lead and lineage; a foreign end with such keys is an end."""
    before = [register("gone-1", name="bobby"), event("retire", "gone-1"), register("bob-1", "project:p", name="bob")]
    before += [event("freeze", "bob-1")] if kind == "thaw" else []
    said = {"name": "bobby", "tags": ("role:x",), "lead": "ann-1", "continues": "gone-1", "client": "c"}
    plain, odd = (roster(*before, event(kind, "bob-1", 5, reason="why", **keys)) for keys in ({}, said))
    assert odd.agents == plain.agents
    assert odd.roles_ever == plain.roles_ever
    assert odd.get("bob-1").reason == "why"


def test_frozen_spans_are_kept_open_while_they_last_and_never_run_backwards():
    """Freezing opens a span; thawing, registering and retiring close it; a clock gone back makes it empty."""
    frozen = roster(register("bob-1"), event("freeze", "bob-1", 1), event("freeze", "bob-1", 2))
    assert frozen.get("bob-1").frozen == ((at(1), None),)
    for kind in ("thaw", "register", "retire"):
        closed = roster(register("bob-1"), event("freeze", "bob-1", 1), event(kind, "bob-1", 3))
        assert closed.get("bob-1").frozen == ((at(1), at(3)),)
    still = roster(register("bob-1"), event("freeze", "bob-1", 1), event("update", "bob-1", 3))
    assert still.get("bob-1").frozen == ((at(1), None),)
    back = roster(register("bob-1"), event("freeze", "bob-1", 5), event("thaw", "bob-1", 2))
    assert back.get("bob-1").frozen == ((at(5), at(5)),)


def test_the_dead_live_again_by_registering_with_what_they_had():
    """Name, tags and lineage come back with the agent."""
    again = roster(
        register("bob-1", "role:x", name="bob", continues="bob-0"),
        event("retire", "bob-1", 1, reason="bye"),
        event("register", "bob-1", 2),
    ).get("bob-1")
    assert (again.state, again.name, again.tags, again.continues) == ("alive", "bob", ("role:x",), ("bob-0",))
    assert again.reason is None


def test_a_dead_agent_s_name_that_became_an_id_does_not_come_back_with_it():
    """Else the word would mean two."""
    agents = roster(
        register("bob-1", name="cat-1"),
        event("retire", "bob-1", 1),
        register("cat-1", hours=2),
        register("bob-1", hours=3),
    )
    assert agents.get("bob-1").name is None
    assert agents.find("cat-1").session_id == "cat-1"


def test_the_user_always_lives_and_no_event_changes_that():
    """The person is reserved: known without registering, untouched by any line of the log."""
    agents = roster(*(event(kind, "user", tags=("role:x",), name="root") for kind in ROSTER_EVENTS))
    assert agents.state("user") == "alive"
    assert agents.get("user").tags == ()
    assert agents.agents == {}
    assert agents.roles_ever == set()
    assert agents.mode("user") == DIRECT
    assert agents.find("user").session_id == "user"
    assert agents.heirs("user") == ["user"]
    assert agents.reader("user") == Reader(session_id="user", lineage=("user",))


def test_a_stranger_is_nobody_but_can_read():
    """A session the roster never heard of has no state, and reads as an agent without name or tags."""
    assert roster().state("eve-1") is None
    assert roster().get("eve-1") is None
    assert roster().mode("eve-1") == ROLE
    assert roster().heirs("eve-1") == []
    assert roster().reader("eve-1") == Reader(session_id="eve-1", lineage=("eve-1",))


def test_roles_once_held_are_remembered():
    """Roles outlive instances: giving one up, or dying, does not make it unknown."""
    agents = roster(
        register("bob-1", "role:x"),
        event("update", "bob-1", tags=("role:y", "project:p")),
        event("retire", "bob-1"),
    )
    assert agents.roles_ever == {"role:x", "role:y"}
    assert not agents.role_in_use("x")
    assert not agents.role_in_use("y")


def test_holders_are_the_agents_in_a_state_that_carry_the_role_now():
    """Several may hold one, the frozen too, if one asks for them; a role in use is one that any not dead holds."""
    agents = roster(
        register("ann-1", "role:x"),
        register("bob-1", "role:x", "project:p"),
        register("cat-1", "role:x"),
        register("dan-1", "role:x"),
        event("freeze", "cat-1"),
        event("retire", "dan-1"),
    )
    assert [a.session_id for a in agents.carrying("role:x")] == ["ann-1", "bob-1"]
    assert [a.session_id for a in agents.carriers("role:x")] == ["ann-1", "bob-1", "cat-1"]
    assert [a.session_id for a in agents.carrying("project:p")] == ["bob-1"]
    assert agents.role_in_use("x")
    frozen_only = roster(register("cat-1", "role:x"), event("freeze", "cat-1"))
    assert frozen_only.role_in_use("x")


# -- lineage and successors --------------------------------------------------------------------------------------------


def test_a_lineage_is_the_session_and_all_it_continues():
    """Succession is followed through every generation, the session itself first."""
    agents = roster(
        register("bob-1"),
        event("retire", "bob-1"),
        register("bob-2", continues="bob-1"),
        event("retire", "bob-2"),
        register("bob-3", continues="bob-2"),
        event("update", "bob-3", continues="cat-1"),
    )
    assert agents.lineage("bob-3")[0] == "bob-3"
    assert set(agents.lineage("bob-3")) == {"bob-3", "bob-2", "bob-1", "cat-1"}
    assert agents.lineage("bob-1") == ("bob-1",)
    assert set(agents.reader("bob-3").lineage) == set(agents.lineage("bob-3"))


def test_heirs_are_those_not_dead_that_continue_a_session():
    """A living successor inherits, a dead one passes it on, and a session not dead is its own successor."""
    events = [register("bob-1"), event("retire", "bob-1"), register("bob-2", continues="bob-1")]
    assert roster(*events).heirs("bob-1") == ["bob-2"]
    assert roster(*events, event("freeze", "bob-2")).heirs("bob-1") == ["bob-2"]
    events += [event("retire", "bob-2")]
    assert roster(*events).heirs("bob-1") == []
    events += [register("bob-3", continues="bob-2")]
    assert roster(*events).heirs("bob-1") == ["bob-3"]
    events += [register("bob-1", hours=9)]
    assert sorted(roster(*events).heirs("bob-1")) == ["bob-1", "bob-3"]
    assert roster(*events).heirs("bob-3") == ["bob-3"]


def test_answers_follow_each_event_as_it_is_folded_in():
    """Nothing remembered from before an event is told after it."""
    agents = roster(register("bob-1"), event("retire", "bob-1"))
    assert (agents.lineage("bob-2"), agents.heirs("bob-1")) == (("bob-2",), [])
    agents.apply(register("bob-2", continues="bob-1"))
    assert (agents.lineage("bob-2"), agents.heirs("bob-1")) == (("bob-2", "bob-1"), ["bob-2"])
    agents.apply(event("retire", "bob-2"))
    assert agents.heirs("bob-1") == []


def test_continuing_oneself_or_in_a_circle_ends():
    """A foreign line may claim anything: the walk visits each session once."""
    agents = roster(
        register("a-1", continues="a-1"),
        register("b-1", continues="c-1"),
        register("c-1", continues="d-1"),
        register("d-1", continues="b-1"),
    )
    assert agents.lineage("a-1") == ("a-1",)
    for session in ("b-1", "c-1", "d-1"):
        assert agents.lineage(session)[0] == session
        assert sorted(agents.lineage(session)) == ["b-1", "c-1", "d-1"]
        assert sorted(agents.heirs(session)) == ["b-1", "c-1", "d-1"]


SESSIONS = ["a-1", "b-1", "c-1", "d-1"]


@given(
    st.lists(
        st.builds(
            event,
            st.sampled_from(ROSTER_EVENTS),
            st.sampled_from(SESSIONS),
            continues=st.none() | st.sampled_from(SESSIONS),
        ),
        max_size=14,
    )
)
def test_lineage_is_what_can_be_reached_and_successors_are_its_reverse(events):
    """A lineage is all that ``continues`` leads to, in any history, even with cycles. The successors are its
    reverse."""
    agents = Roster(events)
    reached = {one: {one} for one in SESSIONS}
    for _ in SESSIONS:
        for one in SESSIONS:
            for old in list(reached[one]):
                reached[one] |= set(agents.agents[old].continues) if old in agents.agents else set()
    for one in SESSIONS:
        lineage = agents.lineage(one)
        assert set(lineage) == reached[one]
        assert len(lineage) == len(set(lineage))
        assert lineage[0] == one
        not_dead = {other for other in SESSIONS if agents.state(other) in ("alive", "frozen")}
        assert set(agents.heirs(one)) == {other for other in not_dead if one in reached[other]}


# -- whom a word means ------------------------------------------------------------------------------------------------


def test_a_name_means_its_bearer_that_is_not_dead_else_the_last_one():
    """A name is free again once its bearer is dead; until someone takes it, it means who bore it last."""
    events = [register("bob-1", name="bob"), event("retire", "bob-1", 1)]
    assert roster(*events).bearer("bob").session_id == "bob-1"
    events += [register("bob-2", hours=2, name="bob")]
    assert roster(*events).bearer("bob").session_id == "bob-2"
    assert roster(*events, event("freeze", "bob-2", 3)).bearer("bob").session_id == "bob-2"
    events += [event("retire", "bob-2", 3)]
    assert roster(*events).bearer("bob").session_id == "bob-2"
    assert roster(*events).bearer("bobby") is None


def test_a_word_means_the_living_before_the_dead():
    """An id whose session is dead yields to the living agent of that name; without one it is still that session."""
    events = [register("x"), event("retire", "x")]
    assert roster(*events).find("x").session_id == "x"
    events += [register("bob-1", name="x")]
    assert roster(*events).find("x").session_id == "bob-1"
    assert roster(*events, event("retire", "bob-1")).find("x").session_id == "x"
    assert roster(*events).mode("x") == "direct"


def test_a_name_that_another_took_does_not_come_back_with_the_dead():
    """Taken as a name or become a role: whoever lives again lives without it."""
    for taker in (register("bob-2", name="bob"), register("cat-1", "role:bob")):
        agents = roster(register("bob-1", name="bob"), event("retire", "bob-1"), taker, event("register", "bob-1"))
        assert agents.get("bob-1").name is None
    untouched = roster(register("bob-1", name="bob"), event("retire", "bob-1"), event("register", "bob-1"))
    assert untouched.get("bob-1").name == "bob"


def test_a_foreign_line_takes_no_name_from_the_living():
    """An agent that is not dead keeps its name, whatever a foreign line claims."""
    for end in ([], [event("freeze", "bob-1")]):
        for claim in (register("eve-1", name="bob"), register("eve-1", "role:bob")):
            agents = roster(register("bob-1", name="bob"), *end, claim)
            assert agents.get("bob-1").name == "bob"
            assert agents.bearer("bob").session_id == "bob-1"


def test_of_two_bearers_the_one_not_dead_is_meant():
    """Foreign lines can give a name twice; when one bearer dies the name is the other's, frozen or not."""
    for end in ([], [event("freeze", "bob-2")]):
        agents = roster(register("bob-1", name="bob"), register("bob-2", name="bob"), *end, event("retire", "bob-1", 9))
        assert agents.bearer("bob").session_id == "bob-2"


def test_a_name_that_comes_back_costs_no_look_at_all_agents():
    """A worker's name may come back a thousand times in a year: each time, its last bearer alone is looked at."""

    class Unlisted(dict):
        def __iter__(self):
            raise AssertionError("a look at all agents")

        values = __iter__

        def __getitem__(self, session_id):
            asked.append(session_id)
            return super().__getitem__(session_id)

    asked = []
    agents = Roster()
    agents.agents = Unlisted()
    for number in range(3):
        agents.apply(register(f"w-{number}", name="worker"))
        asked.clear()
        assert agents.bearer("worker").session_id == f"w-{number}"
        assert asked == [f"w-{number}"]
        agents.apply(event("retire", f"w-{number}"))
    assert [agents.get(f"w-{number}").name for number in range(3)] == [None, None, "worker"]
    agents.apply(register("ci-1", name="worker", proof=None))
    assert agents.bearer("worker").session_id == "ci-1"


def test_a_name_given_up_means_nobody():
    """Renaming frees the old name at once."""
    agents = roster(register("bob-1", name="bob"), event("update", "bob-1", name="rob"))
    assert agents.bearer("bob") is None
    assert agents.mode("bob") == ROLE
    assert agents.mode("rob") == DIRECT


FOUND = roster(
    register("abcdef-1", name="first"),
    register("abcdef-2"),
    register("abcxyz-3", "role:architect"),
    register("first-of-all"),
    register("gone12-4", name="ghost"),
    event("retire", "gone12-4"),
)


@pytest.mark.parametrize(
    ("word", "session_id"),
    [
        ("abcdef-1", "abcdef-1"),
        ("first", "abcdef-1"),
        ("abcxyz", "abcxyz-3"),
        ("abcxyz-3", "abcxyz-3"),
        ("abcdef-2", "abcdef-2"),
        ("first-", "first-of-all"),
        ("gone12", "gone12-4"),
        ("ghost", "gone12-4"),
        ("user", "user"),
    ],
)
def test_a_bare_word_is_an_id_else_a_name_else_a_unique_prefix(word, session_id):
    """The most exact meaning wins."""
    assert FOUND.find(word).session_id == session_id


def test_an_id_wins_over_the_same_word_as_a_name():
    """An id cannot be taken over by somebody's name."""
    agents = roster(register("ann-1", name="bob-1"), register("bob-1"))
    assert agents.find("bob-1").session_id == "bob-1"


def test_a_prefix_that_two_agents_share_is_refused_with_the_candidates():
    """No guess is made between two."""
    with pytest.raises(Ambiguous) as refused:
        FOUND.find("abcdef")
    assert "abcdef-1" in refused.value.hint
    assert "abcdef-2" in refused.value.hint
    assert "abcxyz-3" not in refused.value.hint


def test_a_prefix_means_the_living_before_the_dead():
    """A prefix means a living agent before a dead one. If all are dead, it is ambiguous among them."""
    agents = roster(register("common-1"), register("common-2"), register("common-3"), event("retire", "common-1"))
    with pytest.raises(Ambiguous) as refused:
        agents.find("common")
    assert "common-1" not in refused.value.hint
    agents.apply(event("retire", "common-2"))
    assert agents.find("common").session_id == "common-3"
    agents.apply(event("retire", "common-3"))
    with pytest.raises(Ambiguous):
        agents.find("common")


@pytest.mark.parametrize("word", ["abcxy", "gone1", "a", "", "bcxyz-3", "ABCXYZ", "abcxyz-33"])
def test_less_than_six_characters_or_another_word_finds_nobody(word):
    """Fewer characters would hit by accident; an id is not found by its middle."""
    with pytest.raises(NotFound):
        FOUND.find(word)


def test_a_misspelt_word_is_asked_back():
    """Near names, roles and ids of those not dead are offered; for a strange word, the way to the list."""
    for word, meant in (("frist", "first"), ("architct", "architect"), ("abcxyz-4", "abcxyz-3")):
        with pytest.raises(NotFound) as refused:
            FOUND.find(word)
        assert f"did you mean {meant}" in refused.value.hint
    with pytest.raises(NotFound) as refused:
        FOUND.find("qqqqqqq")
    assert "did you mean" not in refused.value.hint
    assert refused.value.hint
    assert "ghost" not in FOUND.near("ghosd")


def test_the_likeliest_word_is_offered_first():
    """A key that was held too long is one slip, and two pairs of swapped letters are two."""
    assert nearly("reviewer", ["reveiwre", "revieweer"]) == ["revieweer", "reveiwre"]


def test_many_candidates_are_counted_and_not_all_listed():
    """A hint stays readable however many share the prefix."""
    agents = roster(*(register(f"common-{n}") for n in range(9)))
    with pytest.raises(Ambiguous) as refused:
        agents.find("common")
    assert "9 agents" in str(refused.value)
    assert refused.value.hint.count("common-") == 5


def test_modes_follow_the_roster():
    """The same stored word is direct once it is an agent's id or name, and role mail before."""
    assert roster().mode("bob-1") == "role"
    assert roster(register("bob-1")).mode("bob-1") == "direct"
    assert roster(register("bob-1", name="bob")).mode("bob") == "direct"
    assert roster(register("bob-1"), event("retire", "bob-1")).mode("bob-1") == "direct"
    assert roster().mode("user") == "direct"
    assert module.MIN_PREFIX == 6


def test_the_eye_passes_over_accents_and_what_draws_nothing():
    """A word that nearly is another is asked back however it is spelt; a letter more makes another word."""
    for word in ("Zo\u00e9", "Zoe\u0301", "zo\u200be", "z\u0301\u0302oe", "ZOE-", "\uff3a\uff4f\uff45"):
        assert folded(word) == folded("zoe"), ascii(word)
    assert folded("zo\u00e9e") != folded("zoe")
