"""Time to live: when a message expires, by mode, by override, and with a recipient's clock standing still."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.core import codec
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.dead_letters import dead_reason, last_dead
from agent_mailbox.core.inbox import InboxState, expires_at, unread
from agent_mailbox.core.instant import HOUR
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import Message, RosterEvent
from agent_mailbox.core.roster import Roster

from .build import at, event, message, register, roster, state

PEOPLE = [register("ann-1"), register("bob-1", "role:x", "project:p", name="bob")]


def deadline(sent: Message, *events: RosterEvent) -> int | None:
    """When the message expires, with Ann and Bob registered and these events after."""
    return expires_at(sent, roster(*PEOPLE, *events), DEFAULT_TTL)


def has_expired(sent: Message, now: int, people: Roster) -> bool:
    """Has the message expired for these people?"""
    return InboxState({}, Reads(), people, DEFAULT_TTL).expired(sent, now)


def frozen(*spans: tuple[float, float | None]) -> list[RosterEvent]:
    """Bob freezes and thaws at these hours."""
    told = []
    for since, until in spans:
        told.append(event("freeze", "bob-1", since))
        if until is not None:
            told.append(event("thaw", "bob-1", until))
    return told


# -- the time each mode gives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "hours"),
    [("bob-1", 24), ("bob", 24), ("user", 24), ("role:x", None), ("x", None), ("project:p", 72), ("all", 4)],
)
def test_each_mode_has_its_default(to, hours):
    """Direct 24 h, role none, tag 72 h, broadcast 4 h; a foreign bare name is direct, a foreign bare role a role."""
    assert deadline(message(to=to)) == (None if hours is None else at(hours))


@pytest.mark.parametrize("to", ["bob-1", "role:x", "project:p", "all", "nobody-yet"])
def test_the_messages_own_hours_override_every_default(to):
    """A message's own hours override every default, also that of role mail and also for a longer life."""
    for hours in (1, 1000):
        assert deadline(message(to=to, ttl_hours=hours)) == at(hours)


@pytest.mark.parametrize("to", ["bob-1", "role:x", "project:p", "all", ("bob-1", "role:x")])
def test_an_instant_of_its_own_comes_before_any_time_to_live(to):
    """It holds for every address, earlier and later than the hours would, and stops for no frozen recipient."""
    for when in (0.5, 1000):
        for hours in (None, 5):
            sent = message(to=to, ttl_hours=hours, expires_at=at(when))
            assert expires_at(sent, roster(*PEOPLE, event("freeze", "bob-1", hours=1)), DEFAULT_TTL) == at(when)


def test_configuration_changes_the_defaults_and_the_message_still_overrides():
    """A mode can be given hours or be made to last for ever."""
    ttls = {"direct": None, "role": 2, "tag": 0.5, "broadcast": 1}
    people = roster(*PEOPLE)
    assert expires_at(message(), people, ttls) is None
    assert expires_at(message(to="role:x"), people, ttls) == at(2)
    assert expires_at(message(to="project:p"), people, ttls) == at(0.5)
    assert expires_at(message(ttl_hours=3), people, ttls) == at(3)


@pytest.mark.parametrize("to", ["bob-1", "project:p", "all"])
def test_a_message_expires_at_its_deadline_exactly(to):
    """A message is expired at ``timestamp + ttl``, and not a millisecond before."""
    sent, people = message(to=to, hours=5), roster(*PEOPLE)
    end = expires_at(sent, people, DEFAULT_TTL)
    assert not has_expired(sent, end - 1, people)
    assert has_expired(sent, end, people)
    assert has_expired(sent, end + 1, people)
    assert [item.expires_at for item in unread("bob-1", state([sent], events=PEOPLE), end - 1)] == [end]
    assert unread("bob-1", state([sent], events=PEOPLE), end) == []


