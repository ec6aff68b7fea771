"""The mail of the last days by the hour: how much, by which modes, between whom.

Belongs here: counting it within a page's time. The index knows how many messages each hour has; only hours whose number
changed are read. One look reads a bounded number of messages, the newest hours first. The rest is counted, but not
told apart until a later look.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..core.address import MODES
from ..core.instant import HOUR
from ..core.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.paging import Browsing

MOST_READ = 3000
"""Messages that one look reads: a tenth of a second of work. An hour with more is never told apart."""
MOST_PAIRS = 300
"""Pairs of sender and address that are kept of an hour."""
UNTOLD = "other"
"""The mode of messages that were not told apart."""


class Hour(Record):
    """The messages of one hour: how many, how many by mode, how many by sender and address."""

    count: int
    modes: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]


class HourlyMail(Record):
    """The hours of a time, by the ms at which they begin; ``told``: the messages that were told apart."""

    hours: Mapping[int, Hour]
    total: int
    told: int

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        """Return how many messages each sender wrote to each address."""
        found: Counter[tuple[str, str]] = Counter()
        for hour in self.hours.values():
            found.update(hour.pairs)
        return found


class Tallies:
    """Keeps what was counted, for the next look."""

    def __init__(self, library: Browsing) -> None:
        self._library = library
        self._known: dict[int, Hour] = {}

    def take(self, since: int, until: int, roster: Roster) -> HourlyMail:
        """Return the tally of the whole hours from ``since`` to ``until`` (ms)."""
        counts = self._library.hours(since - since % HOUR, until)
        left = MOST_READ
        self._known = {at: hour for at, hour in self._known.items() if at >= until - 8 * 24 * HOUR}
        hours = {}
        for at, count in sorted(counts.items(), reverse=True):
            known = self._known.get(at)
            if (known is None or known.count != count) and count <= left:
                left -= count
                known = self._known[at] = _told(self._library.within(at, min(at + HOUR - 1, until)), count, roster)
            if known is None or known.count != count:
                known = Hour(count, {UNTOLD: count}, {})
            hours[at] = known
        total = sum(counts.values())
        return HourlyMail(hours, total, total - sum(hour.modes.get(UNTOLD, 0) for hour in hours.values()))


def _told(messages: Iterable[Message], count: int, roster: Roster) -> Hour:
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
