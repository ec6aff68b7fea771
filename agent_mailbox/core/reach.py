"""The agents that a message reaches, and when each will see it: the answer for its sender.

Belongs here: the roster's answer at the moment of sending, the sessions whose unread mail a message may change, and the
words for people. ``inbox`` decides how mail reaches a reader; ``mailbox.arrivals`` gathers the signs of its arrival.
Whatever is not proven counts as *when it looks*: nobody is promised anything.
"""

from __future__ import annotations

from . import frame
from .address import ALL, DIRECT, ROLE, is_muted, role_or_tag, route, when_shown
from .records import TURN, USER, Message, Record
from .roster import ALIVE, DEAD, FROZEN, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_WORDS = ("now", "at its next turn", "when it looks")
"""The three words for people, in the order of ``Arrival``'s fields."""
_HELD = "it is not woken for this at once: "


class Reach(Record):
    """The answer for a sender: agents that are there to see the message, and those it waits for (frozen agents, empty
    roles). ``gone``: agents that would see it if the processes of their clients still ran. ``running``: those of the
    agents whose client called our hooks, and certainly runs. ``one_of``: several holders of roles, of whom one gets it.
    """

    agents: tuple[str, ...]
    waiting_for: tuple[str, ...]
    gone: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


def find_reach(message: Message, roster: Roster, gone: Collection[str] = ()) -> Reach:
    """Return the agents a message reaches at the moment of sending; the ``gone`` count as frozen."""
    now: dict[str, None] = {}
    by_role: dict[str, None] = {}
    waiting: dict[str, None] = {}
    for stored in message.recipients:
        mode = roster.mode(stored)
        if mode == DIRECT:
            others = [Agent(USER)] if stored == USER else roster.line(stored) or roster.named(stored)
            for agent in others:
                if agent.session_id != message.sender and agent.state != DEAD:
                    is_there = agent.session_id not in gone and agent.state == ALIVE
                    (now if is_there else waiting)[agent.session_id] = None
            continue
        others = [a for a in find_bearers(stored, roster, message.bare) if a.session_id != message.sender]
        living = dict.fromkeys(a.session_id for a in others if a.state == ALIVE and a.session_id not in gone)
        (by_role if mode == ROLE else now).update(living)
        if mode != ROLE:
            waiting.update(dict.fromkeys(a.session_id for a in others if a.state == FROZEN or a.session_id in gone))
        elif not living:
            waiting[stored] = None
    holders = tuple(holder for holder in by_role if holder not in now)
    now.update(by_role)
    return Reach(
        agents=tuple(now),
        waiting_for=tuple(w for w in waiting if w not in now),
        gone=tuple(sorted(gone)),
        one_of=holders if len(holders) > 1 else (),
    )


