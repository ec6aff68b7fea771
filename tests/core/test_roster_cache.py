"""The roster written down: same questions, same answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core.address import shorten_id
from agent_mailbox.core.frame import shown_words
from agent_mailbox.core.records import ROSTER_EVENTS
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_cache import RosterCache, written
from agent_mailbox.errors import MailboxError

from .build import event, register, roster

# Words that look like parts of the text itself, or that its notation must spell out.
ODD = [
    '"',
    "\\",
    '\\"',
    "session_id",
    '{"session_id":"a"',
    "alive",
    "null",
    "[]",
    "a\nb",
    "\u2028",
    "\u00e9",
    "\x00",
    "a,",
]
IDS = ["a", "ab", "abcdefg", "abcdefgh", "user", "0a1b2c3d-0000-4000-8000-000000000001", *ODD]
NAMES = ["ann", "bob", "ab", *ODD]
TAGS = ["role:x", "role:y", "project:p", "role:ann", *("role:" + word for word in ODD[:4]), *ODD[4:7]]
WORDS = sorted({*IDS, *map(shorten_id, IDS), *NAMES, *TAGS, "nobody", "abcdef", "x", "", "role:", "all"})

events = st.builds(
    event,
    st.sampled_from(ROSTER_EVENTS) | st.just("register"),
    st.sampled_from(IDS),
    st.integers(0, 50),
    name=st.none() | st.sampled_from(NAMES),
    tags=st.none() | st.lists(st.sampled_from(TAGS), max_size=3, unique=True).map(tuple),
    lead=st.none() | st.sampled_from(IDS),
    continues=st.none() | st.sampled_from(IDS),
    reason=st.none() | st.sampled_from(ODD),
    client=st.none() | st.sampled_from(ODD),
)


def found(agents: Roster, word: str) -> object:
    """What looking for the word gives, or why it gives nothing."""
    try:
        return agents.find(word)
    except MailboxError as error:
        return type(error), str(error), error.hint


def the_same_answers(known: Roster, asked: Roster) -> None:
    """Ask both everything that can be asked of a roster."""
    for word in WORDS:
        assert asked.get(word) == known.get(word)
        assert asked.state(word) == known.state(word)
        assert asked.lineage(word) == known.lineage(word)
        assert asked.heirs(word) == known.heirs(word)
        assert asked.reader(word) == known.reader(word)
        assert asked.role_in_use(word) == known.role_in_use(word)
        assert asked.carrying(word) == known.carrying(word)
        some, all_of_them = asked.some_carrying(word, 2), known.carrying(word)
        assert len(some) == min(2, len(all_of_them))
        assert all(agent in all_of_them for agent in some)
        assert asked.carriers(word) == known.carriers(word)
        assert asked.crowd(word) >= len(known.carriers(word))
        assert asked.led_by(word) == known.led_by(word)
        assert asked.mode(word) == known.mode(word)
        assert asked.bearer(word) == known.bearer(word)
        assert asked.is_shown_of_another(word) == known.is_shown_of_another(word)
        assert asked.is_shown_of_another(word, asked.get(word)) == known.is_shown_of_another(word, known.get(word))
        assert found(asked, word) == found(known, word)
        like = [[a for a in agents.mentioning(word) if word in shown_words(a)] for agents in (asked, known)]
        assert like[0] == like[1]
    assert asked.roles_ever == known.roles_ever
    assert list(asked.agents.items()) == list(known.agents.items())


@given(st.lists(events, max_size=12))
@settings(max_examples=settings().max_examples)
def test_a_written_roster_answers_as_the_roster_itself(history):
    """Asked before and after it was decoded as a whole, whatever words its agents are made of."""
    known = Roster(history)
    the_same_answers(known, RosterCache(written(known)))
    book = RosterCache(written(known))
    assert len(book.agents) == len(known.agents)
    the_same_answers(known, book)


@given(st.lists(events, max_size=8), st.lists(events, max_size=6), st.booleans())
@settings(max_examples=settings().max_examples)
def test_a_written_roster_takes_events_as_the_roster_itself(before, after, asked_between):
    """It answers alike, asked in between or not, and written again it is the whole fold's text, to the byte."""
    known = Roster(before)
    book = RosterCache(written(known))
    for each in after:
        if asked_between:
            the_same_answers(known, book)
        known.apply(each)
        book.apply(each)
    the_same_answers(known, book)
    assert written(book) == written(known)
    the_same_answers(known, RosterCache(b"before" + written(book), len(b"before")))


def test_a_change_looks_at_no_other_agent_that_carries_its_tags():
    """A change of one agent decodes no other agent with the same tags."""
    book = RosterCache(written(roster(*(register(f"agent-{n:04}", "project:p", "role:x") for n in range(100)))))
    book.apply(register("agent-0007", "project:p"))
    book.apply(register("new", "project:p"))
    assert book.crowd("role:x") >= 99
    assert len(book._decoded) == 1
    assert len(book.some_carrying("role:x", 3)) == 3
    assert len(book._decoded) == 4


def test_who_carries_a_tag_now_is_found_past_all_who_are_dead():
    """A fleet's sessions live for minutes under one role: the next one decodes none of those that ended."""
    lives = [event(kind, f"agent-{n:04}", n, tags=("role:x",)) for n in range(100) for kind in ("register", "retire")]
    book = RosterCache(written(Roster([*lives, register("there", "role:x")])))
    book.apply(register("new", "role:x"))
    assert [agent.session_id for agent in book.carrying("role:x")] == ["there", "new"]
    assert len(book.some_carrying("role:x", 3)) == 2
    assert len(book._decoded) == 1


def test_words_of_one_hash_are_told_apart():
    """Two words may share a place in the table: their bytes differ by a multiple of what hashes are taken modulo."""
    first = int.from_bytes(b"aaaaaaaa", "little")
    same = next(
        word
        for k in range(1, 1 << 20)
        if (word := (first + k * ((1 << 31) - 1)).to_bytes(8, "little")).isalnum() and word.isascii()
    ).decode()
    known = roster(register("aaaaaaaa", "role:x"), register(same, "role:y", "role:x"))
    book = RosterCache(written(known))
    for word in ("aaaaaaaa", same, "role:x", "role:y"):
        assert book.get(word) == known.get(word)
        assert book.lineage(word) == known.lineage(word)
        assert book.carrying(word) == known.carrying(word)


def test_the_empty_roster_can_be_written_too():
    """A new mailbox has nobody, and says so."""
    the_same_answers(Roster(), RosterCache(written(Roster())))


@pytest.mark.parametrize(
    "text",
    [
        b"\n",
        b"nonsense\n[]\n",
        b"3\n[]\nabc",
        b"3 0\n[]\nabc",
        b"0 2\n[]\n12345678",
        b'0 0\n["role:x"]x\n',
        b'8 0\n["role:x"]\n12345678{"session_id":1\n',
        b'0 1\n["role:x"]\n12345678[]\n',
    ],
)
def test_what_is_no_written_roster_is_a_value_error(text):
    """A damaged derived file is noticed by who reads it, who can then fold the log again."""

    def ask() -> None:
        book = RosterCache(text)
        assert book.roles_ever is not None
        assert book.agents is not None

    with pytest.raises(ValueError, match=r"rollbook|substring|subsection|invalid literal|unpack|JSON"):
        ask()