def test_what_never_expires_never_does():
    """An unclaimed role message stays unread however old."""
    sent = message(to="role:x")
    assert not has_expired(sent, at(24 * 365 * 100), roster(*PEOPLE))
    assert unread("bob-1", state([sent], events=PEOPLE), at(24 * 365 * 100))


@pytest.mark.parametrize(
    ("to", "hours"),
    [
        (("all", "project:p"), 72),
        (("project:p", "bob-1", "all"), 72),
        (("bob-1", "all"), 24),
        (("all", "role:x"), None),
        (("bob-1", "project:p", "role:x"), None),
        (("ann-1", "bob-1"), 24),
    ],
)
def test_with_several_addresses_the_longest_counts(to, hours):
    """A message to several addresses lives as long as the longest of them. A role's mail has no end."""
    for recipients in (to, to[::-1]):
        assert deadline(message(to=recipients)) == (None if hours is None else at(hours))


def test_expiry_filters_and_never_deletes():
    """A clock that goes back shows again what had expired: nothing was lost."""
    mailbox = state([message(to="all")], events=PEOPLE)
    for _ in range(2):
        assert unread("bob-1", mailbox, at(4)) == []
        assert [item.message.id for item in unread("bob-1", mailbox, at(3))] == ["m1"]
        assert [item.message.id for item in unread("bob-1", mailbox, at(-50))] == ["m1"]


@pytest.mark.parametrize("hours", [1e308, 1.7976931348623157e308, 1e303, 10**30, 1e-300, 2**63, 878_400, 878_401])
def test_no_hours_that_a_line_can_hold_break_the_reckoning(hours):
    """A foreign line with absurd hours is mail that lasts long, or as its mode does; it stops nobody's check."""
    line = codec.message(codec.spell_message(message(ttl_hours=hours)))
    assert isinstance(line, Message)
    items = unread("bob-1", state([line], events=PEOPLE), at(23))
    assert [item.message.id for item in items] == (["m1"] if hours > 24 else [])


# -- the frozen recipient's clock -------------------------------------------------------------------------------------


def test_the_clock_stands_while_the_recipient_is_frozen():
    """Direct mail has no deadline as long as that lasts, and as many hours more afterwards."""
    assert deadline(message(), *frozen((1, None))) is None
    assert deadline(message(), *frozen((1, 11))) == at(24 + 10)
    assert deadline(message(), *frozen((1, 11), (20, 25))) == at(24 + 15)
    assert deadline(message(), *frozen((1, 11), (33, 40))) == at(24 + 17)


def test_only_the_part_of_the_freeze_after_sending_counts():
    """Mail sent to a frozen agent waits from its sending on; earlier freezes give it nothing."""
    assert deadline(message(hours=5), *frozen((1, 3))) == at(5 + 24)
    assert deadline(message(hours=5), *frozen((1, 11))) == at(5 + 24 + 6)
    assert deadline(message(hours=5), *frozen((1, None))) is None
    assert deadline(message(hours=5), *frozen((5, 6))) == at(5 + 24 + 1)


def test_freezing_after_expiry_does_not_resurrect():
    """A message that had expired stays expired when its recipient is frozen, and when it is back."""
    for later in (24, 25, 1000):
        assert deadline(message(), *frozen((later, None))) == at(24)
        assert deadline(message(), *frozen((later, later + 10))) == at(24)
    just_before = [event("freeze", "bob-1", 24 - 1 / HOUR)]
    assert deadline(message(), *just_before) is None
    # stopped once, then run out, then frozen again
    assert deadline(message(), *frozen((1, 11), (34, None))) == at(34)
    assert deadline(message(), *frozen((1, 11), (33.5, None))) is None


@pytest.mark.parametrize("kind", ["thaw", "register", "retire"])
def test_the_clock_runs_again_however_the_freeze_ends(kind):
    """Thawed, registered again or dead: it is frozen no longer."""
    assert deadline(message(), event("freeze", "bob-1", 1), event(kind, "bob-1", 4)) == at(24 + 3)


