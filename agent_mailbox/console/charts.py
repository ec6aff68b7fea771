"""The charts of the timeline: messages by hour and mode, the graph of writers, delivery times, costs.

Belongs here: from messages and records to figures, and from figures to the geometry of an SVG; the template draws it.
For accessibility each chart has a table of its figures, and no colour is the only sign.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..core.address import MODES
from ..core.cost import costs
from ..core.instant import HOUR
from . import presenters
from .tallies import UNTOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.paging import Recent
    from .tallies import Hour, HourlyMail

WIDTH, HEIGHT, LEFT, FOOT = 720, 200, 36, 22
GRAPH = 420
MOST_PARTIES, MOST_EDGES = 14, 40
BUCKETS = ((1, "1 s"), (5, "5 s"), (30, "30 s"), (120, "2 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"))
"""Upper bounds of delivery times in seconds, with labels; longer times count as "more"."""


def pictures(tally: HourlyMail, stretch: Recent, roster: Roster, since: int, until: int) -> dict[str, Any]:
    """Return the figures and shapes for the template, for instants in ms. ``stretch``: the newest messages, whose
    delivery times and costs are shown."""
    known = {m.id: m for m in stretch.messages if m.timestamp <= until}
    return {
        "total": tally.total,
        "told": tally.told,
        "timed": len(known),
        "hours_chart": hours_chart(tally.hours, since, until),
        "graph": graph(tally.pairs, roster),
        "latency": latency(stretch, known),
        "costs": [
            (presenters.name(c.sender, roster), c.mode, c.messages, c.tokens)
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
    top = _round_up(max((sum(c.values()) for c in counts), default=0))
    room, slot = HEIGHT - FOOT - 8, (WIDTH - LEFT) / len(counts)
    bars, labels, rows = [], [], []
    every = max(len(counts) // 8, 1)
    for place, count in enumerate(counts):
        begin = first + place * step * HOUR
        x, y = LEFT + place * slot, float(HEIGHT - FOOT)
        for mode in modes:
            if count[mode]:
                high = count[mode] / top * room
                y -= high
                bars.append({"mode": mode, "x": x + 1, "y": y, "w": max(slot - 2, 1), "h": high})
        name = presenters.clock(begin) if hours <= 48 else f"{presenters.day(begin)[:3]} {presenters.clock(begin)}"
        if place % every == 0:
            labels.append({"x": x, "text": name})
        if count:
            rows.append((name, [count[mode] for mode in modes], sum(count.values())))
    totals = Counter(mode for count in counts for mode in count.elements())
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


def graph(written: Mapping[tuple[str, str], int], roster: Roster) -> dict[str, Any]:
    """Return parties on a circle, with an arrow per pair; its width and number show the messages. ``written``: how many
    each sender wrote to each address."""
    pairs: Counter[tuple[str, str]] = Counter()
    for (sender, address), count in written.items():
        pairs[(_party(sender, roster), _target(address, roster))] += count
    weight: Counter[str] = Counter()
    for (sender, target), count in pairs.items():
        weight[sender] += count
        weight[target] += count
    parties = sorted(name for name, _ in weight.most_common(MOST_PARTIES))
    edges = [(pair, count) for pair, count in pairs.most_common() if set(pair) <= set(parties) and pair[0] != pair[1]]
    at = {name: _on_circle(number, len(parties)) for number, name in enumerate(parties)}
    most = max((count for _, count in edges), default=1)
    return {
        "size": (WIDTH, GRAPH),
        "nodes": [_node(name, *at[name]) for name in parties],
        "edges": [_edge(at[a], at[b], count, most) for (a, b), count in edges[:MOST_EDGES]],
        "rows": [(a, b, count) for (a, b), count in pairs.most_common(60)],
        "hidden": max(len(pairs) - min(len(edges), MOST_EDGES), 0),
    }


def _party(session_id: str, roster: Roster) -> str:
    return presenters.name(session_id, roster)


def _target(address: str, roster: Roster) -> str:
    return presenters.label(address) if ":" in address or address == "all" else _party(address, roster)


def _on_circle(number: int, of: int) -> tuple[float, float]:
    angle = 2 * math.pi * number / max(of, 1) - math.pi / 2
    return WIDTH / 2 + math.cos(angle) * 210, GRAPH / 2 + math.sin(angle) * 165


def _node(name: str, x: float, y: float) -> dict[str, Any]:
    right, middle = x > WIDTH / 2 + 40, abs(x - WIDTH / 2) <= 40
    anchor = "middle" if middle else "start" if right else "end"
    dy = (-14 if y < GRAPH / 2 else 24) if middle else 4
    return {"name": name, "x": x, "y": y, "tx": x + (0 if middle else 12 if right else -12), "ty": y + dy, "a": anchor}


def _edge(one: tuple[float, float], other: tuple[float, float], count: int, most: int) -> dict[str, Any]:
    """Return a curve that bends left, so that both directions of a pair are visible; its label is a third along."""
    (x1, y1), (x2, y2) = one, other
    long = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / long, (y2 - y1) / long
    x1, y1, x2, y2 = x1 + ux * 9, y1 + uy * 9, x2 - ux * 13, y2 - uy * 13
    cx, cy = (x1 + x2) / 2 - uy * long * 0.14, (y1 + y2) / 2 + ux * long * 0.14
    t = 0.38
    lx = (1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t * t * x2
    ly = (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t * t * y2
    path = f"M{x1:.1f} {y1:.1f} Q{cx:.1f} {cy:.1f} {x2:.1f} {y2:.1f}"
    return {"path": path, "width": 1 + 3 * math.sqrt(count / most), "count": count, "x": lx, "y": ly}


def latency(stretch: Recent, known: dict[str, Message]) -> dict[str, Any]:
    """Return a histogram of the times from sending a message to its first reading."""
    first: dict[str, int] = {}
    for record in stretch.records:
        if record.event in ("read", "ack") and record.message_id in known:
            first.setdefault(record.message_id, record.timestamp)
    took = sorted(max(at - known[i].timestamp, 0) / 1000 for i, at in first.items())
    names = [*(f"up to {name}" for _, name in BUCKETS), "more"]
    ends = [*(end for end, _ in BUCKETS), math.inf]
    counts = [0] * len(names)
    for seconds in took:
        counts[next(place for place, end in enumerate(ends) if seconds <= end)] += 1
    most = max([*counts, 1])
    slot, room = WIDTH / len(names), 120
    bars = [
        {"x": place * slot + 6, "w": slot - 12, "h": count / most * room, "y": 20 + room - count / most * room,
         "name": name, "count": count, "mid": place * slot + slot / 2}
        for place, (name, count) in enumerate(zip(names, counts, strict=True))
    ]  # fmt: skip
    median = took[len(took) // 2] if took else None
    return {
        "bars": bars,
        "median": None if median is None else spelt(median),
        "read": len(took),
        "unread": len(known) - len(took),
        "width": WIDTH,
        "height": room + 46,
    }


def spelt(seconds: float) -> str:
    """Return a time in its unit: ``16 h``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for most, unit, size in ((120, "s", 1), (120 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < most:
            return f"{seconds / size:.{1 if unit == 's' else 0}f} {unit}"
    return f"{seconds / 86400:.0f} days"
