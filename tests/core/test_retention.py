"""The archive plan: what may move and what must stay; and the roster retold in fewer events."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_mailbox.core import codec
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.inbox import expires_at
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.keeping.retention import compacted
from agent_mailbox.core.proofs import BEFORE
from agent_mailbox.core.records import ROSTER_EVENTS, USER, Message, Read, RosterEvent
from agent_mailbox.core.roster import Agent, Roster

from .build import ack, at, event, message, read, register, state

PEOPLE = [
    register("ann-1"),
    register("bob-1", "role:x", "project:p", name="bob"),
    register("cat-1", "role:x", "project:p"),
]
DEAD_BOB = event("retire", "bob-1", 1)
HEIR = register("bob-2", hours=1, continues="bob-1")


def moved(messages: list[Message], reads: list[Read] = (), *events: RosterEvent, hours: float = 2) -> set[str]:
    """Ids of what an archive of everything finished takes."""
    mailbox = state(messages, list(reads), [*PEOPLE, *events])
    return set(retention.plan(mailbox, at(hours), 0).move)


def is_moved(mail: Message, *reads: Read, events: tuple[RosterEvent, ...] = (), hours: float = 2) -> bool:
    """Would this one be taken?"""
    return moved([mail], list(reads), *events, hours=hours) == {mail.id}


def test_requests_are_moved_before_their_replies_in_whatever_order_they_came() -> None:
    """A killed move leaves no reply in the archive whose request is still live."""
    mail = [message("c", thread="b"), message("a"), message("e", thread="d"), message("b", thread="a")]
    assert retention.requests_first({"a", "b", "c", "e"}, state(mail)) == ["a", "b", "c", "e"]
    assert retention.requests_first({"b", "c"}, state(mail)) == ["b", "c"]


# -- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 5, 1000])
def test_nothing_moves_until_more_messages_are_live_than_the_limit_and_then_all_that_is_finished(limit):
    """The steward moves nothing up to the limit of live messages. Above it, it moves every finished one."""
    read_ones = [message(f"m{n}") for n in range(limit + 1)]
    reads = [read(m.id, "bob-1") for m in read_ones]
    at_limit = state(read_ones[1:], reads, PEOPLE)
    assert retention.plan(at_limit, at(1), limit).move == frozenset()
    above = state([*read_ones[1:], message("unread")], reads, PEOPLE)
    assert retention.plan(above, at(1), limit).move == {m.id for m in read_ones[1:]}


def test_direct_mail_to_the_dead_stays_for_a_successor():
    """Until that one has read it, or is dead too."""
    assert not is_moved(message(), events=(DEAD_BOB, HEIR))
    assert is_moved(message(), read("m1", "bob-2"), events=(DEAD_BOB, HEIR))
    assert is_moved(message(), read("m1", "bob-1"), events=(DEAD_BOB, HEIR))
    assert is_moved(message(), events=(DEAD_BOB, HEIR, event("retire", "bob-2", 1)))


def test_a_copy_keeps_direct_mail_that_the_person_has_not_seen():
    """It keeps no mail for the sake of the person alone that is for everyone."""
    mailbox = state([message("direct", USER), message("for-all", "all")], [], PEOPLE)
    assert retention.without_open({"direct", "for-all"}, mailbox, (USER,), at(1)) == {"for-all"}


def test_a_copy_keeps_what_one_of_its_readers_owes_an_ack_and_no_other():
    """Without the mail, that reader could not deal with it."""
    mail = message(to="all", ack=True)
    reads = [read("m1", "bob-1", "all"), read("m1", "cat-1", "all"), ack("m1", "cat-1")]
    mailbox = state([mail], reads, PEOPLE)
    kept = [who for who in ("bob-1", "cat-1") if not retention.without_open({"m1"}, mailbox, (who,), at(1))]
    assert kept == ["bob-1"]


# -- finished, by mode ------------------------------------------------------------------------------------------------


# -- obligations ------------------------------------------------------------------------------------------------------

ASKED = message(ack=True)


def test_the_reply_that_settles_an_obligation_stays_while_the_mail_that_asked_stays():
    """Else the obligation would come back when the reply is gone."""
    asked = message(to=("bob-1", "cat-1"), ack=True)
    reply = message("m2", to="ann-1", sender="bob-1", thread="m1")
    reads = [read("m1", "bob-1"), read("m2", "ann-1")]
    assert moved([asked, reply], reads) == set()
    assert moved([asked, reply], [*reads, read("m1", "cat-1"), ack("m1", "cat-1")]) == {"m1", "m2"}
    assert moved([asked.replace(ack=False), reply], reads) == {"m2"}


def test_the_reply_to_mail_that_was_only_offered_stays_while_that_mail_stays():
    """Nothing else tells that its sender saw it: it would be given back when that one's client or session dies."""
    asked = message(to="role:x")
    reply = message("m2", to="ann-1", sender="bob-1", thread="m1")
    claimed, offered = (read("m1", "bob-1", via="role:x", event=word) for word in ("claim", "read"))
    offered = offered.replace(nonce="aaaaaa")
    reads = [claimed, offered, read("m2", "ann-1")]
    assert moved([asked, reply], reads) == set()
    assert moved([asked, reply], [*reads, offered.replace(event="seen", via=None)]) == {"m1", "m2"}
    other_machine = [record for record in reads if record is not offered]
    assert moved([asked, reply], other_machine) == set()