def list_reach(reach: Reach, called: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return whom a message reaches as (label, names): ``("waits for", "Ada, role:tester")``; ``called`` names each."""
    ways = (("reaches", reach.agents), ("waits for", reach.waiting_for), ("gone, client ended", reach.gone))
    return [(label, frame.some([*map(called, parties)])) for label, parties in ways if parties]


def is_mate(agent: Agent | None) -> bool:
    """Return whether it is a member of a client's team, to whom a bridge carries mail."""
    return agent is not None and "@" in agent.session_id and f"team:{agent.session_id.partition('@')[2]}" in agent.tags


def find_bearers(stored: str, roster: Roster, bare: Collection[str]) -> list[Agent]:
    """Return the agents that an address matches now: by a role or tag all that are not dead, by a broadcast all."""
    if stored == ALL:
        return list(roster.agents.values())
    found = roster.carriers(role_or_tag(stored))
    if bare and (word := stored.removeprefix("role:")) in bare:
        return list({a.session_id: a for a in (*found, *roster.named(word))}.values())
    return found


def find_concerned(messages: Iterable[Message], roster: Roster) -> set[str] | None:
    """Return the sessions whose unread mail the messages may change, by the present roster; None: everyone's."""
    found: set[str] = set()
    for message in messages:
        for stored in message.recipients:
            if stored == ALL:
                return None
            if ":" not in stored:
                found.update((stored, *roster.heirs(stored)))
            found.update(a.session_id for a in roster.carriers(role_or_tag(stored)))
        for word in message.bare:  # somebody may have taken the name meanwhile
            found.update((word, *(a.session_id for a in roster.named(word))))
    return found


class Arrival(Record):
    """The readers by when they will see a message, and why each. Only one of ``reach.one_of`` gets it: the first."""

    now: tuple[str, ...]
    at_next_turn: tuple[str, ...]
    when_it_looks: tuple[str, ...]
    reasons: dict[str, str]
    reach: Reach
    elsewhere: Collection[str] = ()
    hints: Mapping[str, str] | None = None


def sort_arrival(
    message: Message,
    reach: Reach,
    roster: Roster,
    *,
    waking: Collection[str] = (),
    braked: Mapping[str, tuple[str, str]] | None = None,
    hooked: Collection[str] = (),
    silent: Collection[str] = (),
    elsewhere: Collection[str] = (),
    queued: bool = False,
) -> Arrival:
    """Return the agents that a message reaches, sorted by when they will see it, by the signs proven of them.

    ``waking``: beside these sessions a process waits for mail, and wakes them. ``braked``: those of them
    that are not woken for this message, each with why and a hint. ``hooked``: their client called our hooks and runs.
    ``silent``: since they called the last one, their hooks were taken out or switched off. ``elsewhere``: another
    machine's. ``queued``: the mail itself waits here for the engine. A teammate is reached if its team has a bridge.
    """
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    reasons = {}
    for who in reach.agents:
        if queued:
            place, why = 2, "the mail waits on this machine: once the engine takes it"
        elif who == USER:
            place, why = 2, "the person reads in the console or at a terminal"
        elif who in elsewhere:
            place, why = 2, "on another machine: once that takes it in"
        elif (
            (agent := roster.get(who)) is not None
            and agent.muted
            and is_muted(message, agent.muted, roster.lineage(message.sender))
        ):
            place, why = 2, "it muted the sender"
        elif who in silent:
            place, why = 2, "its hooks were taken out or switched off, and it called none since"
        elif who in waking:
            place, why = _sort_woken(message, who, roster, braked or {})
        elif "@" in who and is_mate(agent):
            place, why = 1, "its team's bridge carries it"
        elif who in hooked:
            place, why = 1, "its client calls our hooks, and runs"
        else:
            place, why = 2, "nothing wakes it: no doorbell waits, and no running client of it called our hooks"
        found[place].append(who)
        reasons[who] = why
    now, turn, looks = map(tuple, found)
    hints = {who: hint for who, (why, hint) in (braked or {}).items() if hint and reasons.get(who) == _HELD + why}
    return Arrival(now, turn, looks, reasons, reach, elsewhere, hints)


def _sort_woken(message: Message, who: str, roster: Roster, braked: Mapping[str, tuple[str, str]]) -> tuple[int, str]:
    """Return the place and the reason of a session beside which a doorbell waits."""
    way = route(message.recipients, roster.reader(who), message.bare)
    if way is not None and when_shown(message, way.mode) == TURN:
        return 1, "its next turn begins or ends with it: such mail wakes nobody"
    if who in braked:
        return 1, _HELD + braked[who][0]
    return 0, "its doorbell waits for mail"


def list_arrival(
    arrival: Arrival, roster: Roster, called: Callable[[str, Roster], str] = frame.party
) -> list[tuple[str, str]]:
    """Return where a message goes as (label, names): ``("will see it now", "Ada")``; ``called`` names each."""
    far = " (on another machine, once that takes it in)"
    found, mixed, rivals, hints = [], [], {*arrival.reach.one_of}, arrival.hints or {}
    for word, group in zip(_WORDS, (arrival.now, arrival.at_next_turn, arrival.when_it_looks), strict=True):
        why = {who: far if who in arrival.elsewhere else f" ({hints[who]})" if who in hints else "" for who in group}
        named = {who: called(who, roster) + why[who] for who in group}
        if sure := [name for who, name in named.items() if who not in rivals]:
            found.append((f"will see it {word}", frame.some(sure)))
        if some := [name for who, name in named.items() if who in rivals]:
            mixed.append((word, some))
    if len(mixed) == 1:
        found.append((f"will see it {mixed[0][0]}", f"one of {frame.some(mixed[0][1])}"))
    elif mixed:
        each = [f"{name} ({word})" for word, some in mixed for name in some]
        found.append(("one of these will see it", frame.some(each)))
    others = (("waits for", arrival.reach.waiting_for), ("gone, client ended", arrival.reach.gone))
    said = {who: f" ({why})" for who, why in arrival.reasons.items()}
    return found + [
        (label, frame.some([called(who, roster) + said.get(who, "") for who in parties]))
        for label, parties in others
        if parties
    ]