@pytest.mark.parametrize("to", ["role:x", "project:p", "all"])
def test_only_direct_mail_waits_for_the_frozen(to):
    """A role, a tag and a broadcast are not one agent's: their time runs on."""
    assert deadline(message(to=to, ttl_hours=10), *frozen((1, None))) == at(10)


def test_a_freeze_of_somebody_else_stops_nothing():
    """Neither the sender's nor a bystander's."""
    assert deadline(message(), event("freeze", "ann-1", 1)) == at(24)


def test_the_override_stops_with_the_clock_too():
    """It is the time to live that stops, whoever set it."""
    assert deadline(message(ttl_hours=2), *frozen((1, 11))) == at(12)
    assert deadline(message(ttl_hours=2), *frozen((2, 11))) == at(2)


def test_mail_to_a_name_in_a_foreign_line_stops_as_its_agent_freezes():
    """Mail to a name in a foreign line is direct mail. Its hours do not run while the agent of that name is frozen."""
    assert deadline(message(to="bob"), *frozen((1, 11))) == at(34)


def test_of_several_recipients_the_frozen_one_keeps_the_message():
    """The longest counts, and a clock that is is the longest."""
    assert deadline(message(to=("bob-1", "all")), *frozen((1, None))) is None
    assert deadline(message(to=("all", "ann-1", "bob-1")), *frozen((1, 3))) == at(26)
    assert deadline(message(to=("project:p", "bob-1")), *frozen((1, 11))) == at(72)


def test_a_freeze_told_after_the_clock_went_back_counts_all_the_same():
    """The log's order is not the clock's: a freeze at an earlier hour is behind one at a later hour."""
    late_first = frozen((30, 31), (2, 5))
    assert deadline(message(), *late_first) == at(27)
    assert deadline(message(), *frozen((30, 31), (2, None))) is None


# -- successors -------------------------------------------------------------------------------------------------------


