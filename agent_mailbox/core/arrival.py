"""When each reader will see a message: sorted by what is proven of it at the moment of sending.

Belongs here: that rule, written once, and its words for people. ``recipients`` says whom the message reaches, and
``mailbox.arrivals`` gathers the signs. Whatever is not proven counts as *when it looks*: nobody is promised anything.
"""

from __future__ import annotations

from . import frame
from .records import USER, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .recipients import Reach
    from .records import Message
    from .roster import Agent, Roster

_WORDS = ("now", "at its next turn", "when it looks")
"""The three words for people, in the order of ``Arrival``'s fields."""


class Arrival(Record):
    """The readers by when they will see a message, and why each. Only one of ``one_of`` gets it: the first to look."""

    now: tuple[str, ...]
    at_next_turn: tuple[str, ...]
    when_it_looks: tuple[str, ...]
    reasons: dict[str, str]
    reach: Reach
    elsewhere: Collection[str] = ()

    @property
    def one_of(self) -> tuple[str, ...]:
        """Return the holders of roles of whom one gets it."""
        return self.reach.one_of


def sort(
    message: Message,
    reach: Reach,
    roster: Roster,
    *,
    waking: Collection[str] = (),
    hooked: Collection[str] = (),
    carried: Collection[str] = (),
    elsewhere: Collection[str] = (),
    queued: bool = False,
) -> Arrival:
    """Return the agents that a message reaches, sorted by when they will see it, by the signs proven of them.

    ``waking``: beside these sessions a process waits for mail, and wakes them. ``hooked``: their client called our
    hooks, and its process lives. ``carried``: teammates whose team has a bridge. ``elsewhere``: another machine's.
    ``queued``: the mail itself waits here for the engine.
    """
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    reasons = {}
    for who in reach.agents:
        if queued:
            place, why = 2, "the engine is out of reach: once it takes the mail"
        elif who == USER:
            place, why = 2, "the person reads in the console or at a terminal"
        elif who in elsewhere:
            place, why = 2, "on another machine: once that takes it in"
        elif _is_muted(message, roster.get(who), roster):
            place, why = 2, "it muted the sender"
        elif who in waking:
            place, why = 0, "its doorbell waits for mail"
        elif who in carried:
            place, why = 1, "its team's bridge carries it"
        elif who in hooked:
            place, why = 1, "its client calls our hooks, and runs"
        else:
            place, why = 2, "nothing wakes it: no doorbell waits, and no running client of it called our hooks"
        found[place].append(who)
        reasons[who] = why
    now, turn, looks = map(tuple, found)
    return Arrival(now, turn, looks, reasons, reach, elsewhere)


def _is_muted(message: Message, agent: Agent | None, roster: Roster) -> bool:
    if agent is None or not agent.muted or message.type == "control" or message.sender == USER:
        return False
    return not {*roster.lineage(message.sender)}.isdisjoint(agent.muted)


def lines(arrival: Arrival, called: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return where a message goes as (label, names): ``("will see it now", "Ada")``; ``called`` names each."""

    def name(who: str) -> str:
        return called(who) + (" (on another machine, once that takes it in)" if who in arrival.elsewhere else "")

    found, rivals = [], {*arrival.one_of}
    groups = zip(_WORDS, (arrival.now, arrival.at_next_turn, arrival.when_it_looks), strict=True)
    ways = [(word, [who for who in group if who not in rivals], _among(group, rivals)) for word, group in groups]
    found += [(f"will see it {word}", frame.some([*map(name, sure)])) for word, sure, _ in ways if sure]
    mixed = [(word, some) for word, _, some in ways if some]
    if len(mixed) == 1:
        found.append((f"will see it {mixed[0][0]}", f"one of {frame.some([*map(name, mixed[0][1])])}"))
    elif mixed:
        each = [f"{name(who)} ({word})" for word, some in mixed for who in some]
        found.append(("one of these will see it", frame.some(each)))
    others = (("waits for", arrival.reach.waiting_for), ("gone, client ended", arrival.reach.gone))
    return found + [(label, frame.some([*map(called, parties)])) for label, parties in others if parties]


def _among(group: Collection[str], wanted: Collection[str]) -> list[str]:
    return [who for who in group if who in wanted]
