"""Mail that starts a session again which has ended: which mail may, for whom, and how often.

Belongs here: that decision. Starting a session costs money, and whoever writes mail may cause it. So it takes mail to
that agent or its role, of high priority or a control message, whose writer is proven. Broadcasts and tags never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .address import DIRECT, ROLE
from .instant import HOUR
from .records import Record
from .roster import FROZEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .inbox import Item
    from .records import Message
    from .roster import Agent, Roster

PER_HOUR = 4
"""Starts within an hour, for all agents together, unless the person says else."""
KEPT = 1000
"""Messages that are remembered as having started somebody."""


class Woken(Record):
    """The starts so far: their instants within the last hour (ms), and the ids of the messages that caused any."""

    at: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()


def sleepers(roster: Roster) -> list[Agent]:
    """Return the frozen agents, those who were there last first."""
    found = [agent for agent in roster.agents.values() if agent.state == FROZEN]
    return sorted(found, key=lambda agent: agent.changed, reverse=True)


def calls(item: Item, roster: Roster) -> bool:
    """Return whether unread mail is of a kind that may start its reader; its writer is to be proven besides."""
    message = item.message
    if message.priority != "high" and message.type != "control":
        return False
    if item.mode == ROLE:
        return not roster.carrying(item.via)
    return item.mode == DIRECT


def due(wanted: Iterable[tuple[Agent, Message]], woken: Woken, now: int, per_hour: int) -> tuple[list[Agent], Woken]:
    """Return the agents to start, and the starts with theirs. Each message starts one agent, once."""
    at = [instant for instant in woken.at if now - HOUR < instant <= now]
    ids = dict.fromkeys(woken.ids)
    started: list[Agent] = []
    for agent, message in wanted:
        if message.id in ids or (len(at) >= per_hour and agent not in started):
            continue
        ids[message.id] = None
        if agent not in started:
            started.append(agent)
            at.append(now)
    return started, Woken(tuple(at), tuple(ids)[-KEPT:])
