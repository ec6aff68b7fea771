"""Time to live: when a message expires, by mode, by override, and with a recipient's clock standing still."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.core import codec
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.dead_letters import dead_reason, last_dead
from agent_mailbox.core.inbox import InboxState, expires_at, unread
from agent_mailbox.core.instant import FIRST
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


def test_configuration_changes_the_defaults_and_the_message_still_overrides():
    """A mode can be given hours or be made to last for ever."""
    ttls = {"direct": None, "role": 2, "tag": 0.5, "broadcast": 1}
    people = roster(*PEOPLE)
    assert expires_at(message(), people, ttls) is None
    assert expires_at(message(to="role:x"), people, ttls) == at(2)
    assert expires_at(message(to="project:p"), people, ttls) == at(0.5)
    assert expires_at(message(ttl_hours=3), people, ttls) == at(3)


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


def test_mail_to_a_name_in_a_foreign_line_stops_as_its_agent_freezes():
    """Mail to a name in a foreign line is direct mail. Its hours do not run while the agent of that name is frozen."""
    assert deadline(message(to="bob"), *frozen((1, 11))) == at(34)


# -- successors -------------------------------------------------------------------------------------------------------


def test_a_worker_that_was_started_again_a_thousand_times_still_has_its_mail():
    """Each start under the name of the last one is a successor. The mail to the first waits while the last is
    frozen."""
    again = [(f"bob-{n}", f"bob-{n + 1}") for n in range(1, 1100)]
    chain = [one for old, new in again for one in (event("retire", old, 5), register(new, hours=5, continues=old))]
    assert deadline(message(), *chain) == at(24)
    assert deadline(message(), *chain, event("freeze", "bob-1100", 6), event("thaw", "bob-1100", 16)) == at(34)


def test_successors_in_a_circle_end():
    """Two sessions that took turns under one name continue each other; with both dead their mail is still judged."""
    turns = [
        *(event("retire", "bob-1", 5), register("bob-2", hours=5, continues="bob-1")),
        *(event("retire", "bob-2", 6), event("register", "bob-1", 6, continues="bob-2")),
    ]
    assert deadline(message(), *turns) == at(24)
    assert deadline(message(), *turns, event("retire", "bob-1", 7)) == at(24)
    assert deadline(message(to="bob-2"), *turns, event("retire", "bob-1", 7)) == at(24)


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
@example(spans=[(10, None)], sent=0, hours=10)
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
        if FIRST <= when <= 1 << 53:
            is_dead = dead_reason(Message("m", "ann-1", (to,), when, "", ttl_hours=hours or None), there, now)
            assert (is_dead is not None) == (when <= last), when
