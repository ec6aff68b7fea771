"""The set difference: unread, its order, obligations, dead letters, threads, delivery."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core import awaited, conversations, dead_letters, inbox, obligations, reach, replies
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.records import Message

from .build import ack, at, event, message, read, register, roster, state

PEOPLE = [
    register("ann-1"),
    register("bob-1", "role:x", "project:p", name="bob"),
    register("cat-1", "role:x", "concern:c"),
]
SUCCESSION = [event("retire", "bob-1", 1), register("bob-2", "role:x", hours=1, name="bob", continues="bob-1")]


def ids(messages: list[Message]) -> list[str]:
    return [m.id for m in messages]


def unread(session_id: str, mailbox: InboxState, hours: float = 1) -> list[str]:
    return [item.message.id for item in inbox.unread(session_id, mailbox, at(hours))]


# -- unread -----------------------------------------------------------------------------------------------------------


def test_unread_is_what_is_addressed_minus_own_read_expired_and_claimed():
    """One message of each kind, and what is left of them."""
    mailbox = state(
        [
            message("direct"),
            message("by role", to="role:x"),
            message("by tag", to="project:p"),
            message("to all", to="all"),
            message("own", to="all", sender="bob-1"),
            message("read"),
            message("expired", to="all", hours=-4),
            message("claimed", to="role:x"),
            message("for another", to=("cat-1", "concern:c", "role:y", "user")),
        ],
        [read("read", "bob-1", "bob-1"), read("claimed", "cat-1", "role:x")],
        PEOPLE,
    )
    items = inbox.unread("bob-1", mailbox, at(0))
    assert [(i.message.id, i.mode, i.via, i.claims, i.expires_at) for i in items] == [
        ("direct", "direct", "bob-1", False, at(24)),
        ("by role", "role", "role:x", True, None),
        ("by tag", "tag", "project:p", False, at(72)),
        ("to all", "broadcast", "all", False, at(4)),
    ]


def test_who_is_muted_is_shown_and_not_brought_up():
    """A muted sender is so, also one whose id begins as the person's word; control and the person are always heard."""
    senders = ("ann-1", "user-1", "user")
    mailbox = state(
        [*(message(who, sender=who) for who in senders), message("control", sender="ann-1", type="control")],
        events=[*PEOPLE, register("user-1"), event("update", "bob-1", muted=senders)],
    )
    items = inbox.unread("bob-1", mailbox, at(0))
    assert {item.message.id: item.muted for item in items} == {
        "ann-1": True, "user-1": True, "user": False, "control": False,
    }  # fmt: skip


def test_a_word_that_nobody_had_has_a_taker_of_its_own_whatever_else_the_taker_holds():
    """Another holder took the mail for the roles; the one that took the word gets it for that."""
    mail = message("m1", to=("role:x", "role:y", "role:new"), extra={"bare": ["new"]})
    people = [*PEOPLE, register("dan-1", "role:y", "role:new")]
    mailbox = state([mail], [read("m1", "bob-1", "role:x")], people)
    assert [(i.via, i.claims) for i in inbox.unread("dan-1", mailbox, at(1))] == [("role:new", True)]
    assert unread("cat-1", mailbox) == []
    mail = message("m1", to=("role:new", "role:odd"), extra={"bare": ["new", "odd"]})
    people = [*PEOPLE, register("eve-1", "role:new"), register("odd", name="new")]
    mailbox = state([mail], [read("m1", "eve-1", "role:new")], people)
    assert [(i.via, i.claims) for i in inbox.unread("odd", mailbox, at(1))] == [("role:odd", True)]


