"""Mail that nobody read: the person's direct letters, and the page of dead ones.

Belongs here: their content, a part at a time. ``survey`` counted it, and the page says how long ago.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..core import message_reads
from ..core.dead_letters import RECIPIENT_DEAD
from ..core.inbox import Item
from ..core.records import USER, Message, Record
from ..core.roster import Roster
from ..core.text import clipped
from . import presenters
from .desk import Looking, Params

PAGE = 50
"""Messages of a page: as many as one form sends again."""


class ListPart(Record):
    """A part of a long list, newest first: how many there are, which come first and last, the next part's address."""

    shown: tuple[Any, ...]
    count: int
    first: int
    older: str


def direct_letters(letters: Iterable[Item]) -> list[Message]:
    """Return the unread mail that is in a direct talk with the person: the page of that talk lists it."""
    return [item.message for item in letters if USER in item.message.recipients]


def count_letters(letters: Iterable[Item], roster: Roster) -> Counter[str]:
    """Return how many of the person's letters each agent's talk has: those that it sent, or an agent it continues."""
    return Counter(who for letter in direct_letters(letters) for who in roster.heirs(letter.sender))


def view_dead(now: Looking, params: Params) -> dict[str, Any]:
    """Return a page of the dead letters, newest first."""
    clock, reasons = now.mailbox.now(), {RECIPIENT_DEAD: "its recipient died"}
    part = _list_part(now.survey.dead or (), params)
    parents = describe_parents(now, [m for m, _ in part.shown])
    return {
        "title": "Dead letters",
        "letters": [
            (
                presenters.message_row(m, message_reads.Reads(), now.roster, now=clock, said=parents),
                reasons.get(why, why),
            )
            for m, why in part.shown
        ],
        "shown": part,
        "wants_dead": now.survey.dead is None,
        "taken": now.survey.taken,
        "ago": presenters.elapsed_time(now.survey.taken, clock),
    }


def _list_part(everything: Sequence[Any], params: Params) -> ListPart:
    first = presenters.whole_number(params.get("skip", "")) or 0
    first = first if first < len(everything) else 0  # what was there is gone
    end = len(everything) - first
    begin = max(end - PAGE, 0)
    older = presenters.page_link("/dead", skip=len(everything) - begin) if begin else ""
    return ListPart(tuple(everything[begin:end][::-1]), len(everything), first, older)


def describe_parents(now: Looking, messages: Iterable[Message]) -> dict[str, str]:
    """Return the parents of messages in a few words, by id."""
    parents, _ = now.queries.known(m.thread for m in messages if m.thread)
    found = {}
    for m in parents:
        what = presenters.control_words(m.content) if m.type == "control" else presenters.title_of(m)
        found[m.id] = f"{presenters.sender_name(m, now.roster)}: {clipped(what, 80)}"
    return found
