"""When the person is told, and in which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core.attention import (
    GAP,
    KEPT,
    Due,
    LastNotice,
    WaitingThing,
    decide,
    notice,
    quiet_for,
    quiet_hours,
)

HOUR = 3_600_000
AT = 10 * HOUR


def things(*ids: str) -> list[WaitingThing]:
    """Requests with these ids."""
    return [WaitingThing(i, "permission request", "ada", f"Bash {i}") for i in ids]


def test_the_first_thing_is_told_at_once_and_those_that_follow_together() -> None:
    """One notice a minute at most, whoever floods; nothing is told twice before its time."""
    first = decide(things("a"), LastNotice(), AT, HOUR, None)
    assert first == Due(True, LastNotice(AT, ("a",)), AT + HOUR)
    more = things("a", "b", "c")
    assert decide(more, first.told, AT + 1, HOUR, None) == Due(False, first.told, AT + GAP)
    then = decide(more, first.told, AT + GAP, HOUR, None)
    assert (then.tell, then.told.ids) == (True, ("a", "b", "c"))
    assert not decide(things("c"), then.told, AT + GAP + 1, HOUR, None).tell
    assert decide(things("c"), then.told, AT + GAP + HOUR, HOUR, None).tell
    assert decide(things("c"), then.told, AT + 99 * HOUR, 0, None) == Due(False, then.told)


def test_in_quiet_hours_nothing_is_told_and_nothing_is_forgotten() -> None:
    """It comes at their end, unless it is settled by then."""
    until = AT + HOUR
    assert decide(things("a"), LastNotice(), AT, HOUR, until) == Due(False, LastNotice(), until)
    assert decide(things("a"), LastNotice(), until, HOUR, None).tell
    assert decide([], LastNotice(5, ("a",)), until, HOUR, None) == Due(False, LastNotice(5, ()))


@given(st.integers(0, 10**6), st.integers(0, 2000))
def test_a_clock_or_a_crowd_silences_nothing(ahead: int, count: int) -> None:
    """A clock that was set back delays by a minute at most; more than can be remembered is told again later."""
    made = decide(things("new"), LastNotice(AT + ahead, ("old",)), AT, HOUR, None)
    assert made.tell or (made.again is not None and made.again <= AT + GAP)
    many = decide(things(*map(str, range(count))), LastNotice(), AT, HOUR, None)
    assert many.tell == (count > 0)
    assert len(many.told.ids) <= KEPT


@pytest.mark.parametrize(
    ("hours", "minute", "left"),
    [("22:00-07:00", 1320, 540), ("22:00-07:00", 419, 1), ("22:00-07:00", 420, None), ("9:00-10:30", 600, 30)],
)
def test_quiet_hours_may_go_over_midnight(hours: str, minute: int, left: int | None) -> None:
    """Their end is not one of them."""
    assert quiet_for(quiet_hours(hours), minute) == left


@pytest.mark.parametrize("text", ["", "22", "22-7", "24:00-07:00", "1:60-2:00", "a:00-b:00", "٣:00-4:00", "1:0-2:00"])
def test_malformed_quiet_hours_silence_nobody(text: str) -> None:
    """A wrong setting is named, and silences nobody."""
    with pytest.raises(ValueError, match=r".*"):
        quiet_hours(text)


def test_a_notice_says_who_and_what_kind_and_the_content_if_it_shall() -> None:
    """A few are named, the rest counted; no line is longer than a notice, nor holds a control character."""
    many = notice(things(*"abcdefgh"), content=False)
    assert (many.title, many.count) == ("8 things wait for you", 8)
    assert many.text.splitlines()[0] == "permission request from ada"
    assert many.text.splitlines()[-1] == "and 3 more"
    (line,) = notice([WaitingThing("a", "mail", "eve", "x\x1b[2J\n\u2028y" * 500)], content=True).text.splitlines()
    assert line.isprintable()
    assert len(line) < 300


def test_news_are_named_in_the_title_of_a_notice_and_never_what_they_say() -> None:
    """Nothing was told before, or one thing waits alone: then they are counted. What is told already is not named."""
    for content in (True, False):
        told = notice(things("a", "b", "c"), content=content, told=("a",))
        assert told.title == "permission request from ada: 3 things wait for you"
        assert len(told.text.splitlines()) == 3
        assert told.text.splitlines()[2] == "and 1 other"
        assert notice(things("a", "b"), content=content).title == "2 things wait for you"
        assert notice(things("b"), content=content, told=("a",)).title == "1 thing waits for you"