def test_a_word_or_a_name_that_begins_with_another_is_another_s():
    """Mail for a word that nobody had is not for an agent whose name the word begins with. An answer to all leaves out
    its writer alone, and no agent of a longer name. Mail of an agent elsewhere is not exchanged with another there."""
    mail = message("m1", to=("role:bobby", "role:x"), extra={"bare": ["bobby"]})
    assert [(i.via, i.claims) for i in inbox.unread("bob-1", state([mail], [], PEOPLE), at(1))] == [("role:x", True)]
    written = message("m1", to=("bob", "bobby"), sender="ann-1")
    assert replies.recipients(written, "bob-1", roster(*PEOPLE, register("bo-1", name="bobby"))) == (
        *(["ann-1", "bobby"], []),
    )
    elsewhere = [message(who, "bob-1", f"swarm:demo/{who}") for who in ("beta", "beta-2")]
    assert ids(conversations.exchanged(elsewhere, "swarm:demo/beta", roster(*PEOPLE))) == ["beta"]


def test_what_a_foreign_line_says_was_read_counts_as_read():
    """``read_by`` of an older writer, and only for those it names. So read, it is no dead letter when it expires."""
    mail = message(to="all", read_by=("bob-1",))
    assert dead([message("m0", to="all"), mail], hours=4) == [("m0", "expired")]
    assert unread("bob-1", state([mail], events=PEOPLE)) == []
    assert unread("cat-1", state([mail], events=PEOPLE)) == ["m1"]
    assert unread("bob-2", state([mail], events=[*PEOPLE, *SUCCESSION]), 2) == []


def test_an_item_tells_who_read_it_before():
    """A reader of a broadcast sees who has it already, first reader first."""
    mailbox = state(
        [message(to="all", read_by=("old-1",))], [read("m1", "cat-1", "all"), read("m1", "ann-1", "all")], PEOPLE
    )
    (item,) = inbox.unread("bob-1", mailbox, at(1))
    assert item.read_by == ("cat-1", "ann-1", "old-1")


# -- order ------------------------------------------------------------------------------------------------------------

KINDS = ["message", "control", "notification", "system"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["low", "normal", "high"]), st.integers(-3, 3))))
def test_control_comes_first_then_high_priority_then_log_order(drawn):
    """The order of the log, not of the clock, within each of the three."""
    mails = [
        message(f"m{n}", type=kind, priority=priority, hours=hours) for n, (kind, priority, hours) in enumerate(drawn)
    ]
    control = [m.id for m in mails if m.type == "control"]
    high = [m.id for m in mails if m.type != "control" and m.priority == "high"]
    rest = [m.id for m in mails if m.type != "control" and m.priority != "high"]
    assert unread("bob-1", state(mails, events=PEOPLE), 3) == control + high + rest


# -- obligations ------------------------------------------------------------------------------------------------------


def test_a_sender_lacks_the_acks_of_its_own_mail_alone():
    """Mail that others sent, and mail that asks for no ack, is not among it."""
    mails = [message("mine", ack=True), message("plain"), message("to me", to="ann-1", sender="cat-1", ack=True)]
    found = awaited.missing_acks("ann-1", state(mails, events=PEOPLE), at(1))
    assert [(m.id, [one.who for one in owed]) for m, owed in found] == [("mine", ["bob-1"])]


@pytest.mark.parametrize("to", ["bob-1", "role:x", "project:p", "all"])
def test_a_sender_is_named_the_successor_that_owes_the_ack(to):
    """A reader that died owes nothing. Who continues it does, until it has acked, or is dead, too."""
    read_by_old, people = [read("m1", "bob-1", to), ack("m1", "cat-1")], [*PEOPLE, *SUCCESSION]
    for reads, events, owing in (
        (read_by_old, people, ["bob-2"]),
        ([*read_by_old, ack("m1", "bob-2")], people, []),
        (read_by_old, [*people, event("retire", "bob-2", 2)], []),
    ):
        mailbox = state([message(to=to, ack=True)], reads, events)
        assert [one.who for _, owed in awaited.missing_acks("ann-1", mailbox, at(9)) for one in owed] == owing


