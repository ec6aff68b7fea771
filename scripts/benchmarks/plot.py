"""The cost of a poll against the length of the history, as an SVG that reads on a light and on a dark page.

Belongs here: two logarithmic axes, the lines, their labels. Which figures are drawn is told from the results.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from . import measures
from .goals import count, judged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .measures import Results
    from .timing import Timed

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 50, 50
"""Margins: room for the numbers at the left and the lines' names at the right."""
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #333 }
.title { font-weight: 600; font-size: 15px }
.grid { stroke: #ddd; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5 }
.plain { stroke: #c2410c } .plain-text { fill: #c2410c } .plain-dot { fill: #c2410c }
.check { stroke: #1d4ed8 } .check-text { fill: #1d4ed8 } .check-dot { fill: #1d4ed8 }
.hook { stroke: #15803d } .hook-text { fill: #15803d } .hook-dot { fill: #15803d }
.bare { stroke: #777; stroke-dasharray: 5 4 } .bare-text { fill: #777 } .bare-dot { fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #ccc } .grid { stroke: #444 }
.plain { stroke: #fb923c } .plain-text { fill: #fb923c } .plain-dot { fill: #fb923c }
.check { stroke: #60a5fa } .check-text { fill: #60a5fa } .check-dot { fill: #60a5fa }
.hook { stroke: #4ade80 } .hook-text { fill: #4ade80 } .hook-dot { fill: #4ade80 }
.bare { stroke: #999 } .bare-text { fill: #999 }
}
"""
NAMES = {
    "plain": "plain: check",
    "check": "ours: check",
    "hook": "ours: hook, in the shell",
    "bare": "bare interpreter",
}

Line = list[tuple[int, float]]


def lines(results: Results) -> dict[str, Line]:
    """The points (messages, ms) of every line there are figures for; of several rosters the longest."""
    found = {
        "plain": _line(results.of(measures.PLAIN_CHECK)),
        "check": _line(judged(results.of(measures.CHECK))),
        "hook": _line([one for one in results.of(measures.HOOK) if one.subject.how == "dash"]),
    }
    sizes = sorted({size for line in found.values() for size, _ in line})
    starts = [seconds for one in results.timed for seconds in one.bare]
    if starts:
        found["bare"] = [(size, statistics.median(starts) * 1000) for size in sizes]
    return {name: line for name, line in found.items() if len(line) > 1}


def _line(timed: Sequence[Timed]) -> Line:
    most = max((one.subject.agents for one in timed), default=0)
    points = [(one.subject.size, statistics.median(one.seconds) * 1000) for one in timed if one.subject.agents == most]
    return sorted(points)


def svg(drawn: Mapping[str, Line]) -> str:
    """The plot."""
    axes = _Axes([point for line in drawn.values() for point in line])
    label = "Cost of a poll with nothing new, ms a process, against messages in the mailbox (both logarithmic)"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
            f"<style>\n{STYLE}</style>",
            f'<text class="title" x="{LEFT}" y="24">A poll with nothing new: ms a process against history</text>',
            *axes.grid(),
            *(element for name, line in drawn.items() for element in _drawn(name, line, axes)),
            *_names(drawn, axes),
            "</svg>\n",
        ]
    )


class _Axes:
    """From messages and ms to places; the vertical one spans whole powers of ten."""

    def __init__(self, points: Sequence[tuple[int, float]]) -> None:
        self.sizes = sorted({size for size, _ in points})
        values = [value for _, value in points]
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(self, size: int) -> float:
        first, last = math.log10(self.sizes[0]), math.log10(self.sizes[-1])
        return LEFT + (math.log10(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def grid(self) -> list[str]:
        found = []
        for power in range(self.low, self.high + 1):
            y = self.y(10**power)
            found.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            found.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g} ms</text>')
        for size in self.sizes:
            x = self.x(size)
            found.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>')
            found.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{count(size)}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        found.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">messages</text>')
        return found


def _drawn(name: str, line: Line, axes: _Axes) -> list[str]:
    places = [(axes.x(size), axes.y(value)) for size, value in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle class="{name}-dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
    return [f'<polyline class="line {name}" points="{path}"/>', *dots]


def _names(drawn: Mapping[str, Line], axes: _Axes) -> list[str]:
    """Each line's name and last value at its right end, moved apart where they would touch."""
    found, free = [], float(TOP)
    for name, line in sorted(drawn.items(), key=lambda item: -item[1][-1][1]):
        y = max(axes.y(line[-1][1]) + 4, free)
        free = y + 17
        value = line[-1][1]
        words = f"{NAMES[name]}, {value:,.0f} ms" if value >= 100 else f"{NAMES[name]}, {value:.3g} ms"
        found.append(f'<text class="{name}-text" x="{WIDTH - RIGHT + 8}" y="{y:.1f}">{words}</text>')
    return found