def test_a_reply_kept_so_keeps_the_replies_that_settle_what_it_asked_itself():
    """Along the chain: each that stays and asked for an ack needs the answer it got."""
    asked = message("m1", to=("bob-1", "cat-1"), ack=True)
    reply = message("m2", to="ann-1", sender="bob-1", thread="m1", ack=True)
    back = message("m3", to="bob-1", sender="ann-1", thread="m2")
    reads = [read("m1", "bob-1"), read("m2", "ann-1"), read("m3", "bob-1")]
    assert moved([asked, reply, back], reads) == set()
    everything = [*reads, read("m1", "cat-1"), ack("m1", "cat-1")]
    assert moved([asked, reply, back], everything) == {"m1", "m2", "m3"}


# -- pending ----------------------------------------------------------------------------------------------------------


def pending(mail: Message, *reads: Read, events: tuple[RosterEvent, ...] = (), hours: float = 2) -> bool:
    """Is it counted among what is still to be delivered?"""
    mailbox = state([mail], list(reads), [*PEOPLE, *events])
    return retention.plan(mailbox, at(hours), 1000).pending == 1


def test_of_the_idle_notices_of_one_to_the_same_readers_the_last_one_stays():
    """The earlier ones are finished, read or not. What is to others, of another, or no idle notice, replaces none."""
    content = '{"type": "idle_notification", "reason": "grün"}'
    other = content.replace("idle_notification", "idle_notification_2")

    def said(name, to, sender, content=content):
        return message(name, to, sender, type="control", content=content)

    mails = [
        said("bob-to-ann", "ann-1", "bob-1"),
        said("bob-to-both", ("ann-1", "cat-1"), "bob-1"),
        said("cat-to-ann", "ann-1", "cat-1"),
        said("again-bob-to-ann", "ann-1", "bob-1"),
        said("again-cat-to-ann", "ann-1", "cat-1"),
        said("last-bob-to-ann", "ann-1", "bob-1"),
        said("another", "ann-1", "bob-1", other),
        message("mail", "ann-1", "bob-1", content=content),
    ]
    assert moved(mails) == {"bob-to-ann", "cat-to-ann", "again-bob-to-ann"}
    assert moved(mails, [read("again-bob-to-ann", "ann-1")]) == moved(mails)


def test_pending_is_what_someone_has_yet_to_get():
    """A message is pending while a direct recipient, a role or an agent with its tag has not read it."""
    assert pending(message())
    assert not pending(message(), read("m1", "bob-1"))
    assert not pending(message(), hours=24)
    assert not pending(message(), events=(DEAD_BOB,))
    assert pending(message(), events=(DEAD_BOB, HEIR))
    assert pending(message(to="role:nobody"), hours=10**6)
    assert not pending(message(to="role:x"), read("m1", "bob-1", "role:x"))
    assert pending(message(to="project:p"), read("m1", "bob-1", "project:p"))
    assert not pending(message(to="project:p"), read("m1", "bob-1", "project:p"), read("m1", "cat-1", "project:p"))
    assert not pending(message(to="project:p"), read("m1", "cat-1", "project:p"), events=(DEAD_BOB,))
    assert not pending(message(to="project:nobody"))
    assert pending(message(to="all"))
    assert not pending(message(to="all"), hours=4)
    assert pending(message(to=("bob-1", "role:x")), read("m1", "bob-1", "bob-1"))


def test_the_plan_counts_what_is_pending_of_what_stays():
    """Kept for an obligation is not pending; moved is not pending either."""
    mailbox = state(
        [message("m1"), message("m2", ack=True), message("m3"), message("m4", to="role:x")],
        [read("m2", "bob-1"), read("m3", "bob-1")],
        PEOPLE,
    )
    assert retention.plan(mailbox, at(1), 0) == retention.RetentionPlan(move=frozenset({"m3"}), pending=2)


# -- compaction -------------------------------------------------------------------------------------------------------

SESSIONS = ["a-1", "b-1", "c-1"]
histories = st.lists(
    st.builds(
        event,
        st.sampled_from(ROSTER_EVENTS),
        st.sampled_from(SESSIONS),
        st.integers(-5, 60),
        name=st.none() | st.sampled_from(["ann", "bob"]),
        tags=st.none()
        | st.lists(st.sampled_from(["role:x", "role:y", "role:z", "project:p"]), max_size=3, unique=True).map(tuple),
        lead=st.none() | st.sampled_from(["user", *SESSIONS]),
        continues=st.none() | st.sampled_from([*SESSIONS, "old-1"]),
        reason=st.none() | st.sampled_from(["bye", "silent"]),
        client=st.none() | st.just("claude-code"),
    ),
    max_size=16,
)


def spans_that_count(agent: Agent, since: int) -> Agent:
    """The agent without the freezes that ended by then, and without what was proven of it."""
    spans = tuple(span for span in agent.frozen if span[1] is None or span[1] > since)
    return agent.replace(frozen=spans, proven=False, proven_leads=())


