"""The charts of the timeline: messages by hour and mode, who writes to whom, delivery times, costs.

Belongs here: from messages and records to figures, and from figures to the geometry of an SVG; the template draws it.
Mail is counted within a page's time. The index knows how many messages each hour has; only hours whose number changed
are read, the newest first. One look reads a bounded number; the rest is counted, and told apart by a later look.
For accessibility each chart has a table of its figures, and no colour is the only sign.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.address import MODES
from ..core.cost import costs
from ..core.instant import DAY, HOUR
from ..core.records import Message, Record
from ..core.roster import Roster
from ..mailbox.mail_pages import MailPages, Recent
from . import presenters

MOST_READ = 2000
"""Messages that one look reads: a tenth of a second of work. An hour with more is never told apart."""
MOST_PAIRS = 300
"""Pairs of sender and address that are kept of an hour."""
LONGEST = 8 * DAY
"""Milliseconds for which an hour is kept: longer than the longest timeline."""
UNTOLD = "other"
"""The mode of messages that were not told apart."""
WIDTH, HEIGHT, LEFT, FOOT = 720, 200, 46, 22
LABEL = 70
"""The room of a label below the bars, at a phone's width too."""
MOST_SENDERS, MOST_TARGETS = 12, 8
"""Rows and columns of the table of who writes to whom; all others share one of each."""
SHADES = 4
BUCKETS = ((1, "1 s"), (5, "5 s"), (30, "30 s"), (120, "2 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"))
"""Upper bounds of delivery times in seconds, with labels; longer times count as "more"."""


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


class ChartCounts:
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


def chart_shapes(tally: HourlyMail, stretch: Recent, roster: Roster, since: int, until: int) -> dict[str, Any]:
    """Return the figures and shapes for the template, for instants in ms. ``stretch``: the newest messages, whose
    delivery times and costs are shown."""
    known = {m.id: m for m in stretch.messages if m.timestamp <= until}
    return {
        "total": tally.total,
        "told": tally.told,
        "timed": len(known),
        "counts_on": tally.is_more,
        "hours_chart": hours_chart(tally.hours, since, until),
        "matrix": sender_matrix(tally.pairs, roster),
        "latency": latency_histogram(stretch, known),
        "costs": [
            (presenters.party_name(c.sender, roster), c.mode, c.messages, c.tokens)
            for c in costs(stretch.records, known)[:30]
        ],
    }


