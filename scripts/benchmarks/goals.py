"""What the figures have to reach: the table of goals, as rows that say met or not.

Belongs here: the goals and which figures count for each. A goal over several mailboxes, rosters or shells is judged by
the worst of them. Where both launchers were measured, the installed command is judged: people and agents call that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import measures, writers
from .timing import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .measures import Results
    from .timing import Timed

PLAIN_GOALS = {1_000: 6.0, 100_000: 25.0, 1_000_000: 200.0}
SMALL, LARGE = 1_000, 1_000_000
GROWTH = 1.05


@dataclass(frozen=True)
class Row:
    """One goal: what was found, where, what was wanted, and whether it was met (None: not a size the goal is for)."""

    measure: str
    figure: str
    goal: str
    met: bool | None


def rows(results: Results) -> list[Row]:
    """A row for every goal that something was measured for."""
    found: list[Row | None] = [
        _ratio(results, measures.HOOK, 0.25),
        _ratio(results, measures.BUSY, 0.25),
        _ratio(results, measures.HOOK_MAIL, 1.4),
        _ratio(results, measures.CHECK_MAIL, 1.4),
        _ratio(results, measures.SEND, 1.4),
        _ratio(results, measures.REGISTER, 2.0),
        _ratio(results, measures.RETIRE, 2.0),
        _ratio(results, measures.CHANGED_SEND, 1.7),
        _ratio(results, measures.LIST, 5.0),
        _worst_fact(results, measures.STAMPS, 20),
        *(_growth(results, name) for name in (measures.HOOK, measures.HOOK_MAIL, measures.CHECK_MAIL, measures.SEND)),
        _worst_fact(results, measures.POLL, 30),
        _worst_fact(results, measures.CURSOR, 0.6),
        _worst_fact(results, measures.CURSOR_PEAK, 60),
        *_writers(results),
        *_against_plain(results),
        _ratio(results, measures.SEARCH, 3.0, largest_only=True),
        _ratio(results, measures.START, 2.0),
        _growth(results, measures.START),
        *(_ratio(results, name, 2.0) for name in (measures.STATUS, measures.DEAD, measures.FOREIGN)),
        *(_growth(results, name) for name in (measures.STATUS, measures.DEAD, measures.FOREIGN)),
    ]
    return [row for row in found if row is not None]


def judged(timed: Sequence[Timed]) -> list[Timed]:
    """Those that count: of two launchers the installed command."""
    hows = {one.subject.how for one in timed}
    return [one for one in timed if not (one.subject.how == "lean" and "console" in hows)]


def where(size: int, agents: int, how: str = "") -> str:
    """The words for where a figure was found."""
    return ", ".join([f"{count(size)} messages", f"{agents:,} agents", *([how] if how else [])])


def count(size: int) -> str:
    """A number of messages in short."""
    return f"{size // 1_000_000}M" if size % 1_000_000 == 0 else f"{size / 1000:g}k"


def _ratio(results: Results, name: str, goal: float, *, largest_only: bool = False) -> Row | None:
    timed = judged(results.of(name))
    if largest_only and timed:
        timed = [one for one in timed if one.subject.size == max(t.subject.size for t in timed)]
    if not timed:
        return None
    worst = max(timed, key=lambda one: spread(one.ratios).median)
    found, s = spread(worst.ratios).median, worst.subject
    return Row(name, f"{found:.2f}× ({where(s.size, s.agents, s.how)})", f"≤ {goal:g}×", found <= goal)


def _growth(results: Results, name: str) -> Row | None:
    """The largest mailbox against the smallest, paired by round."""
    by_place: dict[tuple[int, str], dict[int, Timed]] = {}
    for one in judged(results.of(name)):
        by_place.setdefault((one.subject.agents, one.subject.how), {})[one.subject.size] = one
    found = []
    for (agents, how), sizes in by_place.items():
        small, large = sizes[min(sizes)], sizes[max(sizes)]
        if small is not large:
            ratios = [a / b for a, b in zip(large.ratios, small.ratios, strict=True)]
            found.append((spread(ratios).median, agents, how, min(sizes), max(sizes)))
    if not found:
        return None
    worst, agents, how, least, most = max(found)
    met = worst <= GROWTH if (least, most) == (SMALL, LARGE) else None
    title = f"{name}: {count(most)} against {count(least)}"
    return Row(title, f"{worst:.2f} ({agents:,} agents, {how})", f"≤ {GROWTH:g}", met)


def _worst_fact(results: Results, name: str, goal: float) -> Row | None:
    worst = max(results.facts_of(name), key=lambda fact: fact.value, default=None)
    if worst is None:
        return None
    figure = f"{worst.value:.3g} {worst.unit} ({where(worst.size, worst.agents)})"
    return Row(name, figure, f"≤ {goal:g} {worst.unit}", worst.value <= goal)


def _writers(results: Results) -> list[Row]:
    value = {fact.name: fact.value for fact in results.facts}
    if writers.GAIN not in value:
        return []
    gain, of_raw, unfair = value[writers.GAIN], value[writers.OF_RAW], value[writers.UNFAIR]
    figure = f"{gain:.2f}×; {of_raw:.2f} of raw appends"
    return [
        Row("8 durable writers against one", figure, "≥ 2.5×, or ≥ 0.9 of raw appends", gain >= 2.5 or of_raw >= 0.9),
        Row(writers.UNFAIR, f"{unfair:.2f}", "≤ 3", unfair <= 3),
    ]


def _against_plain(results: Results) -> list[Row]:
    pairs: tuple[tuple[str, str, str, Callable[[int], float | None]], ...] = (
        ("check", measures.CHECK, measures.PLAIN_CHECK, PLAIN_GOALS.get),
        ("send", measures.SEND, measures.PLAIN_SEND, lambda _: 5.0),
    )
    found = []
    for verb, ours, plain, goal in pairs:
        mine = {(one.subject.size, one.subject.agents): one for one in judged(results.of(ours))}
        for one in results.of(plain):
            here = (one.subject.size, one.subject.agents)
            if here in mine:
                found.append(_factor(f"plain scheme against ours: {verb}", one, mine[here], goal(here[0])))
    return found


def _factor(measure: str, plain: Timed, ours: Timed, goal: float | None) -> Row:
    factor = spread([a / b for a, b in zip(plain.ratios, ours.ratios, strict=True)]).median
    figure = f"{factor:.1f}× ({where(plain.subject.size, plain.subject.agents)})"
    return Row(measure, figure, f"≥ {goal:g}×" if goal else "–", None if goal is None else factor >= goal)
