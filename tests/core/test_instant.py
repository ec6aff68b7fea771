"""Instants, held against ``datetime``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.core import instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
FIRST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MILLISECOND
LAST = (datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC) - EPOCH) // MILLISECOND

offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=st.one_of(st.just(UTC), offsets))
millis = st.integers(FIRST, LAST)


def in_millis(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def zone_text(moment: datetime) -> str:
    minutes = moment.utcoffset() // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


@given(moment=moments, separator=st.sampled_from("Tt "), digits=st.integers(0, 6), comma=st.booleans())
def test_an_instant_with_any_zone_and_any_fraction_is_the_one_datetime_computes(moment, separator, digits, comma):
    """Calendar, zone and fraction agree with ``datetime``; what is finer than a millisecond is cut off."""
    fraction = f"{moment.microsecond:06}"[:digits]
    moment = moment.replace(microsecond=int((fraction + "000000")[:3]) * 1000)
    clock = f"{moment:%H:%M:%S}" + ((",."[not comma]) + fraction if fraction else "")
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    assert instant.parse(f"{date}{separator}{clock}{zone_text(moment)}") == in_millis(moment)


@given(moment=st.datetimes(timezones=st.just(UTC)))
def test_an_instant_without_zone_is_utc_and_a_date_alone_its_midnight(moment):
    """An instant without a zone is read as UTC, and a date alone as its midnight."""
    moment = moment.replace(microsecond=0, second=0)
    spelt = moment.strftime("%m-%dT%H:%M")
    assert instant.parse(f"{moment.year:04}-{spelt}") == in_millis(moment)
    assert instant.parse(f"{moment.year:04}-{spelt}Z") == in_millis(moment)
    assert instant.parse(f"{moment.year:04}-{spelt}:00z") == in_millis(moment)
    midnight = moment.replace(hour=0, minute=0)
    assert instant.parse(f"{moment.year:04}-{moment:%m-%d}") == in_millis(midnight)


@given(millis)
@example(FIRST)
@example(LAST)
@example(-1)
@example(0)
def test_the_text_of_an_instant_is_rfc_3339_in_utc_with_milliseconds_and_parses_back(value):
    """``text`` writes what ``datetime`` would, and ``parse`` undoes it."""
    moment = EPOCH + value * MILLISECOND
    spelt = f"{moment.year:04}-{moment.strftime('%m-%dT%H:%M:%S')}.{moment.microsecond // 1000:03}Z"
    assert instant.text(value) == spelt
    assert instant.parse(spelt) == value
    assert instant.month(value) == spelt[:7]


def test_every_day_of_four_centuries_is_the_day_datetime_says():
    """The day count holds through leap years, the century rule and the 400-year rule."""
    for number in range(date(1899, 12, 31).toordinal(), date(2301, 1, 1).toordinal()):
        day, value = date.fromordinal(number).isoformat(), (number - EPOCH.toordinal()) * 86_400_000
        assert instant.parse(day) == value
        assert instant.text(value) == f"{day}T00:00:00.000Z"


def test_a_leap_second_is_taken_as_the_second_before_it():
    """RFC 3339 allows second 60; such a line is mail like any other."""
    assert instant.parse("2016-12-31T23:59:60Z") == instant.parse("2016-12-31T23:59:59Z")


GRAMMAR = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?", re.ASCII
)


def by_the_grammar(text: str) -> int | None:
    """The instant that the documented grammar and ``datetime`` give; None if the text is none."""
    found = GRAMMAR.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    sign, zone_hours, zone_minutes = found[8], int(found[9] or 0), int(found[10] or 0)
    if second > 60 or zone_hours > 23 or zone_minutes > 59:
        return None
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    shift = (zone_hours * 60 + zone_minutes) * 60_000
    return in_millis(moment) + int(((found[7] or "") + "000")[:3]) - (shift if sign == "+" else -shift)


@st.composite
def nearly_instants(draw):
    """A good spelling with up to three characters put in, taken out or exchanged."""
    text = list(
        draw(
            st.sampled_from(
                [
                    "2026-03-16T14:30:00.123Z",
                    "2024-02-29 23:59:60+05:30",
                    "1969-12-31t00:00:00,5-0800",
                    "2026-03-16T14:30",
                    "2026-03-16",
                ]
            )
        )
    )
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text[place : place + draw(st.integers(0, 1))] = draw(st.sampled_from(["", *"0123459-+:.,TZz \n٣²"]))
    return "".join(text)


@given(nearly_instants())
@example("2026-02-30")
@example("2023-02-29")
@example("1900-02-29")
@example("0000-01-01")
@example("2026-13-01")
@example("2026-00-10")
@example("2026-01-00")
@example("2026-03-16T24:00:00Z")
@example("2026-03-16T12:60:00Z")
@example("2026-03-16T12:00:61Z")
@example("2026-03-16T12:00:00.Z")
@example("2026-03-16T12:00:00ZZ")
@example("2026-03-16Z")
@example("2026/03-16")
@example("2026-03/16")
@example("2026-03-5")
@example("2026-03-16T")
@example("٢٠٢٦-03-16")
@example("2026-03-16T12:00:00+1")
def test_what_is_nearly_an_instant_is_refused_and_what_is_one_is_taken(text):
    """``parse`` takes exactly the documented grammar; on anything else it raises ``ValueError``."""
    expected = by_the_grammar(text)
    if expected is None:
        with pytest.raises(ValueError, match="no"):
            instant.parse(text)
    else:
        assert instant.parse(text) == expected


@pytest.mark.parametrize("zone", ["+24:00", "+99:99", "-00:60", "+013:0", "+:0100", "+01:00:"])
def test_a_zone_that_no_clock_keeps_is_refused(zone):
    """Hours of a zone end at 23, its minutes at 59, and its colon is between them (RFC 3339, 5.6)."""
    with pytest.raises(ValueError, match="not a"):
        instant.parse(f"2026-03-16T14:30:00{zone}")


@given(st.text(max_size=40))
def test_any_text_is_an_instant_or_a_value_error(text):
    """No other exception comes out, whatever a foreign line holds."""
    try:
        assert isinstance(instant.parse(text), int)
    except ValueError:
        pass
