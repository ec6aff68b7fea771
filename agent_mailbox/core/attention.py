"""When the person is told that something waits: one notice for many, again after a while, none in quiet hours.

Belongs here: that decision, and the words. Anybody may send requests and mail, so a flood of them is one notice a
minute at most. A notice says who and what kind; the content only if the person wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .records import Record
from .text import clipped, neutral

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

GAP = 60_000
"""Milliseconds between two notices at least; what comes meanwhile is in the next."""
NAMED = 5
"""Things that a notice names; it counts the rest."""
KEPT = 1000
"""Ids that are remembered as told."""
_CONTENT = 200


class WaitingThing(Record):
    """A thing that waits for the person: its id, its kind, who sent it, and its content in a line."""

    id: str
    kind: str
    sender: str
    content: str


class Notice(Record):
    """A notice: a title and a text of a few lines. ``link``: the page that it leads to, if it is known."""

    title: str
    text: str
    count: int
    link: str = ""


class LastNotice(Record):
    """The last notice: its instant (ms), and the ids of all that waited then."""

    at: int = 0
    ids: tuple[str, ...] = ()


class Due(Record):
    """The outcome: whether to tell now, the last notice then, and when to look again (ms; None: at a change)."""

    tell: bool
    told: LastNotice
    again: int | None = None


def decide(
    waiting: Sequence[WaitingThing], told: LastNotice, now: int, again_after: int, quiet_until: int | None
) -> Due:
    """Return whether to tell of what waits. ``again_after``: ms until it is told again, 0 for never; ``quiet_until``:
    the end of the quiet hours, if it is one of these."""
    ids = tuple(one.id for one in waiting[:KEPT])
    if not ids:
        return Due(False, told.replace(ids=()))
    at = min(told.at, now)  # a clock that was set back silences nothing
    if not {*ids} <= {*told.ids}:
        due = at + GAP if at else now
    elif again_after:
        due = at + max(again_after, GAP)
    else:
        return Due(False, told)
    due = due if quiet_until is None else max(due, quiet_until)
    if due > now:
        return Due(False, told, due)
    return Due(True, LastNotice(now, ids), now + again_after if again_after else None)


def notice(waiting: Sequence[WaitingThing], *, content: bool, told: Collection[str] = (), link: str = "") -> Notice:
    """Return the notice of what waits, what is new first; ``content``: with what each says.

    ``told``: the ids that the last notice told."""
    new = [one for one in waiting if one.id not in told]
    named = (new if told and new else [*waiting])[:NAMED]
    lines = [_line(one, content) for one in named]
    more = len(waiting) - len(named)
    if more > 0:
        lines.append(f"and {more} {'other' if told and new else 'more'}{'s' if told and new and more > 1 else ''}")
    count = "1 thing waits for you" if len(waiting) == 1 else f"{len(waiting)} things wait for you"
    title = f"{_line(new[0], content=False)}: {count}" if told and new and len(waiting) > 1 else count
    return Notice(title, "\n".join(lines), len(waiting), link)


def _line(one: WaitingThing, content: bool) -> str:
    said = f": {clipped(neutral(one.content), _CONTENT)}" if content and one.content else ""
    return f"{one.kind} from {one.sender}{said}"


def quiet_hours(text: str) -> tuple[int, int]:
    """Return the minutes of the day between which nothing is told, as ``22:00-07:00`` says; raise ``ValueError``."""
    begin, dash, end = text.partition("-")
    if not dash:
        raise ValueError(text)
    return _minute(begin), _minute(end)


def _minute(text: str) -> int:
    hour, colon, minute = text.strip().partition(":")
    if not (colon and hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and text.isascii()):
        raise ValueError(text)
    if int(hour) > 23 or int(minute) > 59:
        raise ValueError(text)
    return int(hour) * 60 + int(minute)


def quiet_for(hours: tuple[int, int], minute: int) -> int | None:
    """Return for how many minutes it is still quiet at a minute of the day; None if it is not."""
    begin, end = hours
    is_quiet = begin <= minute < end if begin <= end else minute >= begin or minute < end
    return (end - minute) % 1440 if is_quiet else None