def hours_chart(hours_of: Mapping[int, Hour], since: int, until: int) -> dict[str, Any]:
    """Return stacked bars: one per hour, or per several hours of a long time, with a layer per mode."""
    modes = (*MODES, UNTOLD) if any(UNTOLD in hour.modes for hour in hours_of.values()) else MODES
    until = math.ceil(until / HOUR) * HOUR
    hours = max((until - since + since % HOUR) // HOUR, 1)
    step = max(math.ceil(hours / 48), 1)
    first = until - math.ceil(hours / step) * step * HOUR
    counts: list[Counter[str]] = [Counter() for _ in range(math.ceil(hours / step))]
    for at, hour in hours_of.items():
        counts[min(max((at - first) // (step * HOUR), 0), len(counts) - 1)].update(hour.modes)
    top = _round_up(max(count.total() for count in counts))
    room, slot = HEIGHT - FOOT - 8, (WIDTH - LEFT) / len(counts)
    bars, labels, rows = [], [], []
    free = 0.0
    for place, count in enumerate(counts):
        begin = first + place * step * HOUR
        x, y = LEFT + place * slot, float(HEIGHT - FOOT)
        for mode in modes:
            if count[mode]:
                high = count[mode] / top * room
                y -= high
                bars.append({"mode": mode, "x": x + 1, "y": y, "w": max(slot - 2, 1), "h": high})
        day = "" if hours <= 48 else f"{presenters.local_day(begin)[:3]} "
        if (label := _bar_label(begin, step)) and free <= x <= WIDTH - LABEL:
            labels.append({"x": x, "text": label})
            free = x + LABEL
        if count:
            last = _spell_minute(begin + step * HOUR - 60_000)
            mail = presenters.page_link("/search", since=_spell_minute(begin), until=last)
            name = f"{day}{presenters.clock_time(begin)}"
            rows.append((name, [count[mode] for mode in modes], count.total(), mail))
    totals = sum(counts, Counter[str]())
    ticks = [{"y": HEIGHT - FOOT - part * room, "text": f"{top * part:g}"} for part in (0, 0.5, 1)]
    return {
        "bars": bars, "labels": labels, "rows": rows, "ticks": ticks, "modes": modes, "step": step,
        "totals": [(mode, totals[mode]) for mode in modes], "width": WIDTH, "height": HEIGHT, "left": LEFT,
        "foot": HEIGHT - FOOT,
    }  # fmt: skip


def _round_up(value: int) -> int:
    """Return the next round figure for the end of an axis."""
    if value <= 4:
        return 4 if value > 2 else 2
    size = 10 ** (len(str(value)) - 1)
    return next(int(part * size) for part in (1, 2, 4, 5, 10) if part * size >= value)


def _bar_label(begin: int, step: int) -> str:
    """Return what is below a bar that begins a day, or a quarter of one where each bar is an hour."""
    at = time.localtime(begin / 1000)
    if at.tm_hour < step:
        return time.strftime("%a %-d", at)
    return presenters.clock_time(begin) if step == 1 and at.tm_hour % 3 == 0 else ""


def _spell_minute(millis: int) -> str:
    """Return an instant as the search's date field spells it."""
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(millis / 1000))


def sender_matrix(written: Mapping[tuple[str, str], int], roster: Roster) -> dict[str, Any]:
    """Return a table of who writes to whom: the most frequent senders and addresses, each cell with its count and the
    shade of its share. ``written``: how many messages each sender wrote to each address."""
    pairs: Counter[tuple[str, str]] = Counter()
    for (sender, address), count in written.items():
        pairs[(presenters.party_name(sender, roster), presenters.name_address(address, roster))] += count
    senders, targets = _most_frequent(pairs, 0, MOST_SENDERS), _most_frequent(pairs, 1, MOST_TARGETS)
    cells: Counter[tuple[str, str]] = Counter()
    for (sender, target), count in pairs.items():
        cells[sender if sender in senders else "", target if target in targets else ""] += count
    top = max((count for pair, count in cells.items() if all(pair)), default=1)
    columns = [*targets, *([""] if any(not target for _, target in cells) else [])]
    lines = [*senders, *([""] if any(not sender for sender, _ in cells) else [])]
    return {
        "columns": [column or "others" for column in columns],
        "rows": [
            (
                line or "others",
                [(cells[line, column], _shade_of(cells[line, column], top, line, column)) for column in columns],
                sum(cells[line, column] for column in columns),
            )
            for line in lines
        ],
    }


def _most_frequent(pairs: Counter[tuple[str, str]], part: int, most: int) -> list[str]:
    weight: Counter[str] = Counter()
    for pair, count in pairs.items():
        weight[pair[part]] += count
    return [name for name, _ in weight.most_common(most)]


def _shade_of(count: int, top: int, line: str, column: str) -> int:
    return math.ceil(count / top * SHADES) if line and column else 0


def latency_histogram(stretch: Recent, known: dict[str, Message]) -> dict[str, Any]:
    """Return a histogram of the times from sending a message to its first reading."""
    first: dict[str, int] = {}
    for record in stretch.records:
        if record.event in ("read", "ack") and record.message_id in known:
            first.setdefault(record.message_id, record.timestamp)
    took = sorted(max(at - known[i].timestamp, 0) / 1000 for i, at in first.items())
    names = [*(f"up to {name}" for _, name in BUCKETS), "more"]
    counts = Counter(bisect_left([end for end, _ in BUCKETS], seconds) for seconds in took)
    most = max(counts.values(), default=1)
    slot, room = WIDTH / len(names), 120
    bars = [
        {"x": place * slot + 6, "w": slot - 12, "h": (high := counts[place] / most * room), "y": 20 + room - high,
         "name": name, "count": counts[place], "mid": place * slot + slot / 2}
        for place, name in enumerate(names)
    ]  # fmt: skip
    median = took[len(took) // 2] if took else None
    return {
        "bars": bars,
        "median": None if median is None else spell_duration(median),
        "read": len(took),
        "unread": len(known) - len(took),
        "width": WIDTH,
        "height": room + 46,
    }


def spell_duration(seconds: float) -> str:
    """Return a time in its unit: ``16 h``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for most, unit, size in ((120, "s", 1), (120 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < most:
            return f"{seconds / size:.{1 if unit == 's' else 0}f} {unit}"
    return f"{seconds / 86400:.0f} days"