@pytest.mark.parametrize("who", ["bob-1", "bob-2"])
def test_a_sender_lacks_no_ack_that_either_of_a_succession_gave(who):
    """An answer of the old one, or of the new one, counts as the ack; without one the new one owes it."""
    asked, claim, events = message(ack=True), read("m1", "bob-1"), [*PEOPLE, *SUCCESSION]
    reply = message("m2", to="ann-1", sender=who, thread="m1")

    def owing(*mails: Message) -> list[str]:
        found = awaited.missing_acks("ann-1", state([*mails], [claim], events), at(2))
        return [one.who for _, owed in found for one in owed]

    assert owing(asked) == ["bob-2"]
    assert owing(asked, reply) == []


def test_repliers_are_known_by_thread():
    """The thread of a message tells who answered it, whatever the answer is addressed to."""
    mails = [message("m1"), message("m2", sender="bob-1", thread="m1"), message("m3", sender="cat-1", thread="m1")]
    assert obligations.repliers(state(mails, events=PEOPLE)) == {"m1": {"bob-1", "cat-1"}}


# -- dead letters -----------------------------------------------------------------------------------------------------


def dead(mails: list[Message], reads=(), events=(), hours: float = 2, session_id: str | None = None):
    """Ids and reasons of the dead letters."""
    mailbox = state(mails, list(reads), [*PEOPLE, *events])
    return [(m.id, why) for m, why in dead_letters.dead_letters(mailbox, at(hours), session_id)]


def test_the_dead_letters_of_a_session_are_those_it_sent_or_was_to_get():
    """A bystander is not told; the sender, the recipient and their successors are."""
    mails = [message("m1", to="all", sender="ann-1"), message("m2", to="bob-1", sender="cat-1")]
    assert dead(mails, hours=99) == [("m1", "expired"), ("m2", "expired")]
    assert dead(mails, hours=99, session_id="ann-1") == [("m1", "expired")]
    assert dead(mails, hours=99, session_id="bob-1") == [("m1", "expired"), ("m2", "expired")]
    assert dead([mails[1]], hours=99, session_id="ann-1") == []
    successor = [event("retire", "cat-1"), register("cat-2", continues="cat-1")]
    assert dead([mails[1]], events=successor, hours=99, session_id="cat-2") == [("m2", "expired")]


# -- history and threads ----------------------------------------------------------------------------------------------


def as_log(*mails: Message) -> dict[str, Message]:
    return {m.id: m for m in mails}


def test_a_reply_that_stands_before_its_parent_is_in_the_thread():
    """Order is log order; a reply can come first in a merged log."""
    log = as_log(message("c", thread="b"), message("b", thread="a"), message("a"))
    assert ids(conversations.thread_of("c", log)) == ["c", "b", "a"]


def test_a_thread_whose_parent_is_unknown_begins_at_what_there_is():
    """A lost root hides nothing below it, asked for by itself or by its replies."""
    orphans = as_log(message("a", thread="lost"), message("b", thread="lost"), message("c", thread="a"))
    assert ids(conversations.thread_of("a", orphans)) == ["a", "c"]
    assert ids(conversations.thread_of("lost", orphans)) == ["a", "b", "c"]
    assert conversations.thread_of("nothing", orphans) == []


@pytest.mark.parametrize("start", ["a", "b", "c"])
def test_a_thread_that_runs_in_a_circle_ends(start):
    """Foreign lines may name each other as parents: each is in the chain once."""
    circle = as_log(message("a", thread="c"), message("b", thread="a"), message("c", thread="b"), message("d"))
    assert ids(conversations.thread_of(start, circle)) == ["a", "b", "c"]
    assert ids(conversations.thread_of("d", circle)) == ["d"]
    assert ids(conversations.thread_of("e", as_log(message("e", thread="e")))) == ["e"]


# -- delivery ---------------------------------------------------------------------------------------------------------