@given(events=histories, since=st.integers(-5, 60))
@example(
    events=[register("a-1", "role:x"), event("update", "a-1", 1, tags=()), event("thaw", "a-1", 2, tags=("role:y",))],
    since=0,
)
@example(events=[register("a-1"), event("retire", "a-1", 1), event("update", "a-1", 2, tags=("role:y",))], since=0)
@settings(max_examples=10 * settings().max_examples)
def test_a_roster_retold_in_fewer_events_tells_of_the_same_agents(events, since):
    """The same agents in the same order, all they are and were, but freezes that ended before ``since``."""
    whole, told = Roster(events), compacted(events, at(since))
    retold = Roster(told)
    assert list(retold.agents) == list(whole.agents)
    for session_id, agent in whole.agents.items():
        assert spans_that_count(retold.agents[session_id], at(since)) == spans_that_count(agent, at(since))
        assert retold.agents[session_id].frozen == spans_that_count(agent, at(since)).frozen
        assert retold.lineage(session_id) == whole.lineage(session_id)
        assert set(retold.heirs(session_id)) == set(whole.heirs(session_id))
    assert retold.roles_ever == whole.roles_ever
    read = [codec.roster_event(codec.spell_event(one)) for one in told]
    assert Roster(one.replace(proof=BEFORE) for one in read).agents == retold.agents
    assert Roster(compacted(told, at(since))).agents == retold.agents


@given(events=histories, since=st.integers(-5, 60), later=st.integers(0, 30), hours=st.integers(1, 30))
@settings(max_examples=5 * settings().max_examples)
def test_no_deadline_of_live_mail_changes_when_the_roster_is_retold(events, since, later, hours):
    """``since`` is the oldest live message: for mail from then on, the stopped clocks are the same."""
    mail = message(to="a-1", hours=since + later, ttl_hours=hours)
    retold = Roster(compacted(events, at(since)))
    assert expires_at(mail, retold, DEFAULT_TTL) == expires_at(mail, Roster(events), DEFAULT_TTL)


def test_compacting_keeps_when_an_agent_came_back_from_the_dead():
    """The compacted roster keeps when a dead agent registered again, and when it last registered."""
    events = [register("a-1"), event("retire", "a-1", 1), event("register", "a-1", 2), event("register", "a-1", 3)]
    for known in (events[:3], events):
        agent = Roster(compacted(known, at(0))).get("a-1")
        assert (agent.state, agent.returned, agent.again) == ("alive", at(2), known[-1].timestamp)


def test_of_the_dead_as_many_are_retold_as_have_some_events():
    """Each whole, the first ones first, until that many events or more are retold. Nobody is who lives, whose life
    takes more than half of its events, or who was led until later than that instant."""

    def life(who, days, *, end="retire", at_last=9):
        steps = [event(kind, who, hours) for day in range(days) for kind, hours in (("freeze", day), ("thaw", day))]
        return [register(who, f"role:{who}"), *steps, event(end, who, at_last)]

    lives = {
        "alive": life("alive", 3, end="freeze"),
        "brief": [*life("brief", 1)[:-1], event("update", "brief", 1, tags=("role:y",)), event("retire", "brief", 9)],
        "ä-1": life("ä-1", 2),
        "ä-10": life("ä-10", 4),
        "led": life("led", 3, at_last=20),
        "half": life("half", 1),
        "late": life("late", 3, at_last=20),
        "tiny": [register("tiny"), event("retire", "tiny", 9)],
    }
    roster = Roster(one for events in lives.values() for one in events)
    led = roster.agents["led"]
    roster.agents["led"] = led.replace(proven_leads=((led.changed, "ann-1"),))

    def retold(most, since=10):
        found, told = retention.retold_dead(lives, roster, at(since), most)
        assert Roster(told).agents.keys() == found
        assert len(told) <= sum(len(lives[who]) for who in found) / 2
        return found

    assert retold(1) == retold(6) == {"ä-1"}
    assert retold(7) == retold(16) == {"ä-1", "ä-10"}
    assert retold(17) == retold(20) == {"ä-1", "ä-10", "half"}
    assert retold(21) == retold(99) == retold(99, since=20) == {"ä-1", "ä-10", "half", "late"}
    assert retold(99, since=21) == {"ä-1", "ä-10", "half", "late", "led"}
    assert retold(0) == set()


def test_a_long_life_is_retold_in_few_events():
    """The sessions of years do not make the roster longer, only who they were does."""
    events = [register("a-1", "role:x", name="ann")]
    for day in range(1, 400):
        events += [event("freeze", "a-1", 24 * day), event("thaw", "a-1", 24 * day + 8)]
        events.append(event("update", "a-1", 24 * day + 9, tags=("role:x", f"project:p{day}")))
    told = compacted(events, at(24 * 399))
    assert len(told) <= 6
    assert Roster(told).get("a-1").tags == ("role:x", "project:p399")
    assert compacted([], at(0)) == []
    assert compacted([event("register", "user")], at(0)) == []
