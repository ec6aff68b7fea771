"""Time to live: when a message expires.

Belongs here: the default per mode, the overrides, the frozen recipient's stopped clock. ``now`` is always passed in;
expiry is judged at each answer and deletes nothing.

Example: 24 h from 10:00, the recipient frozen from 12:00 to 15:00: it expires at 13:00 next day.
"""

from __future__ import annotations

from .address import BROADCAST, DIRECT, ROLE, TAG
from .instant import HOUR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .records import Message
    from .roster import Agent, Roster

DEFAULT_TTL: Mapping[str, float | None] = {DIRECT: 24, ROLE: None, TAG: 72, BROADCAST: 4}
"""Hours per mode. Direct, role (none) and broadcast are the seed's; the seed gives tags none, 72 is ours."""


def expires_at(message: Message, roster: Roster, ttls: Mapping[str, float | None]) -> int | None:
    """Return the instant (ms) from which the message counts as expired; None if there is none now.

    None means no time to live, or a direct recipient that is frozen now and so stops the clock. With several addresses
    the longest counts. An instant that the message itself names holds for all of them, and stops for nobody.
    """
    if message.expires_at is not None:
        return message.expires_at
    latest = 0
    for address in message.recipients:
        deadline = _part(address, message, roster, ttls)
        if deadline is None:
            return None
        latest = max(latest, deadline)
    return latest


def _part(address: str, message: Message, roster: Roster, ttls: Mapping[str, float | None]) -> int | None:
    mode = roster.mode(address)
    hours = message.ttl_hours if message.ttl_hours is not None else ttls[mode]
    if hours is None:
        return None
    deadline: int | None = message.timestamp + int(hours * HOUR)
    if mode == DIRECT:
        for since, until in _frozen_spans(address, roster):
            if deadline is None or since >= deadline:
                break
            deadline = None if until is None else deadline + max(0, until - max(since, message.timestamp))
    return deadline


def _frozen_spans(word: str, roster: Roster) -> list[tuple[int, int | None]]:
    """Return when the recipient was frozen, in order and without overlap: the agent, then its successors."""
    agent = roster.meant(word)
    found = _spans_from(agent, 0, roster, {agent.session_id}) if agent else []
    spans: list[tuple[int, int | None]] = []
    for since, until in sorted(found, key=lambda span: span[0]):
        if spans and (spans[-1][1] is None or since <= spans[-1][1]):
            since, before = spans.pop()
            until = None if until is None or before is None else max(until, before)
        spans.append((since, until))
    return spans


def _spans_from(agent: Agent, start: int, roster: Roster, seen: set[str]) -> list[tuple[int, int | None]]:
    """Return the agent's spans after ``start``, and those of each successor from its succession on."""
    spans = [(max(since, start), until) for since, until in agent.frozen if until is None or until > start]
    for heir in roster.line(agent.session_id):
        if agent.session_id in heir.continues and heir.session_id not in seen:
            since = heir.heir[heir.continues.index(agent.session_id)]
            spans += _spans_from(heir, max(start, since), roster, seen | {heir.session_id})
    return spans


def expired(message: Message, now: int, roster: Roster, ttls: Mapping[str, float | None]) -> bool:
    """Return whether the message has expired at ``now``. At the deadline exactly: yes."""
    deadline = expires_at(message, roster, ttls)
    return deadline is not None and now >= deadline
