"""The set difference: unread, its order, obligations, dead letters, threads, delivery."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core import address, awaited, conversations, dead_letters, inbox, obligations, reach
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.records import Message

from .build import ack, at, event, message, read, register, release, roster, state

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


def test_each_message_is_shown_once_however_many_addresses_bring_it():
    """The most specific mode is reported; read through any of them it is read."""
    mail = message(to=("all", "project:p", "role:x", "bob-1"))
    (item,) = inbox.unread("bob-1", state([mail], events=PEOPLE), at(1))
    assert item.mode == "direct"
    assert unread("bob-1", state([mail], [read("m1", "bob-1", item.via)], PEOPLE)) == []


def test_own_mail_is_never_unread_to_its_sender_in_any_mode():
    """A sender's own message is never unread to it, even if it addressed itself."""
    mails = [message(f"m{n}", to=to, sender="bob-1") for n, to in enumerate(["bob-1", "role:x", "project:p", "all"])]
    assert unread("bob-1", state(mails, events=PEOPLE)) == []
    assert unread("cat-1", state(mails, events=PEOPLE)) == ["m1", "m3"]


def test_only_roles_tags_and_all_bind_late():
    """An agent that takes a role or tag sees earlier mail to it. One that gave it up does not."""
    mails = [message("m1", to="role:x"), message("m2", to="project:p"), message("m3", to="bob-1")]
    late = [*PEOPLE, register("dan-1", "role:x", "project:p", hours=2), event("update", "bob-1", 2, tags=())]
    assert unread("dan-1", state(mails, events=late), 2) == ["m1", "m2"]
    assert unread("bob-1", state(mails, events=late), 2) == ["m3"]


def test_a_successor_has_the_old_ones_unread_direct_mail_and_not_what_that_one_read():
    """Whatever the old one read, in any mode, counts as read."""
    mails = [
        message("waiting"),
        message("read by the old one"),
        message("broadcast it read", to="all"),
        message("claimed by the old one", to="role:x"),
        message("given back", to="role:x"),
        message("sent by the old one", to="cat-1", sender="bob-1"),
    ]
    reads = [
        read("read by the old one", "bob-1"),
        read("broadcast it read", "bob-1", "all"),
        read("claimed by the old one", "bob-1", "role:x"),
        read("given back", "bob-1", "role:x"),
        release("given back", "bob-1"),
    ]
    mailbox = state(mails, reads, [*PEOPLE, *SUCCESSION])
    assert unread("bob-2", mailbox, 2) == ["waiting", "given back"]
    (first, _) = inbox.unread("bob-2", mailbox, at(2))
    assert (first.mode, first.via) == ("direct", "bob-1")


def test_what_a_foreign_line_says_was_read_counts_as_read():
    """``read_by`` of an older writer, and only for those it names."""
    mail = message(to="all", read_by=("bob-1",))
    assert unread("bob-1", state([mail], events=PEOPLE)) == []
    assert unread("cat-1", state([mail], events=PEOPLE)) == ["m1"]
    assert unread("bob-2", state([mail], events=[*PEOPLE, *SUCCESSION]), 2) == []


def test_the_user_and_a_stranger_have_mail_too():
    """The person reads direct mail and broadcasts; a session before it registers likewise."""
    mails = [message("m1", to="user"), message("m2", to="all"), message("m3", to="role:x"), message("m4", to="eve-1")]
    mailbox = state(mails, events=PEOPLE)
    assert unread("user", mailbox) == ["m1", "m2"]
    assert unread("eve-1", mailbox) == ["m2", "m4"]


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


def test_an_obligation_is_read_mail_that_asked_for_an_ack_and_has_neither_ack_nor_reply():
    """One message of each kind: only the plainly owed is left."""
    mails = [
        message("owed", ack=True),
        message("owed by role", to="role:x", ack=True),
        message("not asked"),
        message("not read", ack=True),
        message("acked", ack=True),
        message("answered", ack=True),
        message("given back", ack=True),
        message("answered by another", to="all", ack=True),
        message("only received", ack=True),
        message("an answer", to="ann-1", sender="bob-1", thread="answered"),
        message("another's answer", to="ann-1", sender="cat-1", thread="answered by another"),
    ]
    reads = [
        *(read(m, "bob-1") for m in ("owed", "not asked", "acked", "answered", "given back", "answered by another")),
        read("owed by role", "bob-1", "role:x"),
        ack("acked", "bob-1"),
        release("given back", "bob-1"),
        read("only received", "bob-1", event="seen"),
        read("owed", "cat-1"),
        ack("owed", "cat-1"),
    ]
    mailbox = state(mails, reads, PEOPLE)
    assert ids(obligations.obligations("bob-1", mailbox)) == ["owed", "owed by role", "answered by another"]
    assert ids(obligations.obligations("cat-1", mailbox)) == []
    assert ids(obligations.obligations("ann-1", mailbox)) == []


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


def test_an_obligation_does_not_expire():
    """Time to live is about mail not read: what was read and is owed stays owed."""
    mailbox = state([message(to="all", ack=True, ttl_hours=1)], [read("m1", "bob-1", "all")], PEOPLE)
    assert unread("bob-1", mailbox, 1000) == []
    assert ids(obligations.obligations("bob-1", mailbox)) == ["m1"]