def delivered(to: str | tuple[str, ...], *events, sender: str = "ann-1") -> tuple[set[str], set[str]]:
    """Who will see it now, and what it waits for."""
    told = reach.find_reach(message(to=to, sender=sender), roster(*PEOPLE, *events))
    assert len(told.agents) == len(set(told.agents))
    assert len(told.waiting_for) == len(set(told.waiting_for))
    return set(told.agents), set(told.waiting_for)


FROZEN_BOB = event("freeze", "bob-1")
DEAD_BOB = event("retire", "bob-1")


def test_delivery_names_the_living_that_will_see_it_now():
    """Direct: the agent; role: every holder; tag: every bearer; ``all``: everybody but the sender."""
    assert delivered("bob-1") == ({"bob-1"}, set())
    assert delivered("role:x") == ({"bob-1", "cat-1"}, set())
    assert delivered("x") == ({"bob-1", "cat-1"}, set())
    assert delivered("project:p") == ({"bob-1"}, set())
    assert delivered("all")[0] - {"user"} == {"bob-1", "cat-1"}
    assert delivered("user") == ({"user"}, set())


def test_delivery_says_what_waits_for_the_frozen_and_for_empty_roles():
    """A frozen agent waits by id; a role without a living holder waits as the role; the dead are not named."""
    assert delivered("bob-1", FROZEN_BOB) == (set(), {"bob-1"})
    assert delivered("project:p", FROZEN_BOB) == (set(), {"bob-1"})
    assert delivered("role:x", FROZEN_BOB) == ({"cat-1"}, set())
    assert delivered("role:x", FROZEN_BOB, event("freeze", "cat-1")) == (set(), {"role:x"})
    assert delivered("role:nobody") == (set(), {"role:nobody"})
    assert delivered(("role:nobody", "bob-1")) == ({"bob-1"}, {"role:nobody"})
    assert delivered("project:nobody") == (set(), set())
    assert delivered("bob-1", DEAD_BOB) == (set(), set())
    assert "bob-1" not in delivered("all", DEAD_BOB)[0]


def test_delivery_goes_to_the_successor():
    """Mail to who is gone reaches who continues it."""
    assert delivered("bob-1", *SUCCESSION) == ({"bob-2"}, set())
    assert delivered("bob-1", *SUCCESSION, event("freeze", "bob-2")) == (set(), {"bob-2"})


@pytest.mark.parametrize("to", ["bob-1", "role:x", "project:p", "all", ("bob-1", "all")])
def test_delivery_never_names_the_sender(to):
    """An agent never sees its own message as unread, so it is not told that it will."""
    agents, waiting = delivered(to, sender="bob-1")
    assert "bob-1" not in agents | waiting


def test_a_role_that_only_the_sender_holds_is_empty():
    """Its message waits for another holder."""
    assert delivered("role:x", event("update", "cat-1", tags=()), sender="bob-1") == (set(), {"role:x"})


@given(
    to=st.lists(
        st.sampled_from(["bob-1", "cat-1", "bob-2", "role:x", "role:y", "x", "project:p", "concern:c", "all"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    ends=st.lists(
        st.sampled_from(
            [FROZEN_BOB, DEAD_BOB, *SUCCESSION, event("freeze", "cat-1"), event("update", "cat-1", tags=("role:y",))]
        ),
        max_size=4,
    ),
    sender=st.sampled_from(["ann-1", "bob-1", "eve-1"]),
)
@settings(max_examples=7 * settings().max_examples)
def test_those_named_by_delivery_are_the_living_that_have_it_unread(to, ends, sender):
    """The delivery tells the sender exactly the living agents that have the message unread."""
    ends = [register("bob-2"), *ends]
    mail = message(to=tuple(to), sender=sender)
    mailbox = state([mail], events=[*PEOPLE, *ends])
    agents = mailbox.roster.agents.values()
    found = {a.session_id for a in agents if a.state == "alive" and unread(a.session_id, mailbox, 0)}
    assert set(reach.find_reach(mail, mailbox.roster).agents) - {"user"} == found
