"""The mail of the last days by the hour: how much, by which modes, between whom.

Belongs here: counting it within a page's time. The index knows how many messages each hour has; only hours whose number
changed are read. One look reads a bounded number of messages, the newest hours first. The rest is counted, but not
told apart until a later look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ..core.address import MODES
from ..core.instant import DAY, HOUR
from ..core.records import Message, Record
from ..core.roster import Roster
from ..mailbox.mail_pages import MailPages

MOST_READ = 2000
"""Messages that one look reads: a tenth of a second of work. An hour with more is never told apart."""
MOST_PAIRS = 300
"""Pairs of sender and address that are kept of an hour."""
LONGEST = 8 * DAY
"""Milliseconds for which an hour is kept: longer than the longest timeline."""
UNTOLD = "other"
"""The mode of messages that were not told apart."""


class Hour(Record):
    """The messages of one hour: how many, how many by mode, how many by sender and address."""

    count: int
    modes: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]


class HourlyMail(Record):
    """The hours of a time, by the ms at which they begin; ``told``: the messages that were told apart. ``is_more``:
    another look tells more apart."""

    hours: Mapping[int, Hour]
    total: int
    told: int
    is_more: bool = False

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        """Return how many messages each sender wrote to each address."""
        found: Counter[tuple[str, str]] = Counter()
        for hour in self.hours.values():
            found.update(hour.pairs)
        return found


class Tallies:
    """Keeps what was counted, for the next look."""

    def __init__(self, queries: MailPages) -> None:
        self._queries = queries
        self._known: dict[int, Hour] = {}

    def take_tally(self, since: int, until: int, roster: Roster) -> HourlyMail:
        """Return the tally of the whole hours from ``since`` to ``until`` (ms)."""
        counts = self._queries.hours(since - since % HOUR, until)
        self._known = {at: hour for at, hour in self._known.items() if until - at < LONGEST}
        for begin, end in self._to_read(counts):
            self._read_hours(begin, min(end + HOUR - 1, until), counts, roster)
        hours = {at: self._known.get(at) for at in counts}
        found = {
            at: hour if hour is not None and hour.count == counts[at] else Hour(counts[at], {UNTOLD: counts[at]}, {})
            for at, hour in hours.items()
        }
        total = sum(counts.values())
        untold = [hour.count for hour in found.values() if UNTOLD in hour.modes]
        return HourlyMail(found, total, total - sum(untold), any(count <= MOST_READ for count in untold))

    def _to_read(self, counts: Mapping[int, int]) -> list[tuple[int, int]]:
        """Return the hours to read as first and last of each range without known hours: a range takes one question."""
        ranges: list[tuple[int, int]] = []
        left, goes_on = MOST_READ, False
        for at, count in sorted(counts.items(), reverse=True):
            known = self._known.get(at)
            if (known is not None and known.count == count) or count > left:
                goes_on = False
                continue
            left -= count
            ranges.append((at, ranges.pop()[1] if goes_on else at))
            goes_on = True
        return ranges

    def _read_hours(self, since: int, until: int, counts: Mapping[int, int], roster: Roster) -> None:
        by_hour: dict[int, list[Message]] = {}
        for message in self._queries.within(since, until):
            by_hour.setdefault(message.timestamp - message.timestamp % HOUR, []).append(message)
        for at in counts:
            if since <= at <= until:
                self._known[at] = _tally_hour(by_hour.get(at, ()), counts[at], roster)


def _tally_hour(messages: Iterable[Message], count: int, roster: Roster) -> Hour:
    modes: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for message in messages:
        modes[mode_of(message, roster)] += 1
        pairs.update((message.sender, address) for address in message.recipients)
    return Hour(count, modes, dict(pairs.most_common(MOST_PAIRS)))


def mode_of(message: Message, roster: Roster) -> str:
    """Return the most specific mode of a message's addresses."""
    found = {roster.mode(address) for address in message.recipients}
    return next((mode for mode in MODES if mode in found), MODES[0])