def test_the_clock_stands_while_a_successor_is_frozen():
    """The new agent has the old one's unread direct mail, so the mail waits for it as it would have for the old one."""
    succession = [event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1")]
    assert deadline(message(), *succession) == at(24)
    assert deadline(message(), *succession, event("freeze", "bob-2", 6)) is None
    assert deadline(message(), *succession, event("freeze", "bob-2", 6), event("thaw", "bob-2", 16)) == at(34)
    assert deadline(message(), *succession, event("freeze", "bob-2", 24)) == at(24)
    before = [event("freeze", "bob-1", 1), event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1")]
    assert deadline(message(), *before, event("freeze", "bob-2", 6), event("thaw", "bob-2", 16)) == at(24 + 4 + 10)


def test_a_worker_that_was_started_again_a_thousand_times_still_has_its_mail():
    """Each start under the name of the last one is a successor. The mail to the first waits while the last is
    frozen."""
    again = [(f"bob-{n}", f"bob-{n + 1}") for n in range(1, 1100)]
    chain = [one for old, new in again for one in (event("retire", old, 5), register(new, hours=5, continues=old))]
    assert deadline(message(), *chain) == at(24)
    assert deadline(message(), *chain, event("freeze", "bob-1100", 6), event("thaw", "bob-1100", 16)) == at(34)


def test_what_waited_for_a_frozen_successor_waits_for_the_next_one():
    """The hours stood still while the second of three was frozen, and its death does not make them pass."""
    second = [event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1"), event("freeze", "bob-2", 6)]
    third = [event("retire", "bob-2", 30), register("bob-3", hours=30, continues="bob-2")]
    assert deadline(message(), *second) is None
    assert deadline(message(), *second, *third) == at(24 + 24)


def test_successors_in_a_circle_end():
    """Two sessions that took turns under one name continue each other; with both dead their mail is still judged."""
    turns = [
        *(event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1")),
        *(event("retire", "bob-2", 6), event("register", "bob-1", 6, continues="bob-2")),
    ]
    assert deadline(message(), *turns) == at(24)
    assert deadline(message(), *turns, event("retire", "bob-1", 7)) == at(24)
    assert deadline(message(to="bob-2"), *turns, event("retire", "bob-1", 7)) == at(24)


def test_who_comes_back_finds_what_waited_for_its_successor():
    """The hours that stood still while the successor was frozen do not pass because the old one lives again."""
    succession = [event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1")]
    waited = [*succession, event("freeze", "bob-2", 6)]
    assert deadline(message(), *waited) is None
    assert deadline(message(), *waited, event("register", "bob-1", 40)) is None
    assert deadline(message(), *waited, event("thaw", "bob-2", 30), event("register", "bob-1", 31)) == at(48)


def test_a_succession_does_not_resurrect_what_had_expired():
    """A freeze of the successor from before it was one stopped no clock of mail that was not yet its."""
    other_life = [register("cat-1"), event("freeze", "cat-1", 1), event("thaw", "cat-1", 20)]
    succession = [event("retire", "bob-1", 30), event("update", "cat-1", 30, continues="bob-1")]
    assert deadline(message(), *other_life) == at(24)
    assert deadline(message(), *other_life, *succession) == at(24)


# -- any freezes ------------------------------------------------------------------------------------------------------


def hours_running(sent: int, now: int, spans: list[tuple[int, int | None]]) -> int:
    """The hours from sending to now in which the recipient was not frozen, counted one by one."""
    return sum(
        not any(since <= hour and (until is None or hour < until) for since, until in spans)
        for hour in range(sent, now)
    )


@st.composite
def freezes(draw):
    """A history of one agent's freezing and thawing; the clock may go back between two spans, not within one."""
    spans: list[tuple[int, int | None]] = []
    clock = 0
    for _ in range(draw(st.integers(0, 4))):
        clock += draw(st.integers(0, 30)) if draw(st.integers(0, 4)) else -draw(st.integers(0, 60))
        since = clock
        clock += draw(st.integers(0, 30))
        spans.append((since, clock))
    if spans and draw(st.booleans()):
        spans[-1] = (spans[-1][0], None)
    return spans


@given(spans=freezes(), sent=st.integers(-20, 60), hours=st.integers(1, 40))
@example(spans=[(30, 40), (5, None)], sent=0, hours=10)
def test_mail_expires_when_it_has_run_its_hours_outside_every_freeze(spans, sent, hours):
    """A message expires exactly when its hours have passed outside all freezes, even if those are told out of order."""
    mail = message(hours=sent, ttl_hours=hours)
    people = Roster([*PEOPLE, *frozen(*spans)])
    for now in range(sent - 1, sent + 200):
        assert has_expired(mail, at(now), people) == (hours_running(sent, now, spans) >= hours), now


@given(
    st.lists(st.tuples(st.integers(-99, 99), st.integers(1, 50)), max_size=3),
    st.sampled_from(["bob-1", "role:x", "all", "nobody-1", "ann-1"]),
    st.sampled_from([0, 1, 24]),
    st.lists(st.integers(-200, 110), min_size=1, max_size=9),
    st.booleans(),
)
def test_the_last_dead_letter_is_later_than_all_dead_and_earlier_than_all_others(spans, to, hours, sent, dies):
    """The mail of an address is divided at one instant, also where it is not the time to live before now."""
    events = [e for since, long in spans for e in frozen((since, since + long))]
    died = [event("retire", "bob-1", 90)] if dies else []
    there, now = state(events=[*PEOPLE, *events, *died]), at(100)
    last = last_dead(to, hours, there, now)
    for when in (*(at(hour) for hour in sent), last, last + 1):
        if 0 <= when <= 1 << 53:
            is_dead = dead_reason(Message("m", "ann-1", (to,), when, "", ttl_hours=hours or None), there, now)
            assert (is_dead is not None) == (when <= last), when