@pytest.mark.parametrize("who", ["bob-1", "bob-2"])
def test_a_successor_inherits_obligations_and_what_either_did_about_them_counts(who):
    """An ack or a reply by the old one or by the new one ends it."""
    asked, claim = message(ack=True), read("m1", "bob-1")
    events = [*PEOPLE, *SUCCESSION]
    assert ids(obligations.obligations("bob-2", state([asked], [claim], events))) == ["m1"]
    assert obligations.obligations("bob-2", state([asked], [claim, ack("m1", who)], events)) == []
    reply = message("m2", to="ann-1", sender=who, thread="m1")
    assert obligations.obligations("bob-2", state([asked, reply], [claim], events)) == []


def test_repliers_are_known_by_thread():
    """The thread of a message tells who answered it, whatever the answer is addressed to."""
    mails = [message("m1"), message("m2", sender="bob-1", thread="m1"), message("m3", sender="cat-1", thread="m1")]
    assert obligations.repliers(state(mails, events=PEOPLE)) == {"m1": {"bob-1", "cat-1"}}


# -- dead letters -----------------------------------------------------------------------------------------------------


def dead(mails: list[Message], reads=(), events=(), hours: float = 2, session_id: str | None = None):
    """Ids and reasons of the dead letters."""
    mailbox = state(mails, list(reads), [*PEOPLE, *events])
    return [(m.id, why) for m, why in dead_letters.dead_letters(mailbox, at(hours), session_id)]


def test_mail_that_expired_before_anyone_read_it_is_a_dead_letter():
    """A message becomes a dead letter at its deadline if nobody read it. One reader is enough to prevent that."""
    mails = [message("m1", to="all"), message("m2", to="all"), message("m3", to="role:x", ttl_hours=4)]
    reads = [read("m2", "cat-1", "all")]
    assert dead(mails, reads, hours=4 - 1e-6) == []
    assert dead(mails, reads, hours=4) == [("m1", "expired"), ("m3", "expired")]
    assert dead([message(to="all", read_by=("eve-1",))], hours=4) == []


def test_what_was_read_and_given_back_and_then_expired_is_a_dead_letter():
    """Given back is as if never read."""
    reads = [read("m1", "bob-1"), release("m1", "bob-1")]
    assert dead([message()], reads, hours=24) == [("m1", "expired")]
    assert dead([message()], [read("m1", "bob-1")], hours=24) == []


def test_direct_mail_whose_recipient_died_before_reading_is_a_dead_letter():
    """Direct mail is a dead letter if its recipient died before reading it. A successor or another living address
    prevents that."""
    died = [event("retire", "bob-1", 1)]
    assert dead([message()]) == []
    assert dead([message()], events=[event("freeze", "bob-1", 1)]) == []
    assert dead([message()], events=died) == [("m1", "recipient_dead")]
    assert dead([message(to="bob")], events=died) == [("m1", "recipient_dead")]
    assert dead([message()], [read("m1", "bob-1")], died) == []
    assert dead([message()], events=SUCCESSION) == []
    assert dead([message()], events=[*SUCCESSION, event("retire", "bob-2", 2)]) == [("m1", "recipient_dead")]
    for other in ("cat-1", "role:x", "role:nobody", "project:p", "all"):
        assert dead([message(to=("bob-1", other))], events=died) == []
    assert dead([message(to=("bob-1", "cat-1"))], events=[*died, event("retire", "cat-1")]) == [
        ("m1", "recipient_dead")
    ]


def test_the_dead_that_live_again_get_their_mail():
    """Registering again makes the letter a living one."""
    assert dead([message()], events=[event("retire", "bob-1", 1), event("register", "bob-1", 2)]) == []


def test_mail_to_a_role_or_a_stranger_waits_and_is_no_dead_letter():
    """Roles outlive instances; a session that is not known yet may still come."""
    assert dead([message(to="role:nobody"), message("m2", to="later-1")], hours=10**6) == []


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


def test_visible_is_what_one_sent_or_what_is_addressed_to_one():
    """Read, expired or claimed by another makes no difference to history."""
    bob = roster(*PEOPLE, *SUCCESSION).reader("bob-2")
    for mine in (
        message(sender="bob-2", to="ann-1"),
        message(sender="bob-1", to="ann-1"),
        message(to="bob-1"),
        message(to="role:x"),
        message(to="all"),
    ):
        assert address.is_concerned(mine, bob)
    for others in (message(to="cat-1"), message(to="role:y"), message(to="project:p")):
        assert not address.is_concerned(others, bob)


def as_log(*mails: Message) -> dict[str, Message]:
    return {m.id: m for m in mails}


CHAIN = as_log(
    message("root"),
    message("other"),
    message("a", thread="root"),
    message("b", thread="root"),
    message("ba", thread="b"),
    message("baa", thread="ba"),
    message("other a", thread="other"),
)


@pytest.mark.parametrize("start", ["root", "a", "b", "ba", "baa"])
def test_a_thread_is_the_whole_chain_from_wherever_one_looks(start):
    """Up to its root, then everything below, in log order."""
    assert ids(conversations.thread_of(start, CHAIN)) == ["root", "a", "b", "ba", "baa"]


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
